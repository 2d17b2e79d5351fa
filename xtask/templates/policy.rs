//! @TITLE@.
//!
//! # Problem
//!
//! What goes wrong with the placements there are, and for which programs. (To be replaced, like all
//! text below: what stands here is first touch, which is a policy to start from.)
//!
//! # Approach
//!
//! The idea in three sentences, with its source (paper, section).
//!
//! # Terms
//!
//! *Toucher*: the node whose CPU faults.
//!
//! # Algorithm
//!
//! At a fault, the toucher if it has room, else the nearest node that has. Nothing ever moves.
//!
//! # Properties
//!
//! - `toucher_with_room`: a page's home is its first toucher, whenever that has room.
//! - `pages_never_move`: no decision but a home for the page that faulted.

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, Ns};

use crate::homes::Homes;
use crate::queue::Queue;
use crate::{Policy, PolicyContext, Step};

/// See the module.
#[derive(Debug)]
pub struct @TYPE@ {
    homes: Homes,
    queue: Queue,
}

impl @TYPE@ {
    /// For the machine of `context`.
    pub fn new(context: &PolicyContext) -> Self {
        Self { homes: Homes::new(context), queue: Queue::new() }
    }
}

impl Policy for @TYPE@ {
    fn interest(&self) -> Interest {
        Interest { faults: true, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        match *event {
            Event::Fault { page, node } => {
                if let Some(node) = self.homes.settle(page, node) {
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
    use crate::testing::{Bench, machine, touches};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn toucher_with_room((capacity, touches) in touches()) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, @TYPE@::new(&context));
            for (page, node) in touches {
                let room = bench.room()[node.index()] > 0;
                if let (Some(home), true) = (bench.fault(page, node), room) {
                    prop_assert_eq!(home, node);
                }
            }
        }

        #[test]
        fn pages_never_move((capacity, touches) in touches()) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, @TYPE@::new(&context));
            for (page, node) in touches {
                bench.fault(page, node);
                bench.touch(page, node);
            }
            prop_assert_eq!(bench.moves, 0);
        }
    }
}
