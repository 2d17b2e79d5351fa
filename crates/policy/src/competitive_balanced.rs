//! Competitive, balanced: spreads pages without an owner so that no memory is busier than the
//! others.
//!
//! # Problem
//!
//! [`super::competitive`] looks at one page at a time. Nikolopoulos et al. found that it leaves NAS
//! MG unbalanced: some nodes hold more *contested* pages, which all nodes access, than others do.
//! The sum of remote accesses is that of manual distribution, but some memories are busier ("we
//! believe that this problem can be solved by careful engineering of the page migration
//! criterion"). If several homes are equally good, a look at one page cannot choose between them.
//!
//! # Approach
//!
//! A page is contested if another home is nearly as good as its best. The other pages go where
//! [`super::competitive`] sends them; their accesses there are a given load. The policy then deals
//! out the contested pages, the most accessed first, each to the least loaded of its good homes.
//! That is the greedy rule for identical machines (longest processing time first), restricted to
//! the homes that a page may have.
//!
//! # Terms
//!
//! *Cost*: as there. *Good homes* of a page: those whose cost is at most `slack` percent above the
//! least. *Contested*: with more than one. *Load* of a node: accesses to the pages on it, times
//! what an access keeps its memory busy (1 where bandwidth is not limited). *Even*: a load within
//! `even` percent of the mean of the least.
//!
//! # Algorithm
//!
//! At the end of an interval:
//!
//! 1. Pages with one good home: as [`super::competitive`]. Their accesses are the loads to begin
//!    with.
//! 2. The others by accesses descending, in classes of an eighth, so that sorting costs no
//!    comparisons; within a class, by page. h = the present home if it is good, c = the good home
//!    with room whose load with the page is least; ties to the lower id. The page stays at h if
//!    load(h) ≤ load(c) + `even` percent of the mean load; else it goes to c, unless that would not
//!    pay within `horizon`: a page with fewer accesses than a move is worth is left.
//! 3. Freezing and stopping as there.
//!
//! Where the present home is not good, a contested page goes to c if that is worth it.
//!
//! State: as there, and for each contested page 12 bytes and a bit for each node with memory, in
//! words of 8 bytes.
//!
//! # Properties
//!
//! - `contested_pages_are_spread`: pages that all nodes access alike end up with loads that differ
//!   by no more than one page and the tolerance.
//! - `one_owner_decides_as_competitive`: pages that one node alone accesses go where
//!   [`super::competitive`] sends them.
//! - `no_page_has_a_bad_home`: without thresholds and with room, no page ends more than `slack`
//!   percent above its least cost.
//! - `all_nodes_of_a_large_machine_are_homes`: the number of nodes does not limit which of them
//!   gets a page.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use homenode_model::{Decision, MoveOutcome, MoveResult, NodeId, Ns, PageRange};

use crate::bounces::Bounces;
use crate::competitive::{Options, Quiet, Worth, best};
use crate::counting::{Counting, Rule};
use crate::homes::Homes;
use crate::interval::Interval;
use crate::latency::Latencies;
use crate::queue::Queue;
use crate::room::Room;
use crate::{Policy, PolicyContext};

/// Options beside [`Options`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Percent above the least cost up to which a home is good.
    pub slack: u32,
    /// Percent of the mean load by which loads may differ before a page goes elsewhere for that.
    pub even: u32,
}

impl Balance {
    /// The cost up to which homes are good if `least` is the least.
    const fn limit(self, least: u64) -> u64 {
        let slack = self.slack as u64;
        least.saturating_add((least / 100).saturating_mul(slack) + least % 100 * slack / 100)
    }
}

/// Up to this many homes, all costs are computed.
const FEW: usize = 4;

/// A contested page of an interval: 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Contested {
    index: u32,
    accesses: u32,
    /// Its home. Most pages stay there, and this saves a look-up in the interval.
    home: NodeId,
}

impl Contested {
    /// Class of the accesses, the most first. Three bits below the highest distinguish classes, so
    /// the accesses of a class are within an eighth of each other.
    const fn class(self) -> usize {
        let n = self.accesses | 1;
        let high = n.ilog2();
        let next = if high >= 3 { n >> (high - 3) } else { n << (3 - high) } & 7;
        Self::CLASSES - 1 - (high * 8 + next) as usize
    }
    const CLASSES: usize = 32 * 8;
}

/// Deals pages out over equally good homes.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    latencies: Latencies,
    balance: Balance,
    /// Time for which an access keeps each node's memory busy.
    weight: Vec<u64>,
    nodes: usize,
    loads: Vec<u64>,
    /// Words of a set of homes. A set has a bit for each node with memory, by its position in
    /// [`Latencies::homes`].
    words: usize,
    /// Good homes of the page at hand, and room for the costs of all homes.
    good: Vec<u64>,
    costs: Vec<u64>,
    /// Good homes of a page that one node alone accesses: a set a node.
    good_alone: Vec<u64>,
    contested: Vec<Contested>,
    /// Good homes of contested pages: a set a page.
    good_contested: Vec<u64>,
    /// Positions in `contested`, by class.
    order: Vec<u32>,
}

impl Balancer {
    pub(crate) fn new(context: &PolicyContext, balance: Balance) -> Self {
        let nodes = context.nodes();
        let weight = (0..nodes as u16).map(|n| context.occupancy(NodeId(n)).0.max(1)).collect();
        let latencies = Latencies::new(context);
        let homes = latencies.homes().len();
        let words = homes.div_ceil(64).max(1);
        let mut balancer = Self {
            latencies,
            balance,
            weight,
            nodes,
            loads: vec![0; nodes],
            words,
            good: vec![0; words],
            costs: vec![0; homes],
            good_alone: Vec::new(),
            contested: Vec::new(),
            good_contested: Vec::new(),
            order: Vec::new(),
        };
        // Enough accesses that the slack's percentage is exact.
        let alone = |node: usize| (0..nodes).map(|n| if n == node { 100 } else { 0 }).collect::<Vec<u32>>();
        for node in 0..nodes {
            balancer.find_good(&alone(node));
            balancer.good_alone.extend_from_slice(&balancer.good);
        }
        balancer
    }
    /// Finds the good homes of a page with `accesses` in all.
    #[inline]
    fn find_good_of(&mut self, counts: &[u32], accesses: u64) {
        let owner = counts.iter().position(|c| u64::from(*c) == accesses && accesses != 0);
        match owner {
            Some(node) => {
                let set = &self.good_alone[node * self.words..(node + 1) * self.words];
                self.good.copy_from_slice(set);
            }
            None => self.find_good(counts),
        }
    }
    /// Finds the good homes of a page.
    #[inline]
    fn find_good(&mut self, counts: &[u32]) {
        let homes = self.latencies.homes().len();
        if homes > FEW {
            return self.find_good_of_many(counts);
        }
        // Ruling some homes out would take longer.
        let mut costs = [u64::MAX; FEW];
        for (position, cost) in costs[..homes].iter_mut().enumerate() {
            *cost = self.latencies.largest(position, counts);
        }
        let limit = self.balance.limit(costs.iter().copied().fold(u64::MAX, u64::min));
        self.good[0] = bits(&costs[..homes], limit);
    }
    /// As [`Balancer::find_good`].
    fn find_good_of_many(&mut self, counts: &[u32]) {
        // The cost for the node with the most accesses is a lower bound of a home's cost. The home
        // with the least such bound is nearly always the best, and rules most others out.
        let homes = self.costs.len();
        let most = (0..counts.len()).max_by_key(|n| counts[*n]).unwrap_or(0);
        let bound = |position: usize| self.latencies.part(position, most, counts);
        let Some(first) = (0..homes).min_by_key(|position| bound(*position)) else { return };
        self.costs.fill(u64::MAX);
        let mut least = self.latencies.largest(first, counts);
        self.costs[first] = least;
        let limit = self.balance.limit(least);
        for position in (0..homes).filter(|p| *p != first && bound(*p) <= limit) {
            self.costs[position] = self.latencies.largest(position, counts);
            least = least.min(self.costs[position]);
        }
        let limit = self.balance.limit(least);
        for (word, costs) in self.good.iter_mut().zip(self.costs.chunks(64)) {
            *word = bits(costs, limit);
        }
    }
    fn load(&mut self, home: NodeId, accesses: u64) {
        let load = &mut self.loads[home.index()];
        *load = load.saturating_add(accesses.saturating_mul(self.weight[home.index()]));
    }
    /// Chooses a home for each page of the interval, those with one good home first. `settle` gets
    /// the page's index, whether it is contested, its home and the best home. It returns the page's
    /// new home.
    pub(crate) fn deal(
        &mut self,
        interval: &Interval,
        room: &mut Room,
        mut settle: impl FnMut(usize, bool, NodeId, NodeId, &mut Room) -> NodeId,
    ) {
        self.loads.fill(0);
        self.contested.clear();
        self.good_contested.clear();
        let mut all = 0u64;
        for (index, (seen, counts)) in interval.rows().enumerate() {
            let accesses: u64 = counts.iter().map(|c| u64::from(*c)).sum();
            all = all.saturating_add(accesses);
            self.find_good_of(counts, accesses);
            let mut good = positions(&self.good);
            let (only, another) = (good.next(), good.next());
            drop(good);
            if another.is_some() {
                let accesses = u32::try_from(accesses).unwrap_or(u32::MAX);
                self.contested.push(Contested { index: index as u32, accesses, home: seen.home });
                self.good_contested.extend_from_slice(&self.good);
                continue;
            }
            let to = match only.map(|position| self.latencies.homes()[position]) {
                Some(home) if home == seen.home || room.has(home) => home,
                _ => best(&self.latencies, counts, seen.home, room).map_or(seen.home, |(to, ..)| to),
            };
            let home = settle(index, false, seen.home, to, room);
            self.load(home, accesses);
        }
        self.sort();
        let weight = self.weight.iter().copied().max().unwrap_or(1);
        let homes = self.latencies.homes().len().max(1) as u64;
        let even = all.saturating_mul(weight) / homes / 100 * u64::from(self.balance.even);
        for at in 0..self.order.len() {
            let page = self.contested[self.order[at] as usize];
            let to = self.choose(self.order[at] as usize, even, room);
            let home = settle(page.index as usize, true, page.home, to, room);
            self.load(home, page.accesses.into());
        }
    }
    /// Sorts contested pages by class, then by page: a counting sort.
    fn sort(&mut self) {
        let mut starts = [0u32; Contested::CLASSES + 1];
        for page in &self.contested {
            starts[page.class() + 1] += 1;
        }
        for class in 1..starts.len() {
            starts[class] += starts[class - 1];
        }
        self.order.clear();
        self.order.resize(self.contested.len(), 0);
        for (at, page) in (0u32..).zip(&self.contested) {
            let place = &mut starts[page.class()];
            self.order[*place as usize] = at;
            *place += 1;
        }
    }
    /// A home for the contested page at a position in `contested`.
    fn choose(&self, at: usize, even: u64, room: &Room) -> NodeId {
        let page = self.contested[at];
        let now = page.home;
        let homes = self.latencies.homes();
        let mut least: Option<(u64, NodeId)> = None;
        let mut here = None;
        for position in positions(&self.good_contested[at * self.words..(at + 1) * self.words]) {
            let home = homes[position];
            let mine = u64::from(page.accesses).saturating_mul(self.weight[home.index()]);
            let load = self.loads[home.index()].saturating_add(mine);
            if home == now {
                here = Some(load);
            }
            // Ties go to the lower id, which comes first.
            if least.is_none_or(|(l, _)| load < l) && (home == now || room.has(home)) {
                least = Some((load, home));
            }
        }
        match (least, here) {
            (Some((load, to)), Some(here)) if here > load.saturating_add(even) => to,
            (Some((_, to)), None) => to,
            _ => now,
        }
    }
}

/// Which of at most 64 costs are within `limit`, a bit each.
#[inline]
fn bits(costs: &[u64], limit: u64) -> u64 {
    costs.iter().enumerate().fold(0, |set, (i, c)| set | u64::from(*c <= limit) << i)
}

/// The members of a set, ascending.
#[inline]
fn positions(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(word, bits)| {
        let mut left = *bits;
        core::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(word * 64 + bit)
        })
    })
}

struct Balanced {
    balancer: Balancer,
    worth: Worth,
    bounces: Bounces,
    quiet: Quiet,
    latencies: Latencies,
}

/// The policy for the machine of `context`.
pub fn policy(context: &PolicyContext, options: &Options, balance: Balance) -> Box<dyn Policy> {
    let rule = Balanced {
        balancer: Balancer::new(context, balance),
        worth: Worth::new(context, options),
        bounces: Bounces::new(options.bounces),
        quiet: Quiet::new(options.quiet),
        latencies: Latencies::new(context),
    };
    Box::new(Counting::new(context, options.initial, options.when, rule))
}

impl Rule for Balanced {
    const BY_PROPORTION: bool = true;
    fn decide(&mut self, interval: &Interval, homes: &Homes, out: &mut Queue) {
        let mut room = Room::of(homes, self.balancer.nodes);
        let mut moves = false;
        let Self { balancer, worth, bounces, latencies, .. } = self;
        balancer.deal(interval, &mut room, |index, contested, now, to, room| {
            if to == now {
                return now;
            }
            let (seen, counts) = interval.row(index);
            let page = seen.page();
            if !bounces.allow(page, to) {
                return seen.home;
            }
            let Some(before) = latencies.cost_at(seen.home, counts) else { return seen.home };
            // For balance, the total cost of a page's accesses is at stake.
            let worth_it = contested && worth.pays(Ns(before.sum))
                || latencies.cost_at(to, counts).is_some_and(|after| worth.it(before, after));
            if !worth_it {
                return seen.home;
            }
            room.moved(seen.home, to);
            moves = true;
            out.push(Decision::Move { page, to });
            to
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::competitive::{self, EAGER};
    use crate::testing::{Bench, NODES, Row, counts, machine, roomy};
    use homenode_model::{AccessKind, Matrix, MbPerS, PageNo};
    use proptest::prelude::*;

    const BALANCE: Balance = Balance { slack: 25, even: 0 };

    proptest! {
        #[test]
        fn contested_pages_are_spread(pages in 1u64..60, count in 1u32..1000) {
            let mut context = machine(&roomy());
            // All nodes equally far from all memory: every home of a page is as good as the others.
            context.latency = Matrix::from_fn(NODES, |_, _| Ns(100));
            let mut bench = Bench::new(&context, policy(&context, &EAGER, BALANCE));
            bench.iteration(&[]);
            let rows: Vec<Row> =
                (0..pages).map(|p| Row { page: PageNo(p), counts: [count; NODES], write: false }).collect();
            rows.iter().for_each(|r| _ = bench.fault(r.page, NodeId(0)));
            bench.iteration(&rows);
            let used: Vec<u64> = context.memory_nodes().iter().map(|n| bench.used(*n)).collect();
            prop_assert!(used.iter().max().unwrap() - used.iter().min().unwrap() <= 1, "{:?}", used);
            let before = bench.moves;
            bench.iteration(&rows);
            prop_assert_eq!(bench.moves, before, "the same again moves nothing");
        }

        #[test]
        fn one_owner_decides_as_competitive(owners in proptest::collection::vec((0..3u16, 1u32..99), 1..60)) {
            let context = machine(&roomy());
            let rows: Vec<Row> = (0u64..)
                .zip(&owners)
                .map(|(p, (node, count))| {
                    let mut counts = [0; NODES];
                    counts[usize::from(*node)] = *count;
                    Row { page: PageNo(p), counts, write: false }
                })
                .collect();
            let mut one = Bench::new(&context, policy(&context, &EAGER, BALANCE));
            let mut other = Bench::new(&context, competitive::policy(&context, &EAGER));
            for round in [&rows[..0], &rows] {
                one.iteration(round);
                other.iteration(round);
            }
            prop_assert_eq!(one.homes(), other.homes());
        }

        #[test]
        fn no_page_has_a_bad_home(rounds in counts(), slack in 0u32..100) {
            let context = machine(&roomy());
            let balance = Balance { slack, even: 10 };
            let mut bench = Bench::new(&context, policy(&context, &EAGER, balance));
            bench.iteration(&[]);
            let largest = |row: &Row, home: NodeId| {
                let cost = |(n, c): (usize, &u32)| u64::from(*c) * context.latency.at(NodeId(n as u16), home).0;
                row.counts.iter().enumerate().map(cost).max().unwrap()
            };
            for round in &rounds {
                bench.iteration(round);
                for row in round {
                    let least = context.memory_nodes().iter().map(|h| largest(row, *h)).min().unwrap();
                    let home = largest(row, bench.home(row.page).unwrap());
                    prop_assert!(home * 100 <= least * u64::from(100 + slack));
                }
            }
        }
    }

    /// Homes that pages with `counts` get on a machine of as many nodes. A remote access takes
    /// `remote`, a local one 100 ns.
    fn dealt(counts: &[Vec<u32>], remote: Ns) -> Vec<NodeId> {
        let nodes = counts[0].len();
        let context = PolicyContext {
            capacity: vec![10; nodes],
            nearest: vec![(0..nodes as u16).map(NodeId).collect(); nodes],
            latency: Matrix::from_fn(nodes, |a, b| if a == b { Ns(100) } else { remote }),
            bandwidth: vec![MbPerS(6400); nodes],
            ..machine(&roomy())
        };
        let mut interval = Interval::new(nodes);
        for (page, counts) in (0u64..).map(PageNo).zip(counts) {
            for (node, count) in (0u16..).map(NodeId).zip(counts) {
                interval.add(page, NodeId(0), node, AccessKind::Read, *count);
            }
        }
        let mut homes = vec![NodeId(0); counts.len()];
        let mut room = Room::of(&Homes::new(&context), nodes);
        let balance = Balance { slack: 0, even: 0 };
        Balancer::new(&context, balance).deal(&interval, &mut room, |index, _, _, to, _| {
            homes[index] = to;
            to
        });
        homes
    }

    #[test]
    fn all_nodes_of_a_large_machine_are_homes() {
        // 100 homes take two words of a set.
        for nodes in [5u16, 64, 100] {
            let all: Vec<NodeId> = (0..nodes).map(NodeId).collect();
            let alone = |owner| (0..nodes).map(|n| u32::from(n == owner)).collect();
            assert_eq!(dealt(&(0..nodes).map(alone).collect::<Vec<_>>(), Ns(200)), all, "a user a page");
            let most = |owner| (0..nodes).map(|n| 1 + u32::from(n == owner) * 9).collect();
            assert_eq!(dealt(&(0..nodes).map(most).collect::<Vec<_>>(), Ns(200)), all, "a main user a page");
            let mut spread = dealt(&vec![vec![1; nodes.into()]; nodes.into()], Ns(100));
            spread.sort();
            assert_eq!(spread, all, "pages that all use are spread");
        }
    }
}
