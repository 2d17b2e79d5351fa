//! First touch.
//!
//! # Problem
//!
//! A page needs a home at its first touch, when only its toucher is known.
//!
//! # Approach
//!
//! The first toucher will use the page. Linux, Solaris and IRIX do this by default, and all four
//! papers compare with it. Löf's PI is this policy with a parallel initialisation, SI the same with
//! a serial one.
//!
//! # Terms
//!
//! *Toucher*: the node whose CPU faults. *Nearest memory*: lowest latency, ties by node id; the
//! toucher itself if it has memory.
//!
//! # Algorithm
//!
//! At a fault, walk the toucher's nodes from the nearest outwards and take the first with room.
//! Nothing ever moves.
//!
//! # Properties
//!
//! - `nearest_with_room`: no node that is nearer to the toucher than the page's home has room at
//!   the fault.
//! - `pages_never_move`: no decision but a home for the page that faulted.

use homenode_model::{NodeId, PageNo};

use crate::PolicyContext;
use crate::at_first_touch::{AtFirstTouch, FirstHome};

/// See the module.
pub type FirstTouch = AtFirstTouch<OnToucher>;

/// Each page on the node of its first toucher.
#[derive(Debug)]
pub struct OnToucher;

impl FirstTouch {
    /// For the machine of `context`.
    pub fn new(context: &PolicyContext) -> Self {
        Self::with(context, OnToucher)
    }
}

impl FirstHome for OnToucher {
    fn wanted(&self, _page: PageNo, toucher: NodeId) -> NodeId {
        toucher
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, machine, touches};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nearest_with_room((capacity, touches) in touches()) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, FirstTouch::new(&context));
            for (page, node) in touches {
                let room = bench.room();
                let Some(home) = bench.fault(page, node) else { continue };
                let order = &context.nearest[node.index()];
                prop_assert_eq!(Some(&home), order.iter().find(|n| room[n.index()] > 0));
            }
        }

        #[test]
        fn pages_never_move((capacity, touches) in touches()) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, FirstTouch::new(&context));
            for (page, node) in touches {
                bench.fault(page, node);
                bench.touch(page, node);
            }
            prop_assert_eq!(bench.moves, 0);
        }
    }
}
