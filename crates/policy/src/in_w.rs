//! In-W: a node fetches the remote pages that it uses.
//!
//! # Problem
//!
//! If pages are dealt round robin, neighbours in memory are on different nodes. Pages that Out-W
//! takes as neighbours on one node are then far apart in memory.
//!
//! # Approach
//!
//! Tao, Schulz and Karl, section 3.2: each node looks at its own references to all remote pages.
//! These are neighbours in memory, except for the node's own pages. If the node's relative
//! references to a page exceed the average by a threshold, it fetches the page. The node does not
//! know who else uses the page. So the page goes to the first node that wants it, and is fixed
//! there.
//!
//! The paper does not say what *the average* is over, and a node sees no other node's references.
//! Here it is over the remote pages that the node accessed. R − avg > 2 · avg would fetch nothing
//! from an even pattern, from which the paper's SOR gains most. So the default fetches pages with
//! more than half the average ([`Form::Share`](crate::ars::Form), factor 50 %). Other forms are
//! options (factor 200 %). With [`Form::Constant`](crate::ars::Form), *the average* is the average
//! references performed to a page, from which the paper takes the threshold of all schemes, too.
//! *Fixed* means for `rest` intervals. The weights are those of `ars.rs`.
//!
//! Moves on the paper's FFT, LU, RADIX, WATER and SOR (`homenode paper tao-readings`): 103, 23,
//! 395, 35, 31 with `constant`, of which one is a ping-pong; 281, 33, 919, 118, 146 with `share`,
//! of which 354 are. The paper has 96, 30, 106, 33, 26 and one.
//!
//! # Terms
//!
//! *Rank*: position of a page among the remote pages that the node accessed in the interval,
//! ascending. *Relative references*: as in Out-W, of this node, over that list.
//!
//! # Algorithm
//!
//! At the end of an interval, for each node with memory, ascending: for each of its remote pages,
//! ascending, that is not fixed: if its relative references exceed the threshold and the node has
//! room, move the page to the node, and fix it.
//!
//! State: 4 bytes a page and node, 20 a page, and one byte a page that moved.
//!
//! # Properties
//!
//! - `a_page_goes_to_somebody_who_uses_it`: every move goes to a node that accessed the page in the
//!   interval.
//! - `a_fetched_page_is_fixed`: after a move a page stays for `rest` intervals.
//! - `an_even_pattern_is_fetched`: remote pages that one node alone accesses, all alike, all come
//!   to it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use homenode_model::{Decision, NodeId, PageNo, PageRange, Rows};

use crate::ars::{Adaptive, Form, Scale, Threshold, Weights};
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
    /// The threshold; [`Form::Share`]: R > factor · avg; [`Form::Constant`]: R − A > factor · A,
    /// with the A of `ars.rs`; else R − avg > factor · avg.
    pub threshold: Threshold,
    /// How long counts count.
    pub counters: Counters,
    /// How neighbours count.
    pub weights: Weights,
    /// Intervals that a fetched page stays.
    pub rest: u8,
}

/// How much a node wants a remote page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    /// It uses the page no more than the average of its remote pages.
    None,
    /// It uses the page more, and the threshold holds the page back.
    Used,
    /// It fetches the page, if the page is not fixed.
    Wanted,
}

impl Wish {
    const fn of(used: bool) -> Self {
        if used { Self::Used } else { Self::None }
    }
}

struct InW {
    options: Options,
    context: Vec<u64>,
    /// By page: intervals until it may move.
    rest: Rows<u8>,
    adaptive: Adaptive,
    /// By page of the interval: the strongest wish of a node for it.
    wishes: Vec<Wish>,
    scale: Scale,
    /// The remote pages of the current node, as indices of the interval, and its relative
    /// references.
    remote: Vec<u32>,
    /// Their numbers.
    pages: Vec<u64>,
    sums: Vec<u32>,
    /// Its references.
    counts: Vec<u32>,
}

/// The policy for the machine of `context`.
pub fn policy(context: &PolicyContext, options: &Options) -> Box<dyn Policy> {
    let rule = InW {
        options: *options,
        context: context.capacity.clone(),
        rest: Rows::new(1, 0),
        adaptive: Adaptive::new(options.threshold.adaptive),
        wishes: Vec::new(),
        scale: Scale::default(),
        remote: Vec::new(),
        pages: Vec::new(),
        sums: Vec::new(),
        counts: Vec::new(),
    };
    let policy = Counting::new(context, options.initial, options.when, rule);
    Box::new(policy.with_counters(options.counters))
}

impl InW {
    fn look(&mut self, interval: &Interval, node: NodeId) {
        let Self { remote, pages, sums, counts, .. } = self;
        remote.clear();
        pages.clear();
        counts.clear();
        for (index, (seen, row)) in interval.rows().enumerate() {
            let count = row[node.index()];
            if seen.home != node && count > 0 {
                remote.push(index as u32);
                pages.push(seen.page().0);
                counts.push(count);
            }
        }
        sums.clear();
        self.options.weights.relative(pages, counts, |_, sum| sums.push(sum));
    }
    /// The bound for the references to a page, rounded down because references are whole numbers.
    fn bound(&self) -> u32 {
        let Threshold { form, factor, least, .. } = self.options.threshold;
        let all: u64 = self.sums.iter().map(|s| u64::from(*s)).sum();
        let of_average =
            |factor: u32| u128::from(all) * u128::from(factor) / (100 * self.sums.len().max(1) as u128);
        let bound = match form {
            Form::Share => of_average(factor),
            Form::Constant => self.scale.times(factor + 100),
            Form::Literal | Form::LiteralAll | Form::Others => of_average(factor + 100),
        };
        u32::try_from(bound).unwrap_or(u32::MAX).max(least.saturating_sub(1))
    }
    /// The average of the node's relative references, rounded down.
    fn average(&self) -> u32 {
        let all: u64 = self.sums.iter().map(|s| u64::from(*s)).sum();
        u32::try_from(all / self.sums.len().max(1) as u64).unwrap_or(u32::MAX)
    }
    fn is_fixed(&self, page: PageNo) -> bool {
        self.rest.row(page.index()).is_some_and(|r| r[0] > 0)
    }
}

impl Rule for InW {
    fn decide(&mut self, interval: &Interval, homes: &Homes, out: &mut Queue) {
        let mut room = Room::of(homes, self.context.len());
        self.scale.see(interval, self.context.len());
        self.wishes.clear();
        self.wishes.resize(interval.len(), Wish::None);
        self.rest.range_mut(0..usize::MAX).for_each(|(_, row)| row[0] = row[0].saturating_sub(1));
        for node in (0..self.context.len() as u16).map(NodeId) {
            if self.context[node.index()] == 0 {
                continue;
            }
            self.look(interval, node);
            let (bound, average) = (self.bound(), self.average());
            for i in 0..self.remote.len() {
                let row = self.remote[i] as usize;
                let wish = if self.sums[i] > bound { Wish::Wanted } else { Wish::of(self.sums[i] > average) };
                self.wishes[row] = self.wishes[row].max(wish);
                if wish != Wish::Wanted || !room.has(node) {
                    continue;
                }
                let (seen, _) = interval.row(row);
                let page = seen.page();
                if !self.is_fixed(page) {
                    // One more than the rest: the end of the next interval subtracts one before it
                    // looks.
                    self.rest.row_mut(page.index())[0] = self.options.rest.saturating_add(1);
                    room.moved(seen.home, node);
                    out.push(Decision::Move { page, to: node });
                }
            }
        }
        for ((seen, _), wish) in interval.rows().zip(&self.wishes) {
            self.adaptive.saw(seen.page(), *wish == Wish::Wanted, *wish == Wish::Used);
        }
        self.adaptive.adapt(&mut self.options.threshold.factor);
    }
    fn freed(&mut self, pages: PageRange, _: &mut dyn FnMut(NodeId)) {
        self.adaptive.free(pages);
        self.rest.range_mut(pages.indices()).for_each(|(_, row)| row[0] = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ars::Distance;
    use crate::testing::{Bench, NODES, Row, counts, machine, roomy};
    use proptest::prelude::*;

    const PLAIN: Options = Options {
        initial: Initial::RoundRobin,
        when: When::Region,
        threshold: Threshold { form: Form::Share, factor: 50, adaptive: false, least: 1 },
        counters: Counters::Interval,
        weights: Weights { reach: 8, distance: Distance::Rank },
        rest: 3,
    };

    proptest! {
        #[test]
        fn a_page_goes_to_somebody_who_uses_it(rounds in counts()) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &PLAIN));
            for round in &rounds {
                round.iter().for_each(|row| _ = bench.fault(row.page, NodeId(0)));
                let before = bench.homes().clone();
                bench.region(round);
                for (page, home) in bench.homes().iter().filter(|(p, h)| before.home(*p) != Some(*h)) {
                    let row = round.iter().find(|r| r.page == page);
                    prop_assert!(row.is_some_and(|r| r.counts[home.index()] > 0));
                }
            }
        }

        #[test]
        fn a_fetched_page_is_fixed(rounds in counts()) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &PLAIN));
            let mut since = [100u32; 64];
            for round in rounds.iter().cycle().take(30) {
                round.iter().for_each(|row| _ = bench.fault(row.page, NodeId(0)));
                let before = bench.homes().clone();
                bench.region(round);
                for (page, home) in before.iter() {
                    let moved = bench.home(page) != Some(home);
                    prop_assert!(!moved || since[page.index()] >= u32::from(PLAIN.rest));
                    since[page.index()] = if moved { 0 } else { since[page.index()] + 1 };
                }
            }
        }

        #[test]
        fn an_even_pattern_is_fetched(pages in 1u64..64, node in 0u16..3, count in 2u32..1000) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &PLAIN));
            let mut counts = [0; NODES];
            counts[usize::from(node)] = count;
            let rows: Vec<Row> = (0..pages).map(|p| Row { page: PageNo(p), counts, write: true }).collect();
            bench.region(&rows);
            prop_assert_eq!(bench.used(NodeId(node)), pages);
        }
    }
}
