//! Policies that decide once for each page: where it is to be, at its first touch.
//!
//! # Problem
//!
//! A page needs a home at its first touch. First touch, round robin, one node, weights and plans
//! differ only in the node that they want.
//!
//! # Approach
//!
//! A [`FirstHome`] names the wanted node. [`AtFirstTouch`] keeps the homes and decides.
//!
//! # Terms
//!
//! *Toucher*: the node whose CPU faults.
//!
//! # Algorithm
//!
//! At a fault, the page's home is the wanted node if it has room, else the nearest node to it that
//! has. If the machine is full, the page gets no home. Nothing ever moves.
//!
//! # Properties
//!
//! - `a_full_machine_gives_no_home`: pages get a home as long as the machine has room, and none
//!   afterwards.

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, NodeId, Ns, PageNo};

use crate::homes::Homes;
use crate::queue::Queue;
use crate::{Policy, PolicyContext, Step};

/// Names a page's home at its first touch.
pub trait FirstHome: core::fmt::Debug + Send {
    /// The node that `page` is to live on. A thread of node `toucher` touches the page. If the
    /// returned node is full, the page goes to the nearest node with room.
    fn wanted(&self, page: PageNo, toucher: NodeId) -> NodeId;
}

/// Node of `page`, if pages take turns on `nodes`; `toucher` if `nodes` is empty.
pub(crate) fn in_turn(nodes: &[NodeId], page: PageNo, toucher: NodeId) -> NodeId {
    page.0.checked_rem(nodes.len() as u64).map_or(toucher, |turn| nodes[turn as usize])
}

/// Puts each page where `H` wants it. Nothing ever moves.
#[derive(Debug)]
pub struct AtFirstTouch<H> {
    pub(crate) first: H,
    homes: Homes,
    queue: Queue,
}

impl<H: FirstHome> AtFirstTouch<H> {
    /// Puts pages where `first` wants them, on the machine of `context`.
    pub(crate) fn with(context: &PolicyContext, first: H) -> Self {
        Self { first, homes: Homes::new(context), queue: Queue::new() }
    }
}

impl<H: FirstHome> Policy for AtFirstTouch<H> {
    fn interest(&self) -> Interest {
        Interest { faults: true, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        match *event {
            Event::Fault { page, node } => {
                if let Some(node) = self.homes.settle(page, self.first.wanted(page, node)) {
                    self.queue.push(Decision::Place { page, node });
                }
            }
            Event::Free { pages, .. } => self.homes.free(pages),
            _ => {}
        }
    }
    fn poll(&mut self, _now: Ns, out: &mut DecisionBuf) -> Step {
        self.queue.pour(out)
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        self.homes.moved(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FirstTouch;
    use crate::testing::{Bench, machine, touches};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_full_machine_gives_no_home((capacity, _) in touches(), toucher in 0u16..3) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, FirstTouch::new(&context));
            let room: u64 = capacity.iter().sum();
            for page in 0..room + 3 {
                prop_assert_eq!(bench.fault(PageNo(page), NodeId(toucher)).is_some(), page < room);
            }
        }
    }
}
