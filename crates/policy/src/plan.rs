//! Off-line plan: homes computed beforehand.
//!
//! # Problem
//!
//! Finding the right homes at run time takes an iteration, and moving pages there takes time. A
//! program that runs twice has shown everything the first time.
//!
//! # Approach
//!
//! Nikolopoulos, Ayguadé and Polychronopoulos, sections 1 and 3.1.1 (OpenMP_runtime_offline): the
//! counts of a whole run are fed back, and each page gets its home at its first touch. In the paper
//! the compiler does that. Here a driver gets a [`Placement`]. [`best`] makes one from a
//! recording's counts with the criterion of [`crate::competitive`]. If several homes are equally
//! good, it deals pages out as [`crate::competitive_balanced`] does, which MG needs.
//!
//! # Terms
//!
//! *Plan*: a home for some pages. *Toucher*: the node that faults.
//!
//! # Algorithm
//!
//! At a fault: the plan's home if the page has one and it has room, else the nearest to it that
//! has; the toucher's where the plan says nothing. Nothing ever moves.
//!
//! # Properties
//!
//! - `the_plan_is_kept`: with room, every page's home is the planned one, whoever touches it.
//! - `the_rest_is_first_touch`: pages that are not in the plan go where first touch puts them.
//! - `the_best_plan_has_the_least_largest_latency`: with room and no slack, no other home has a
//!   smaller largest latency.

use alloc::sync::Arc;

use homenode_model::{AccessKind, Histogram, NodeId, PageNo, Placement};

use crate::PolicyContext;
use crate::at_first_touch::{AtFirstTouch, FirstHome};
use crate::competitive_balanced::{Balance, Balancer};
use crate::homes::Homes;
use crate::interval::Interval;
use crate::room::Room;

/// See the module.
pub type Plan = AtFirstTouch<Planned>;

/// Pages on the homes of a plan. A page without a planned home on this machine goes to its toucher.
#[derive(Debug)]
pub struct Planned {
    plan: Arc<Placement>,
    nodes: usize,
}

impl Plan {
    /// Puts pages on the homes of `plan`, on the machine of `context`.
    pub fn new(context: &PolicyContext, plan: Arc<Placement>) -> Self {
        Self::with(context, Planned { plan, nodes: context.nodes() })
    }
}

impl FirstHome for Planned {
    fn wanted(&self, page: PageNo, toucher: NodeId) -> NodeId {
        self.plan.home(page).filter(|home| home.index() < self.nodes).unwrap_or(toucher)
    }
}

/// The best placement of pages with the accesses of `counts`, on the machine of `context`. `slack`
/// is the percentage above the least cost within which homes are equally good, as in
/// [`crate::competitive_balanced`].
pub fn best(context: &PolicyContext, counts: &Histogram, slack: u32) -> Placement {
    let mut interval = Interval::new(context.nodes());
    let mut plan = Placement::new();
    let Some(anywhere) = context.memory_nodes().first().copied() else { return plan };
    for (page, row) in counts.rows() {
        for (node, [reads, writes]) in (0u16..).map(NodeId).zip(row) {
            let count = reads.saturating_add(*writes);
            if count > 0 {
                interval.add(page, anywhere, node, AccessKind::Read, count);
            }
        }
    }
    let homes = Homes::new(context);
    let mut room = Room::of(&homes, context.nodes());
    Balancer::new(context, Balance { slack, even: 0 }).deal(&interval, &mut room, |index, _, _, to, room| {
        room.copied(to);
        plan.set(interval.row(index).0.page(), to);
        to
    });
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FirstTouch;
    use crate::testing::{Bench, counts, machine, roomy, touches};
    use homenode_model::PageNo;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_plan_is_kept((_, touches) in touches(), homes in proptest::collection::vec(0u16..3, 64)) {
            let context = machine(&roomy());
            let mut plan = Placement::new();
            homes.iter().enumerate().for_each(|(p, n)| plan.set(PageNo(p as u64), NodeId(*n)));
            let mut bench = Bench::new(&context, Plan::new(&context, Arc::new(plan)));
            for (page, node) in touches {
                bench.fault(page, node);
                prop_assert_eq!(bench.home(page), Some(NodeId(homes[page.index()])));
            }
        }

        #[test]
        fn the_rest_is_first_touch((capacity, touches) in touches()) {
            let context = machine(&capacity);
            let mut bench = Bench::new(&context, Plan::new(&context, Arc::default()));
            let mut plain = Bench::new(&context, FirstTouch::new(&context));
            for (page, node) in touches {
                prop_assert_eq!(bench.fault(page, node), plain.fault(page, node));
            }
        }

        #[test]
        fn the_best_plan_has_the_least_largest_latency(rounds in counts()) {
            let context = machine(&roomy());
            let mut histogram = Histogram::new(context.nodes());
            for row in rounds.iter().flatten() {
                for (node, count) in (0u16..).map(NodeId).zip(row.counts) {
                    histogram.add(row.page, node, AccessKind::Write, count);
                }
            }
            let plan = best(&context, &histogram, 0);
            for (page, row) in histogram.rows() {
                let largest = |home: NodeId| {
                    let of = |(n, c): (usize, &[u32; 2])| {
                        u64::from(c[0] + c[1]) * context.latency.at(NodeId(n as u16), home).0
                    };
                    row.iter().enumerate().map(of).max().unwrap()
                };
                let least = context.memory_nodes().into_iter().map(largest).min();
                prop_assert_eq!(plan.home(page).map(largest), least);
            }
        }
    }
}
