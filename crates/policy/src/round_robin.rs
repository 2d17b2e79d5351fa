//! Round robin: pages interleaved over the nodes.
//!
//! # Problem
//!
//! First touch can put all pages on one node, whose controller then limits everybody.
//!
//! # Approach
//!
//! Spread neighbouring pages over all nodes with memory: balanced, at the price of (n−1)/n remote
//! accesses. As `numactl --interleave`, and IRIX's round robin in Robertson and in Nikolopoulos.
//!
//! # Terms
//!
//! *Turn*: position in the ascending list of the N nodes with memory.
//!
//! # Algorithm
//!
//! Home of page p is the node at turn p mod N. By page number, not by a counter of faults: which
//! thread faults first must not show in the result. A full node passes the page to the nearest one
//! with room.
//!
//! # Properties
//!
//! - `fault_order_does_not_matter`: as long as no node is full, a page's home depends on its number
//!   alone.
//! - `consecutive_pages_spread_evenly`: any run of pages puts on each two nodes counts that differ
//!   by at most 1.

use alloc::vec::Vec;

use homenode_model::{Decision, DecisionBuf, Event, Interest, MoveOutcome, NodeId, Ns};

use crate::homes::Homes;
use crate::queue::Queue;
use crate::{Policy, PolicyContext, Step};

/// See the module.
#[derive(Debug)]
pub struct RoundRobin {
    nodes: Vec<NodeId>,
    homes: Homes,
    queue: Queue,
}

impl RoundRobin {
    /// For the machine of `context`.
    pub fn new(context: &PolicyContext) -> Self {
        Self { nodes: context.memory_nodes(), homes: Homes::new(context), queue: Queue::new() }
    }
}

impl Policy for RoundRobin {
    fn interest(&self) -> Interest {
        Interest { faults: true, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        match *event {
            Event::Fault { page, node } => {
                // On a machine without memory there is no turn, and settle finds no home either.
                let turn = page.0.checked_rem(self.nodes.len() as u64);
                let wanted = turn.map_or(node, |t| self.nodes[t as usize]);
                if let Some(node) = self.homes.settle(page, wanted) {
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
    use crate::testing::{Bench, NODES, machine, roomy, touches};
    use homenode_model::PageNo;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fault_order_does_not_matter((_, touches) in touches()) {
            let context = machine(&roomy());
            let (mut one, mut other) = (
                Bench::new(&context, RoundRobin::new(&context)),
                Bench::new(&context, RoundRobin::new(&context)),
            );
            for (page, node) in &touches {
                one.fault(*page, *node);
            }
            for (page, node) in touches.iter().rev() {
                other.fault(*page, NodeId((node.0 + 1) % NODES as u16));
            }
            prop_assert_eq!(one.homes(), other.homes());
        }

        #[test]
        fn consecutive_pages_spread_evenly(first in 0u64..10_000, count in 0u64..200) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, RoundRobin::new(&context));
            for page in first..first + count {
                bench.fault(PageNo(page), NodeId(0));
            }
            let used: Vec<u64> = context.memory_nodes().iter().map(|n| bench.used(*n)).collect();
            prop_assert!(used.iter().max().unwrap() - used.iter().min().unwrap() <= 1);
        }
    }
}
