//! Out-W: as Out-U, but a page's neighbours on its node count, too.
//!
//! # Problem
//!
//! One page's counts are small. Waiting until they are large makes migration late; acting on small
//! counts makes it wrong.
//!
//! # Approach
//!
//! Tao, Schulz and Karl, section 3.2: programs access neighbouring pages alike. So a node's
//! *relative references* to a page are the weighted sum of its references to the page and to nearby
//! pages. They are compared as Out-U compares references. Only pages on the same node count as
//! neighbours, because the monitor of that node sees no others. `ars.rs` has the choices that the
//! paper leaves open, the weights first of all.
//!
//! `out-w-local` knows the local references, too, as `out-u-local` does.
//!
//! # Terms
//!
//! *Rank*: position of a page among the pages of its home that were accessed in the interval,
//! ascending. *Distance* d of two of these pages: the difference of their ranks, or of their page
//! numbers (option `distance`). *Relative references* R(n) of node n to page i: Σ over pages j of
//! that list with d ≤ `reach` of 2^−d c(j, n), rounded down.
//!
//! # Algorithm
//!
//! At the end of an interval, for each home with memory, ascending, and each of its pages,
//! ascending: if the biggest R among the remote nodes (ties: the lowest node) exceeds the
//! threshold, and its node has memory and room, move the page there.
//!
//! State: 4 bytes a page and node, 36 a page; one more where the threshold adapts.
//!
//! # Properties
//!
//! - `without_reach_it_is_out_u`: at reach 0 it decides what Out-U decides, in another order.
//! - `neighbours_carry_a_page_along`: a page without a reference of its own that pulls it goes with
//!   the pages around it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use homenode_model::{Decision, NodeId, PageRange};

use crate::ars::{Adaptive, Remote, Scale, Weights};
use crate::counting::{Counting, Rule};
use crate::homes::Homes;
use crate::interval::Interval;
use crate::out_u::Options;
use crate::queue::Queue;
use crate::room::Room;
use crate::{Policy, PolicyContext};

struct OutW {
    options: Options,
    weights: Weights,
    adaptive: Adaptive,
    scale: Scale,
    nodes: usize,
    /// The pages of the current home, as indices of the interval.
    local: Vec<u32>,
    /// Their numbers.
    pages: Vec<u64>,
    /// By position in `local`: relative references of remote nodes.
    remote: Vec<Remote>,
    /// Relative references of the home itself.
    own: Vec<u32>,
    /// References of the current node.
    counts: Vec<u32>,
}

/// The policy for the machine of `context`; neighbours count by their `weights`.
pub fn policy(context: &PolicyContext, options: &Options, weights: Weights) -> Box<dyn Policy> {
    let rule = OutW {
        options: *options,
        weights,
        adaptive: Adaptive::new(options.threshold.adaptive),
        scale: Scale::default(),
        nodes: context.nodes(),
        local: Vec::new(),
        pages: Vec::new(),
        remote: Vec::new(),
        own: Vec::new(),
        counts: Vec::new(),
    };
    let policy = Counting::new(context, options.initial, options.when, rule);
    Box::new(policy.with_counters(options.counters))
}

impl OutW {
    /// Computes the relative references to the pages of `home`.
    fn look(&mut self, interval: &Interval, home: NodeId) {
        let Self { local, pages, remote, own, counts, .. } = self;
        local.clear();
        pages.clear();
        for (index, (seen, _)) in interval.rows().enumerate().filter(|(_, (seen, _))| seen.home == home) {
            local.push(index as u32);
            pages.push(seen.page().0);
        }
        remote.clear();
        remote.resize(local.len(), Remote::default());
        own.clear();
        for node in 0..self.nodes {
            if node == home.index() && !self.options.local {
                continue;
            }
            counts.clear();
            counts.extend(local.iter().map(|index| interval.row(*index as usize).1[node]));
            if node == home.index() {
                self.weights.relative(pages, counts, |_, sum| own.push(sum));
            } else {
                self.weights.relative(pages, counts, |i, sum| remote[i].add(node, sum));
            }
        }
    }
    fn send(&mut self, interval: &Interval, room: &mut Room, out: &mut Queue) {
        let threshold = self.options.threshold;
        for (i, (index, remote)) in self.local.iter().zip(&self.remote).enumerate() {
            let goes = match self.options.local {
                false => threshold.exceeded(*remote, self.nodes, self.scale),
                true => threshold.exceeded_beside(*remote, self.own[i], self.nodes, self.scale),
            };
            let (seen, _) = interval.row(*index as usize);
            let (page, to) = (seen.page(), remote.node());
            let majority = u64::from(remote.max) * 2 > u64::from(remote.sum) && remote.sum >= threshold.least;
            self.adaptive.saw(page, goes, majority && !goes);
            if goes && room.has(to) {
                room.moved(seen.home, to);
                out.push(Decision::Move { page, to });
            }
        }
    }
}

impl Rule for OutW {
    fn decide(&mut self, interval: &Interval, homes: &Homes, out: &mut Queue) {
        let mut room = Room::of(homes, self.nodes);
        self.scale.see(interval, self.nodes);
        for home in (0..self.nodes as u16).map(NodeId) {
            self.look(interval, home);
            self.send(interval, &mut room, out);
        }
        self.adaptive.adapt(&mut self.options.threshold.factor);
    }
    fn freed(&mut self, pages: PageRange, _: &mut dyn FnMut(NodeId)) {
        self.adaptive.free(pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ars::Distance;
    use crate::initial::Initial;
    use crate::out_u::{self, PLAIN};
    use crate::testing::{Bench, NODES, Row, counts, machine, roomy};
    use homenode_model::PageNo;
    use proptest::prelude::*;

    const fn weights(reach: u32) -> Weights {
        Weights { reach, distance: Distance::Rank }
    }

    proptest! {
        #[test]
        fn without_reach_it_is_out_u(rounds in counts(), local: bool) {
            let context = machine(&roomy());
            let options = Options { local, ..PLAIN };
            let mut one = Bench::new(&context, policy(&context, &options, weights(0)));
            let mut other = Bench::new(&context, out_u::policy(&context, &options));
            for round in &rounds {
                one.region(round);
                other.region(round);
                prop_assert_eq!(one.homes(), other.homes());
            }
        }

        #[test]
        fn neighbours_carry_a_page_along(pages in 3u64..40, at in 1u64..39, count in 8u32..1000) {
            let (context, at) = (machine(&roomy()), at.min(pages - 2));
            let initial = Initial::OneNode;
            let mut bench = Bench::new(&context, policy(&context, &Options { initial, ..PLAIN }, weights(8)));
            let row = |p: u64| {
                let mut counts = [0; NODES];
                // The page in the middle is accessed by its home alone, the others by node 1.
                counts[usize::from(p != at)] = count;
                Row { page: PageNo(p), counts, write: false }
            };
            bench.region(&(0..pages).map(row).collect::<Vec<_>>());
            prop_assert_eq!(bench.home(PageNo(at)), Some(NodeId(1)));
        }
    }
}
