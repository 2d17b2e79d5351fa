//! Out-U: a node sends a page to the remote node that uses it most.
//!
//! # Problem
//!
//! A monitor at a node's link sees the references of other nodes to the node's pages, but not the
//! node's own. From these alone, a page must be sent away if and only if it belongs elsewhere.
//!
//! # Approach
//!
//! Tao, Schulz and Karl, section 3.2: if the biggest remote count of a page exceeds the average of
//! the remote counts by a threshold, the page goes to the node with that count. The threshold is
//! high enough that a page which mainly its own node uses, unseen, does not show so uneven a
//! pattern. `ars.rs` has the choices that the paper leaves open.
//!
//! `out-u-local` is in the paper, too, to show what the missing knowledge costs. It compares the
//! biggest remote count with the local count.
//!
//! # Terms
//!
//! *Remote counts* of a page: references in the interval by the nodes other than its home.
//! *Interval*: from the end of one parallel region to the next (option `at`).
//!
//! # Algorithm
//!
//! At the end of an interval, for each page referenced in it, ascending: if the biggest remote
//! count (ties: the lowest node) exceeds the threshold, and its node has memory and room, move the
//! page there.
//!
//! 30 references by node 1, 5 and 5 by nodes 2 and 3: 30 > 2 · 10, the page goes to node 1.
//!
//! State: 4 bytes a page and node, 8 a page; one more where the threshold adapts. Pages that were
//! not referenced in the interval take no room, unless counters are kept until a page moves.
//!
//! # Properties
//!
//! - `a_dominating_node_gets_the_page`: after a decision no remote node of a page that stayed
//!   exceeded the threshold, and each page that moved is with the biggest.
//! - `local_references_are_not_seen`: without local knowledge, the home's own references change no
//!   decision.

use alloc::boxed::Box;

use homenode_model::{Decision, NodeId, PageRange};

use crate::ars::{Adaptive, Remote, Scale, Threshold};
use crate::counting::{Counting, Rule};
use crate::homes::Homes;
use crate::initial::Initial;
use crate::interval::{Counters, Interval};
use crate::queue::Queue;
use crate::room::Room;
use crate::when::When;
use crate::{Policy, PolicyContext};

/// Options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where pages live before the policy acts.
    pub initial: Initial,
    /// When it decides.
    pub when: When,
    /// The threshold.
    pub threshold: Threshold,
    /// How long counts count.
    pub counters: Counters,
    /// Whether local references are known.
    pub local: bool,
}

struct OutU {
    threshold: Threshold,
    local: bool,
    adaptive: Adaptive,
    scale: Scale,
    nodes: usize,
}

/// The policy for the machine of `context`.
pub fn policy(context: &PolicyContext, options: &Options) -> Box<dyn Policy> {
    let rule = OutU {
        threshold: options.threshold,
        local: options.local,
        adaptive: Adaptive::new(options.threshold.adaptive),
        scale: Scale::default(),
        nodes: context.nodes(),
    };
    let policy = Counting::new(context, options.initial, options.when, rule);
    Box::new(policy.with_counters(options.counters))
}

impl Rule for OutU {
    fn decide(&mut self, interval: &Interval, homes: &Homes, out: &mut Queue) {
        let mut room = Room::of(homes, self.nodes);
        self.scale.see(interval, self.nodes);
        for (seen, counts) in interval.rows() {
            let home = seen.home.index();
            let mut remote = Remote::default();
            counts.iter().enumerate().filter(|(n, _)| *n != home).for_each(|(n, c)| remote.add(n, *c));
            let goes = match self.local {
                false => self.threshold.exceeded(remote, self.nodes, self.scale),
                true => self.threshold.exceeded_beside(remote, counts[home], self.nodes, self.scale),
            };
            let (page, to) = (seen.page(), remote.node());
            let majority =
                u64::from(remote.max) * 2 > u64::from(remote.sum) && remote.sum >= self.threshold.least;
            self.adaptive.saw(page, goes, majority && !goes);
            if goes && room.has(to) {
                room.moved(seen.home, to);
                out.push(Decision::Move { page, to });
            }
        }
        self.adaptive.adapt(&mut self.threshold.factor);
    }
    fn freed(&mut self, pages: PageRange, _: &mut dyn FnMut(NodeId)) {
        self.adaptive.free(pages);
    }
}

/// The options of the paper with intervals that tests can make.
#[cfg(test)]
pub(crate) const PLAIN: Options = Options {
    initial: Initial::RoundRobin,
    when: When::Region,
    threshold: Threshold { form: crate::ars::Form::Share, factor: 200, adaptive: false, least: 1 },
    counters: Counters::Interval,
    local: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, Row, counts, machine, roomy};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// The remote counts of a page whose home is `home`: the biggest, its node, the others' sum.
    fn remote(row: &Row, home: NodeId) -> (u32, usize, u32) {
        let others = row.counts.iter().enumerate().filter(|(n, _)| *n != home.index());
        let (node, max) = others.clone().max_by_key(|(n, c)| (**c, core::cmp::Reverse(*n))).unwrap();
        (*max, node, others.map(|(_, c)| *c).sum::<u32>() - *max)
    }

    proptest! {
        #[test]
        fn a_dominating_node_gets_the_page(rounds in counts()) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &PLAIN));
            for round in &rounds {
                round.iter().for_each(|row| _ = bench.fault(row.page, NodeId(0)));
                let before: Vec<NodeId> = round.iter().map(|r| bench.home(r.page).unwrap()).collect();
                bench.region(round);
                for (row, home) in round.iter().zip(before) {
                    let (max, node, others) = remote(row, home);
                    // Node 3 has no memory and takes nothing.
                    let goes = max > 2 * others && node != 3;
                    let want = if goes { NodeId(node as u16) } else { home };
                    prop_assert_eq!(bench.home(row.page), Some(want));
                }
            }
        }

        #[test]
        fn local_references_are_not_seen(rounds in counts(), local in 1u32..1_000_000) {
            let context = machine(&roomy());
            let mut one = Bench::new(&context, policy(&context, &PLAIN));
            let mut other = Bench::new(&context, policy(&context, &PLAIN));
            for round in &rounds {
                one.region(round);
                let mut more = round.clone();
                for row in &mut more {
                    _ = other.fault(row.page, NodeId(0));
                    row.counts[other.home(row.page).unwrap().index()] = local;
                }
                other.region(&more);
                prop_assert_eq!(one.homes(), other.homes());
            }
        }
    }
}
