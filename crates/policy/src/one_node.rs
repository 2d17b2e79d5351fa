//! One node: everything in one place.
//!
//! # Problem
//!
//! How bad can it get, and how good when all threads sit where the data is? Both need all pages on
//! one node.
//!
//! # Approach
//!
//! Ignore who touches. As `numactl --membind` with a fall-back; Löf's UMA when all threads run on
//! the node, and the placement that serial initialisation (SI) leads to.
//!
//! # Terms
//!
//! *The node*: option `node`, 0 by default.
//!
//! # Algorithm
//!
//! Every page's home is the node while it has room, then the nearest to *it* (not to the toucher)
//! that has.
//!
//! # Properties
//!
//! - `all_on_the_node_until_full`: the first `capacity` pages are there.
//! - `then_nearest_to_the_node`: the others are on the nearest node with room at the fault.

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, NodeId, Ns};

use crate::homes::Homes;
use crate::queue::Queue;
use crate::{Policy, PolicyContext, Step};

/// See the module.
#[derive(Debug)]
pub struct OneNode {
    node: NodeId,
    homes: Homes,
    queue: Queue,
}

impl OneNode {
    /// All pages on `node`, which must be a node of the machine of `context`.
    pub fn new(context: &PolicyContext, node: NodeId) -> Self {
        Self { node, homes: Homes::new(context), queue: Queue::new() }
    }
}

impl Policy for OneNode {
    fn interest(&self) -> Interest {
        Interest { faults: true, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        match *event {
            Event::Fault { page, .. } => {
                if let Some(node) = self.homes.settle(page, self.node) {
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
        fn all_on_the_node_until_full((capacity, touches) in touches(), node in 0u16..3) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, OneNode::new(&context, NodeId(node)));
            for (page, toucher) in touches {
                let room = bench.room()[usize::from(node)];
                if let Some(home) = bench.fault(page, toucher) {
                    prop_assert_eq!(home == NodeId(node), room > 0);
                }
            }
        }

        #[test]
        fn then_nearest_to_the_node((capacity, touches) in touches(), node in 0u16..3) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, OneNode::new(&context, NodeId(node)));
            for (page, toucher) in touches {
                let room = bench.room();
                let Some(home) = bench.fault(page, toucher) else { continue };
                let order = &context.nearest[usize::from(node)];
                prop_assert_eq!(Some(&home), order.iter().find(|n| room[n.index()] > 0));
            }
        }
    }
}
