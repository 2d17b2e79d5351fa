//! Competitive: each page lives on the home that makes the slowest node's cost least.
//!
//! # Problem
//!
//! Next touch believes the first toucher. A page that several nodes use needs their counts. A
//! program that repeats itself shows its counts in one iteration.
//!
//! # Approach
//!
//! Nikolopoulos, Ayguadé and Polychronopoulos, section 3.1: after an iteration, the policy reads
//! how often each node accessed each page. For each possible home it computes the largest latency
//! that any one node's accesses to the page cause. It moves the page to the home with the least of
//! these. The next iteration will access the page as this one did.
//!
//! The paper refers to earlier work for the migration criterion, and does not mention nodes without
//! room. We chose, each as an option: a move must lower the largest latency by a share of itself
//! (`gain`) and pay for itself within a number of iterations (`horizon`). A page may go back to its
//! former home only so often (`bounces`). After `quiet` intervals without a move the policy stops
//! for good, as the paper's engine does when the placement is stable. If a target has no room, the
//! next best is taken.
//!
//! # Terms
//!
//! *Count* c(n): accesses of node n to the page in the interval, reads and writes alike. *Latency*
//! l(n, h): of an access from n to memory of h, without contention. *Cost* of home h: max over n of
//! c(n) · l(n, h); ties by the sum over n. *Interval*: from one iteration mark to the next (option
//! `at`). What comes before the first is initialisation and not counted.
//!
//! # Algorithm
//!
//! At the end of an interval, for each page accessed in it, ascending:
//!
//! 1. t = the home of least cost among those with room, ties to the present home h, then to the
//!    lower id.
//! 2. saved = cost(h) − cost(t). Leave the page unless saved > 0, 100 · saved ≥ `gain` · cost(h),
//!    and `horizon` · saved ≥ the cost of a move.
//! 3. Leave it if t is where it came from and it has gone back `bounces` times: it is frozen.
//! 4. Move it to t.
//!
//! 60 accesses of a and 40 of b, 216 ns local and 432 ns remote: on a max(60 · 216, 40 · 432) = 17
//! 280 ns, on b max(60 · 432, 40 · 216) = 25 920 ns. From b to a, 33 % are saved.
//!
//! State: 4 bytes a page and node and 12 a page, and 2 for its home.
//!
//! # Properties
//!
//! - `the_largest_latency_is_least`: without thresholds and with room, after a decision no other
//!   home would have a smaller largest latency for any page of the interval.
//! - `small_gains_are_left`: no page moves that would not save `gain` percent.
//! - `ping_pong_pages_freeze`: whatever the counts, no page goes back to where it came from more
//!   than `bounces` times.
//! - `it_stops_when_stable`: after `quiet` intervals without a move it decides nothing more.
//! - `initialisation_does_not_count`: what happens before the first iteration mark moves nothing.
//! - `regions_do_until_iterations_are_known`: with `at=either` it decides at the end of regions
//!   until the first mark, and that nothing moves until then does not stop it.

use alloc::boxed::Box;

use homenode_model::{Decision, MoveOutcome, MoveResult, NodeId, Ns, PageRange};

use crate::bounces::Bounces;
use crate::counting::{Counting, Rule};
use crate::homes::Homes;
use crate::initial::Initial;
use crate::interval::Interval;
use crate::latency::{Cost, Latencies};
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
    /// Percent of the largest latency that a move must save.
    pub gain: u8,
    /// Intervals within which a move must pay for itself; 0: no such rule.
    pub horizon: u32,
    /// How often a page may go back to a former home.
    pub bounces: u8,
    /// Intervals without a move after which the policy stops; 0: never.
    pub quiet: u32,
}

/// Decides whether a move is worthwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worth {
    gain: u64,
    horizon: u64,
    cost: Ns,
}

impl Worth {
    pub(crate) fn new(context: &PolicyContext, options: &Options) -> Self {
        Self { gain: options.gain.into(), horizon: options.horizon.into(), cost: context.migration }
    }
    /// Whether going from cost `before` to cost `after` is worthwhile.
    pub(crate) const fn it(self, before: Cost, after: Cost) -> bool {
        let saved = after.gain(before);
        let relative = saved.0.saturating_mul(100) >= before.largest.saturating_mul(self.gain);
        saved.0 > 0 && relative && self.pays(saved)
    }
    /// Whether the time saved in an interval pays for a move within the horizon.
    pub(crate) const fn pays(self, saved: Ns) -> bool {
        self.horizon == 0 || saved.times(self.horizon).0 >= self.cost.0
    }
}

/// Counts intervals without moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quiet {
    limit: u32,
    calm: u32,
}

impl Quiet {
    pub(crate) const fn new(limit: u32) -> Self {
        Self { limit, calm: 0 }
    }
    pub(crate) const fn interval(&mut self, moves: bool) {
        self.calm = if moves { 0 } else { self.calm.saturating_add(1) };
    }
    /// Does not count the last interval.
    pub(crate) const fn forget(&mut self) {
        self.calm = 0;
    }
    pub(crate) const fn is_over(self) -> bool {
        self.limit > 0 && self.calm >= self.limit
    }
}

/// The home of least cost among those with room whose largest latency is less than the present
/// home's, with both costs. The present home if there is none.
pub(crate) fn best(
    latencies: &Latencies,
    counts: &[u32],
    home: NodeId,
    room: &Room,
) -> Option<(NodeId, Cost, Cost)> {
    let now = latencies.cost_at(home, counts)?;
    // The cost for the node with the most accesses is nearly always enough to rule a home out.
    let most = (0..counts.len()).max_by_key(|n| counts[*n]).unwrap_or(0);
    let mut best = (now, home);
    for (position, to) in latencies.homes().iter().enumerate() {
        if latencies.part(position, most, counts) < now.largest {
            let cost = latencies.cost(position, counts);
            if cost.largest < now.largest && cost < best.0 && room.has(*to) {
                best = (cost, *to);
            }
        }
    }
    Some((best.1, now, best.0))
}

struct Competitive {
    latencies: Latencies,
    worth: Worth,
    bounces: Bounces,
    quiet: Quiet,
    nodes: usize,
}

/// The policy for the machine of `context`.
pub fn policy(context: &PolicyContext, options: &Options) -> Box<dyn Policy> {
    let rule = Competitive {
        latencies: Latencies::new(context),
        worth: Worth::new(context, options),
        bounces: Bounces::new(options.bounces),
        quiet: Quiet::new(options.quiet),
        nodes: context.nodes(),
    };
    Box::new(Counting::new(context, options.initial, options.when, rule))
}

impl Rule for Competitive {
    const BY_PROPORTION: bool = true;
    fn decide(&mut self, interval: &Interval, homes: &Homes, out: &mut Queue) {
        let mut room = Room::of(homes, self.nodes);
        let mut moves = false;
        for (seen, counts) in interval.rows() {
            let Some((to, before, after)) = best(&self.latencies, counts, seen.home, &room) else { continue };
            let page = seen.page();
            if to != seen.home && self.worth.it(before, after) && self.bounces.allow(page, to) {
                room.moved(seen.home, to);
                moves = true;
                out.push(Decision::Move { page, to });
            }
        }
        // An interval without accesses says nothing.
        if interval.len() > 0 {
            self.quiet.interval(moves);
        }
    }
    fn outcome(&mut self, outcome: &MoveOutcome, from: Option<NodeId>) {
        if let (MoveResult::Moved, Some(from)) = (outcome.result, from) {
            self.bounces.moved(outcome.page, from, outcome.to);
        }
    }
    fn freed(&mut self, pages: PageRange, _: &mut dyn FnMut(NodeId)) {
        self.bounces.free(pages);
    }
    fn was_early(&mut self) {
        self.quiet.forget();
    }
    fn is_done(&self) -> bool {
        self.quiet.is_over()
    }
}

/// Options without thresholds, for tests.
#[cfg(test)]
pub(crate) const EAGER: Options = Options {
    initial: Initial::FirstTouch,
    when: When::Iteration,
    gain: 0,
    horizon: 0,
    bounces: 255,
    quiet: 0,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, Row, counts, machine, roomy};
    use homenode_model::PageNo;
    use proptest::prelude::*;

    fn largest(context: &PolicyContext, row: &Row, home: NodeId) -> u64 {
        let cost = |(n, c): (usize, &u32)| u64::from(*c) * context.latency.at(NodeId(n as u16), home).0;
        row.counts.iter().enumerate().map(cost).max().unwrap()
    }

    proptest! {
        #[test]
        fn the_largest_latency_is_least(rounds in counts()) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &EAGER));
            bench.iteration(&[]);
            for round in &rounds {
                bench.iteration(round);
                for row in round {
                    let home = largest(&context, row, bench.home(row.page).unwrap());
                    for other in context.memory_nodes() {
                        prop_assert!(home <= largest(&context, row, other));
                    }
                }
            }
        }

        #[test]
        fn small_gains_are_left(rounds in counts(), gain in 1u8..100) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &Options { gain, ..EAGER }));
            bench.iteration(&[]);
            for round in &rounds {
                round.iter().for_each(|row| _ = bench.fault(row.page, NodeId(0)));
                let before: alloc::vec::Vec<_> = round.iter().map(|r| bench.home(r.page).unwrap()).collect();
                bench.iteration(round);
                for (row, before) in round.iter().zip(before) {
                    let (from, to) = (largest(&context, row, before),
                        largest(&context, row, bench.home(row.page).unwrap()));
                    let moved = bench.home(row.page) != Some(before);
                    prop_assert!(!moved || (from - to) * 100 >= from * u64::from(gain));
                }
            }
        }

        #[test]
        fn ping_pong_pages_freeze(rounds in counts(), bounces in 0u8..3) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &Options { bounces, ..EAGER }));
            bench.iteration(&[]);
            let mut trail: alloc::collections::BTreeMap<PageNo, alloc::vec::Vec<NodeId>> = Default::default();
            // The same again and again, so that there is something to come back to.
            for round in rounds.iter().cycle().take(40) {
                bench.iteration(round);
                for row in round {
                    let homes = trail.entry(row.page).or_default();
                    let home = bench.home(row.page).unwrap();
                    if homes.last() != Some(&home) {
                        homes.push(home);
                    }
                }
            }
            for homes in trail.values() {
                let back = homes.windows(3).filter(|w| w[0] == w[2]).count();
                prop_assert!(back <= usize::from(bounces), "{homes:?}");
            }
        }

        #[test]
        fn it_stops_when_stable(rounds in counts(), quiet in 1u32..4) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &Options { quiet, ..EAGER }));
            bench.iteration(&[]);
            let mut calm = 0;
            for round in rounds.iter().filter(|r| !r.is_empty()) {
                let before = bench.moves;
                bench.iteration(round);
                let moves = bench.moves > before;
                prop_assert!(!moves || calm < quiet);
                calm = if moves { 0 } else { calm + 1 };
            }
        }

        #[test]
        fn regions_do_until_iterations_are_known(rounds in counts(), marks in 0usize..3) {
            let context = machine(&roomy());
            let options = Options { when: When::Either, quiet: 1, ..EAGER };
            let mut bench = Bench::new(&context, policy(&context, &options));
            let row = |to: usize| {
                let mut counts = [0; crate::testing::NODES];
                counts[to] = 100;
                Row { page: PageNo(99), counts, write: false }
            };
            bench.fault(PageNo(99), NodeId(0));
            for round in &rounds {
                bench.region(round);
                for row in round {
                    let home = largest(&context, row, bench.home(row.page).unwrap());
                    for other in context.memory_nodes() {
                        prop_assert!(home <= largest(&context, row, other));
                    }
                }
            }
            // Quiet or not before, it goes on.
            for _ in 0..3 {
                bench.region(&[row(0)]);
            }
            for _ in 0..marks {
                bench.iteration(&[row(0)]);
            }
            let before = bench.home(PageNo(99));
            bench.region(&[row(2)]);
            let by_region = bench.home(PageNo(99));
            bench.iteration(&[]);
            // From the first mark on the end of a region is none of an interval; the second without
            // a move ends it.
            prop_assert_eq!(before, Some(NodeId(0)));
            prop_assert_eq!(by_region, Some(NodeId(if marks == 0 { 2 } else { 0 })));
            prop_assert_eq!(bench.home(PageNo(99)), Some(NodeId(if marks < 2 { 2 } else { 0 })));
        }

        #[test]
        fn initialisation_does_not_count(rounds in counts()) {
            let context = machine(&roomy());
            let mut bench = Bench::new(&context, policy(&context, &EAGER));
            if let Some(first) = rounds.first() {
                bench.iteration(first);
            }
            prop_assert_eq!(bench.moves, 0);
        }
    }
}
