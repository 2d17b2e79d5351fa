//! Daemon: in each period, moves a few pages to the nodes that use them, and copies pages that many
//! nodes read.
//!
//! # Problem
//!
//! A program says nothing of itself: neither regions nor iterations, nor where its pattern changes.
//! And an operating system cannot stop a program to move half of its memory.
//!
//! # Approach
//!
//! Sun's WildFire, as Löf, Nordén and Holmgren describe it (SI+TMIG; Hagersten and Koster,
//! Noordergraaf and van der Pas). Pages start by first touch. A daemon finds pages on the wrong
//! node and migrates them. It finds pages that threads of several nodes use and replicates them. A
//! parameter limits the number a unit of time, so several iterations pass until all pages are in
//! place.
//!
//! The papers do not say how the daemon recognises a wrong node, nor its period and limit. We
//! chose, as options: a node with `factor` percent of the home's count (and the most) is the right
//! one. A page is shared if at least two nodes have `share` percent of its accesses each.
//!
//! There are two kinds of replicas. Option `replicate` chooses one:
//!
//! - `lines`: WildFire's own, coherent by cache line in hardware (S-COMA). A sharer gets a frame
//!   for the page, and its lines come when it uses them. Writes take single lines away, so the
//!   policy replicates every shared page, written or not. The driver makes room for a frame: it
//!   gives up the node's frame that has gone without a miss for longest.
//! - `yes`: copies of whole pages, which all go at a write. The policy copies only pages that
//!   nobody wrote in the interval. A page that lost its copies is not copied again for `rest`
//!   periods, and for twice as many after each further loss, 255 at most.
//!
//! # Terms
//!
//! *Period*: time between two looks at the counts. *Gain* of a decision: the time that the accesses
//! of the period would have saved with it.
//!
//! # Algorithm
//!
//! Every period, for each page accessed in it at least `least` times:
//!
//! 1. If it is shared and was only read (with `lines`: if it is shared): copy it to each node that
//!    has its share, memory and (except with `lines`) room, and neither the page nor a copy.
//! 2. Else if it has no copies: n = the node with the largest count, ties to the home, then to the
//!    lower id. Move the page to n if count(n) · 100 > `factor` · count(home), and n has memory and
//!    room.
//! 3. Carry out the `rate` decisions of the largest gain (ties: the lower page, then the lower
//!    node), in order of pages.
//!
//! Reads that a copy serves are told as accesses to the page, so a replicated page goes on being
//! shared, and moves only after a write.
//!
//! State: 4 bytes a page and node, 8 a page, 2 a page that was ever copied, about 24 a page that
//! has copies.
//!
//! # Properties
//!
//! - `no_more_than_the_rate`: no poll decides more than `rate` moves and copies.
//! - `only_pages_that_are_read_are_copied`: whatever is written in a period is not copied at its
//!   end.
//! - `a_page_is_copied_less_and_less_often`: a page that is written between any two periods is
//!   copied at ever longer intervals: at most twelve times in 1200 periods.
//! - `pages_that_are_written_get_frames`: with `lines`, a shared page is replicated though it is
//!   written, and keeps its frames.
//! - `it_sleeps_between`: between two periods it decides nothing.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use homenode_model::{Decision, MoveOutcome, MoveResult, NodeId, Ns, PageNo, PageRange, Rows};

use crate::counting::{Counting, Rule};
use crate::homes::Homes;
use crate::initial::Initial;
use crate::interval::{Interval, Seen};
use crate::latency::Latencies;
use crate::queue::Queue;
use crate::room::Room;
use crate::when::When;
use crate::{Policy, PolicyContext};

/// Options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where pages live before the policy acts.
    pub initial: Initial,
    /// Time between two looks.
    pub period: Ns,
    /// Most moves and copies a period.
    pub rate: u32,
    /// Percent of the home's count that a node must exceed.
    pub factor: u32,
    /// Percent of a page's accesses that make a node a sharer.
    pub share: u8,
    /// Accesses below which a page stays.
    pub least: u32,
    /// Whether and how pages are replicated.
    pub replicate: Replicas,
    /// Periods after the first loss of its copies in which a page is not copied.
    pub rest: u8,
}

/// The kind of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// None.
    No,
    /// Copies of whole pages.
    Pages,
    /// Frames whose lines come on demand.
    Lines,
}

/// The history of a page that lost its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lost {
    /// Periods until it may be copied.
    rest: u8,
    /// Periods that it rests after the next loss; 0: it has never lost any.
    next: u8,
}

/// A decision that may be carried out: gain, index in the interval, node, whether it is a copy.
type Candidate = (Reverse<u64>, u32, NodeId, bool);

struct Daemon {
    options: Options,
    latencies: Latencies,
    nodes: usize,
    lost: Rows<Lost>,
    /// Nodes with copies, by page, a bit each.
    copies: BTreeMap<PageNo, u64>,
    candidates: Vec<Candidate>,
    /// The worst candidate once there are enough. Worse ones need not be listed.
    worst: Option<Candidate>,
}

/// The policy for the machine of `context`.
pub fn policy(context: &PolicyContext, options: &Options) -> Box<dyn Policy> {
    let rule = Daemon {
        options: *options,
        latencies: Latencies::new(context),
        nodes: context.nodes(),
        lost: Rows::new(1, Lost { rest: 0, next: 0 }),
        copies: BTreeMap::new(),
        candidates: Vec::new(),
        worst: None,
    };
    Box::new(Counting::new(context, options.initial, When::Every(options.period), rule))
}

impl Daemon {
    fn copies(&self, page: PageNo) -> u64 {
        if self.copies.is_empty() { 0 } else { self.copies.get(&page).copied().unwrap_or(0) }
    }
    fn may_be_copied(&self, seen: Seen) -> bool {
        let rests = || self.lost.row(seen.page().index()).is_some_and(|r| r[0].rest > 0);
        match self.options.replicate {
            Replicas::No => false,
            Replicas::Pages => !seen.written && !rests(),
            Replicas::Lines => true,
        }
    }
    /// Lists the possible decisions about the page at `index`.
    fn consider(&mut self, index: usize, seen: Seen, counts: &[u32]) {
        let sum: u64 = counts.iter().map(|c| u64::from(*c)).sum();
        if sum < u64::from(self.options.least) {
            return;
        }
        let share = sum * u64::from(self.options.share);
        let shares = |c: &u32| u64::from(*c) * 100 >= share && *c > 0;
        if counts.iter().filter(|c| shares(c)).count() > 1 && self.may_be_copied(seen) {
            let copies = self.copies(seen.page());
            for (n, count) in counts.iter().enumerate().filter(|(_, c)| shares(c)) {
                let to = NodeId(n as u16);
                let wants = to != seen.home && n < 64 && copies >> n & 1 == 0;
                if let (true, Some(gain)) = (wants, self.gain(*count, to, seen.home)) {
                    self.list((Reverse(gain), index as u32, to, true));
                }
            }
            return;
        }
        let mut most = seen.home.index();
        for (n, count) in counts.iter().enumerate() {
            if *count > counts[most] {
                most = n;
            }
        }
        let right = u64::from(counts[most]) * 100
            > u64::from(counts[seen.home.index()]) * u64::from(self.options.factor);
        if most != seen.home.index() && right && self.copies(seen.page()) == 0 {
            let to = NodeId(most as u16);
            let cost = |home| Some(self.latencies.cost_at(home, counts)?.sum);
            if let (Some(before), Some(after)) = (cost(seen.home), cost(to)) {
                self.list((Reverse(before.saturating_sub(after)), index as u32, to, false));
            }
        }
    }
    fn list(&mut self, candidate: Candidate) {
        if self.worst.is_some_and(|worst| candidate >= worst) {
            return;
        }
        self.candidates.push(candidate);
        if self.candidates.len() >= 2 * self.options.rate as usize + 1024 {
            self.keep_the_best();
        }
    }
    /// Keeps as many candidates as may be carried out. All candidates differ, so their values alone
    /// decide which are kept.
    fn keep_the_best(&mut self) {
        let rate = self.options.rate as usize;
        if self.candidates.len() > rate {
            let (_, worst, _) = self.candidates.select_nth_unstable(rate);
            self.worst = Some(*worst);
            self.candidates.truncate(rate);
        }
    }
    /// Time that `count` reads of `to` would save with a copy; `None` if the node has no memory.
    fn gain(&self, count: u32, to: NodeId, home: NodeId) -> Option<u64> {
        let mut only = [0; 64];
        only[to.index()] = count;
        let only = &only[..self.nodes.min(64)];
        let cost = |home| Some(self.latencies.cost_at(home, only)?.sum);
        Some(cost(home)?.saturating_sub(cost(to)?))
    }
}

impl Rule for Daemon {
    const BY_PROPORTION: bool = true;
    fn decide(&mut self, interval: &Interval, homes: &Homes, out: &mut Queue) {
        self.candidates.clear();
        self.worst = None;
        for (index, (seen, counts)) in interval.rows().enumerate() {
            self.consider(index, seen, counts);
        }
        for (_, row) in self.lost.range_mut(0..usize::MAX) {
            row[0].rest = row[0].rest.saturating_sub(1);
        }
        self.keep_the_best();
        self.candidates.sort_unstable_by_key(|(_, index, to, _)| (*index, *to));
        let mut room = Room::of(homes, self.nodes);
        for (_, index, to, copy) in &self.candidates {
            let (seen, _) = interval.row(*index as usize);
            let page = seen.page();
            let frame = *copy && self.options.replicate == Replicas::Lines;
            if !frame && !room.has(*to) {
                continue;
            }
            if frame {
                room.copied(*to);
                out.push(Decision::ReplicateLines { page, on: *to });
            } else if *copy {
                room.copied(*to);
                out.push(Decision::Replicate { page, on: *to });
            } else {
                room.moved(seen.home, *to);
                out.push(Decision::Move { page, to: *to });
            }
        }
    }
    fn outcome(&mut self, outcome: &MoveOutcome, _: Option<NodeId>) {
        if outcome.result == MoveResult::Replicated && outcome.to.index() < 64 {
            *self.copies.entry(outcome.page).or_default() |= 1 << outcome.to.0;
        }
    }
    fn collapsed(&mut self, page: PageNo, written: bool, copy: &mut dyn FnMut(NodeId)) {
        bits(self.copies.remove(&page).unwrap_or(0)).for_each(copy);
        if written {
            let lost = &mut self.lost.row_mut(page.index())[0];
            lost.next = if lost.next == 0 { self.options.rest } else { lost.next.saturating_mul(2) };
            // The end of this period subtracts one.
            lost.rest = lost.next.saturating_add(1);
        }
    }
    fn frame_gone(&mut self, page: PageNo, node: NodeId) {
        if let Some(set) = self.copies.get_mut(&page).filter(|_| node.index() < 64) {
            *set &= !(1 << node.0);
            if *set == 0 {
                self.copies.remove(&page);
            }
        }
    }
    fn freed(&mut self, pages: PageRange, copy: &mut dyn FnMut(NodeId)) {
        let end = PageNo(pages.first.0.saturating_add(pages.count));
        let gone: Vec<PageNo> = self.copies.range(pages.first..end).map(|(page, _)| *page).collect();
        for page in gone {
            bits(self.copies.remove(&page).unwrap_or(0)).for_each(&mut *copy);
        }
        self.lost.range_mut(pages.indices()).for_each(|(_, row)| row[0] = Lost { rest: 0, next: 0 });
    }
}

/// The nodes of a set.
fn bits(set: u64) -> impl Iterator<Item = NodeId> {
    (0..64).filter(move |n| set >> n & 1 != 0).map(NodeId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, NODES, Row, counts, machine, roomy};
    use proptest::prelude::*;

    const PLAIN: Options = Options {
        initial: Initial::FirstTouch,
        period: Ns(1000),
        rate: 10,
        factor: 200,
        share: 20,
        least: 1,
        replicate: Replicas::Pages,
        rest: 1,
    };

    fn bench(options: &Options) -> Bench<Box<dyn Policy>> {
        let context = machine(&roomy());
        let mut bench = Bench::new(&context, policy(&context, options));
        bench.later(Ns(0));
        bench
    }

    fn copied(bench: &Bench<Box<dyn Policy>>) -> usize {
        (0..64).map(|p| bench.copies(PageNo(p)).len()).sum()
    }

    proptest! {
        #[test]
        fn no_more_than_the_rate(rounds in counts(), rate in 1u32..30) {
            let mut bench = bench(&Options { rate, ..PLAIN });
            for round in &rounds {
                bench.tell(round);
                let before = bench.moves + copied(&bench) as u64;
                bench.later(PLAIN.period);
                let after = bench.moves + copied(&bench) as u64;
                prop_assert!(after <= before + u64::from(rate));
            }
        }

        #[test]
        fn only_pages_that_are_read_are_copied(rounds in counts()) {
            let mut bench = bench(&Options { rate: 1000, ..PLAIN });
            for round in &rounds {
                bench.wake(round, PLAIN.period);
                for row in round.iter().filter(|r| r.write) {
                    prop_assert!(bench.copies(row.page).is_empty());
                }
            }
        }

        #[test]
        fn a_page_is_copied_less_and_less_often(rest in 1u8..5) {
            let mut bench = bench(&Options { rest, ..PLAIN });
            let read = Row { page: PageNo(3), counts: [50; NODES], write: false };
            let write = Row { write: true, ..read.clone() };
            let mut copies = 0;
            for _ in 0..600 {
                bench.wake(core::slice::from_ref(&read), PLAIN.period);
                copies += u32::from(!bench.copies(PageNo(3)).is_empty());
                bench.wake(core::slice::from_ref(&write), PLAIN.period);
            }
            // Rests of 1, 2, 4 … 128 periods, then 255 again and again.
            prop_assert!((2..=12).contains(&copies), "{}", copies);
        }

        #[test]
        fn it_sleeps_between(rounds in counts()) {
            let mut bench = bench(&PLAIN);
            for round in &rounds {
                bench.tell(round);
                let before = (bench.moves, copied(&bench));
                bench.later(Ns(10));
                bench.later(Ns(10));
                prop_assert_eq!((bench.moves, copied(&bench)), before);
                bench.later(PLAIN.period);
            }
        }
    }

    #[test]
    fn pages_that_are_written_get_frames() {
        let mut bench = bench(&Options { replicate: Replicas::Lines, ..PLAIN });
        let shared = Row { page: PageNo(0), counts: [50, 50, 5, 0], write: true };
        for _ in 0..3 {
            bench.wake(core::slice::from_ref(&shared), PLAIN.period);
            assert_eq!(bench.frames(PageNo(0)), [NodeId(1)]);
            assert!(bench.copies(PageNo(0)).is_empty());
        }
        // A page that one node uses alone moves.
        _ = bench.fault(PageNo(1), NodeId(0));
        bench.wake(&[Row { page: PageNo(1), counts: [0, 0, 50, 0], write: true }], PLAIN.period);
        assert_eq!((bench.home(PageNo(1)), bench.frames(PageNo(1))), (Some(NodeId(2)), Vec::new()));
    }

    #[test]
    fn a_frame_that_is_gone_may_come_back() {
        let context = machine(&[10, 1, 10, 0]);
        let mut bench =
            Bench::new(&context, policy(&context, &Options { replicate: Replicas::Lines, ..PLAIN }));
        bench.later(Ns(0));
        let shared = |page| Row { page: PageNo(page), counts: [50, 50, 0, 0], write: true };
        for page in [0, 1, 0, 1] {
            bench.wake(&[shared(page)], PLAIN.period);
            assert_eq!(bench.frames(PageNo(page)), [NodeId(1)], "the driver made room");
            assert!(bench.frames(PageNo(1 - page)).is_empty());
        }
    }

    #[test]
    fn read_shared_pages_are_copied_and_owned_ones_move() {
        let mut bench = bench(&PLAIN);
        _ = bench.fault(PageNo(0), NodeId(0));
        _ = bench.fault(PageNo(1), NodeId(0));
        let shared = Row { page: PageNo(0), counts: [50, 50, 5, 0], write: false };
        let owned = Row { page: PageNo(1), counts: [5, 0, 50, 0], write: true };
        bench.wake(&[shared, owned], PLAIN.period);
        assert_eq!((bench.home(PageNo(0)), bench.copies(PageNo(0))), (Some(NodeId(0)), [NodeId(1)].to_vec()));
        assert_eq!(bench.home(PageNo(1)), Some(NodeId(2)));
    }
}
