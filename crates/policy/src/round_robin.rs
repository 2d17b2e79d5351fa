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

use homenode_model::{NodeId, PageNo};

use crate::PolicyContext;
use crate::at_first_touch::{AtFirstTouch, FirstHome, in_turn};

/// See the module.
pub type RoundRobin = AtFirstTouch<InTurn>;

/// Pages in turn on these nodes.
#[derive(Debug)]
pub struct InTurn(Vec<NodeId>);

impl RoundRobin {
    /// For the machine of `context`.
    pub fn new(context: &PolicyContext) -> Self {
        Self::with(context, InTurn(context.memory_nodes()))
    }
}

impl FirstHome for InTurn {
    fn wanted(&self, page: PageNo, toucher: NodeId) -> NodeId {
        in_turn(&self.0, page, toucher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, NODES, machine, roomy, touches};
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
