//! The placement algorithms, and only algorithms.
//!
//! A policy is a pure function of its events: it gets [`Event`]s, is polled, and writes
//! [`Decision`](homenode_model::Decision)s. The same object runs on a live process, on a modelled
//! machine and on the virtual one. Time, topology and options come in as arguments. A decision uses
//! no clock, no randomness, no hash map and no floating point.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod ars;
mod at_first_touch;
mod bounces;
pub mod competitive;
pub mod competitive_balanced;
mod context;
mod counting;
pub mod daemon;
pub mod explicit;
pub mod first_touch;
mod homes;
pub mod in_w;
pub mod initial;
mod interval;
pub mod journal;
mod latency;
mod live;
pub mod next_touch;
pub mod objects;
pub mod one_node;
mod options;
pub mod out_u;
pub mod out_w;
pub mod paced;
pub mod plan;
pub mod presence;
mod queue;
pub mod registry;
mod room;
pub mod round_robin;
pub mod spelling;
#[cfg(test)]
mod testing;
pub mod weighted;
pub mod when;

pub use at_first_touch::{AtFirstTouch, FirstHome};
pub use context::PolicyContext;
pub use explicit::Explicit;
pub use first_touch::FirstTouch;
pub use live::live_spec;
pub use next_touch::NextTouch;
pub use one_node::OneNode;
pub use options::{LiveValue, OptionSpec};
pub use paced::Paced;
pub use plan::Plan;
pub use registry::{Offer, POLICIES, PolicySpec, Requirements, SpecError, build, requirements};
pub use round_robin::RoundRobin;
pub use weighted::Weighted;

use alloc::boxed::Box;

use homenode_model::{DecisionBuf, Event, Interest, MoveOutcome, Ns};

/// What the driver should do after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Carry out what is in the buffer, in order.
    Act,
    /// Nothing now; poll again when the clock reaches this, or at the next event.
    WakeAt(Ns),
    /// Nothing until the next event.
    Idle,
}

/// How often a driver polls a policy at one moment, at most.
pub const MOST_POLLS: u32 = 1 << 10;

/// A placement policy. `Send`, so that many can be tried at once; it holds no references to
/// anything.
///
/// Contract of a driver: it calls [`Policy::observe`] for every event of the policy's [`Interest`]
/// in its total order, [`Policy::poll`] at least after each `Fault`, `Touched`, `Collapsed`,
/// `FrameGone`, `RegionBegin`, `RegionEnd`, `Iteration` and `NextTouchRequest`, with an empty
/// buffer, carries decisions out in order, and reports each `Move`, `Replicate` and
/// `ReplicateLines` by [`Policy::outcome`] before the next `observe` and the next `poll`. It polls
/// until the step is not [`Step::Act`], but at most [`MOST_POLLS`] times: a policy that still acts
/// then is in error, and the driver says so.
pub trait Policy: Send {
    /// The events that the policy wants. Constant over the policy's life.
    fn interest(&self) -> Interest;
    /// Notes an event.
    fn observe(&mut self, event: &Event);
    /// Decides. `out` is empty on entry; it holds decisions on return if and only if the step is
    /// [`Step::Act`].
    fn poll(&mut self, now: Ns, out: &mut DecisionBuf) -> Step;
    /// Notes the outcome of a move.
    fn outcome(&mut self, outcome: &MoveOutcome);
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn interest(&self) -> Interest {
        (**self).interest()
    }
    fn observe(&mut self, event: &Event) {
        (**self).observe(event);
    }
    fn poll(&mut self, now: Ns, out: &mut DecisionBuf) -> Step {
        (**self).poll(now, out)
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        (**self).outcome(outcome);
    }
}
