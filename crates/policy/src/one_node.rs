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

use homenode_model::{NodeId, PageNo};

use crate::PolicyContext;
use crate::at_first_touch::{AtFirstTouch, FirstHome};

/// See the module.
pub type OneNode = AtFirstTouch<OnNode>;

/// All pages on this node.
#[derive(Debug)]
pub struct OnNode(NodeId);

impl OneNode {
    /// All pages on `node`, which must be a node of the machine of `context`.
    pub fn new(context: &PolicyContext, node: NodeId) -> Self {
        Self::with(context, OnNode(node))
    }
}

impl FirstHome for OnNode {
    fn wanted(&self, _page: PageNo, _toucher: NodeId) -> NodeId {
        self.0
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
