//! A good placement at first use, by local search.
//!
//! # Problem
//!
//! Pages that each lie where they cost least may together overload a node or slow one thread, which
//! all others wait for.
//!
//! # Approach
//!
//! From a starting placement, move one page at a time as long as a measure of load falls: the sum
//! over threads of their time squared and over controllers of their time at work squared, over the
//! whole timed part. Squares make the slowest count most. The result is a candidate: only the
//! simulator says how good it is.
//!
//! # Algorithm
//!
//! Rounds over all pages, ascending; a page tries the homes nearest to its users and the one with
//! the least busy controller, those that have room, and goes where the measure is least. At most
//! [`ROUNDS`] rounds; ends when a round moves nothing.
//!
//! # Properties
//!
//! - `search_never_raises_its_measure`
//! - `search_levels_what_nobody_owns`
//! - `a_plan_keeps_within_what_the_homes_hold`

use homenode_model::{NodeId, PageNo, Placement, Rows};

use super::costs::{Costs, Counts};
use super::epoch::Epoch;

/// Rounds over all pages.
const ROUNDS: usize = 6;

/// The counts of the timed part, and where to search.
#[derive(Clone, Debug)]
pub struct Search {
    costs: Costs,
    counts: Rows<Counts>,
    pages: Vec<PageNo>,
    listed: Rows<bool>,
    busy: Vec<u64>,
    /// The nearest home of each node.
    nearest: Vec<usize>,
}

/// What accesses meet under a placement, counted as
/// [`Counts::ACCESSES`](crate::memory::Counts::ACCESSES) are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meets {
    /// Accesses to main memory. Where remote memory is not cached, hits of the cache that would be
    /// local are none of them.
    pub accesses: u64,
    /// Those to pages of another node.
    pub remote: u64,
}

/// Loads of all threads and controllers under a placement, in nanoseconds so that squares fit.
#[derive(Clone, Debug)]
struct Loads {
    threads: Vec<i64>,
    controllers: Vec<i64>,
}

impl Loads {
    fn measure(&self) -> i128 {
        let square = |v: &i64| i128::from(*v) * i128::from(*v);
        self.threads.iter().map(square).sum::<i128>() + self.controllers.iter().map(square).sum::<i128>()
    }
}

impl Search {
    pub(super) fn new(costs: &Costs) -> Self {
        let nearest =
            |n: usize| (0..costs.homes.len()).min_by_key(|h| (costs.latency(n, *h), *h)).unwrap_or(0);
        Self {
            nearest: (0..costs.nodes).map(nearest).collect(),
            costs: costs.clone(),
            counts: Rows::new(costs.threads.len(), Counts::NONE),
            pages: Vec::new(),
            listed: Rows::new(1, false),
            busy: vec![0; costs.threads.len()],
        }
    }
    pub(super) fn absorb(&mut self, epoch: &Epoch) {
        for page in epoch.pages() {
            let row = self.counts.row_mut(page.index());
            row.iter_mut().zip(epoch.row(*page)).for_each(|(to, from)| to.add(*from));
            let listed = &mut self.listed.row_mut(page.index())[0];
            if !std::mem::replace(listed, true) {
                self.pages.push(*page);
            }
        }
        for (to, from) in self.busy.iter_mut().zip(&epoch.busy) {
            *to = to.saturating_add(*from);
        }
    }

    /// Each page where its accesses of the whole timed part have the least latency: the static
    /// bound's placement.
    pub fn cheapest(&self) -> Placement {
        let mut homes = Placement::new();
        for page in &self.pages {
            let row = self.counts.row(page.index()).unwrap_or(&[]);
            let cost = |h: usize| {
                let each = row.iter().zip(&self.costs.threads);
                each.fold(0u64, |sum, (c, n)| sum.saturating_add(self.costs.waiting(*c, n.index(), h)))
            };
            if let Some(h) = (0..self.costs.homes.len()).min_by_key(|h| (cost(*h), *h)) {
                homes.set(*page, self.costs.homes[h]);
            }
        }
        homes
    }

    /// [`Search::cheapest`] within what the homes hold, and then as level as local search makes it:
    /// what a plan for another run is made of.
    pub fn plan(&self) -> Placement {
        self.improve(&self.within_room(&self.cheapest()))
    }

    /// `placement` with the pages that a home does not hold where they cost least of those that
    /// have room. Those stay that would lose most.
    fn within_room(&self, placement: &Placement) -> Placement {
        let homes = self.costs.homes.len();
        let cost = |page: PageNo, h: usize| {
            let row = self.counts.row(page.index()).unwrap_or(&[]);
            let each = row.iter().zip(&self.costs.threads);
            each.fold(0u64, |sum, (c, n)| sum.saturating_add(self.costs.waiting(*c, n.index(), h)))
        };
        // What it costs a page to be at the second best home instead of the best.
        let regret = |page: PageNo| {
            let mut all: Vec<u64> = (0..homes).map(|h| cost(page, h)).collect();
            all.sort_unstable();
            all.get(1).map_or(u64::MAX, |second| second - all[0])
        };
        let mut pages: Vec<(u64, PageNo)> = placement.iter().map(|(p, _)| (regret(p), p)).collect();
        pages.sort_unstable_by_key(|(regret, page)| (std::cmp::Reverse(*regret), *page));
        let mut room = self.costs.room.clone();
        let mut all = Placement::new();
        for (_, page) in pages {
            // Without room anywhere the machine is too small whatever is planned.
            let with_room = (0..homes).filter(|h| room[*h] > 0);
            let Some(home) = with_room.min_by_key(|h| (cost(page, *h), *h)) else { break };
            room[home] -= 1;
            all.set(page, self.costs.homes[home]);
        }
        all
    }

    /// What the accesses of the timed part meet with the pages of `placement` at their homes,
    /// others left out.
    pub fn meets(&self, placement: &Placement) -> Meets {
        let mut meets = Meets::default();
        for (page, node) in placement.iter() {
            let Some(home) = self.costs.homes.iter().position(|h| *h == node) else { continue };
            let row = self.counts.row(page.index()).unwrap_or(&[]);
            for (counts, from) in row.iter().zip(&self.costs.threads) {
                let n = u64::from(counts.misses) + self.costs.references(*counts, from.index(), home);
                meets.accesses += n;
                meets.remote += if *from == node { 0 } else { n };
            }
        }
        meets
    }

    /// A placement of the pages of the timed part that is at least as level as `start`; a page that
    /// `start` does not name starts on the first home.
    pub fn improve(&self, start: &Placement) -> Placement {
        let count = self.costs.homes.len();
        let home_of = |node: NodeId| self.costs.homes.iter().position(|h| *h == node).unwrap_or(0);
        let mut pages = self.pages.clone();
        pages.sort_unstable();
        let mut homes: Vec<usize> = pages.iter().map(|p| start.home(*p).map_or(0, home_of)).collect();
        let mut used = vec![0u64; count];
        let mut loads = self.unplaced();
        for (page, home) in pages.iter().zip(&homes) {
            used[*home] += 1;
            self.apply(&mut loads, *page, *home, 1);
        }
        for _ in 0..ROUNDS {
            let mut moved = false;
            for (page, home) in pages.iter().zip(&mut homes) {
                let to = self.best(&mut loads, &used, *page, *home);
                moved |= to != *home;
                used[*home] -= 1;
                used[to] += 1;
                *home = to;
            }
            if !moved {
                break;
            }
        }
        let mut placement = Placement::new();
        for (page, home) in pages.iter().zip(homes) {
            placement.set(*page, self.costs.homes[home]);
        }
        placement
    }

    /// Takes `page` from `home` to where the measure is least, and says where that is.
    fn best(&self, loads: &mut Loads, used: &[u64], page: PageNo, home: usize) -> usize {
        self.apply(loads, page, home, -1);
        let idle = (0..used.len()).min_by_key(|h| (loads.controllers[*h], *h));
        let row = self.counts.row(page.index()).unwrap_or(&[]);
        let users = row.iter().zip(&self.costs.threads).filter(|(c, _)| **c != Counts::NONE);
        let mut candidates: Vec<usize> = users.map(|(_, n)| self.nearest[n.index()]).chain(idle).collect();
        candidates.sort_unstable();
        candidates.dedup();
        let mut best = (i128::MAX, home);
        // The present home first: it wins ties.
        for h in std::iter::once(home).chain(candidates.into_iter().filter(|h| *h != home)) {
            if h != home && used[h] >= self.costs.room[h] {
                continue;
            }
            self.apply(loads, page, h, 1);
            let measure = loads.measure();
            self.apply(loads, page, h, -1);
            if measure < best.0 {
                best = (measure, h);
            }
        }
        self.apply(loads, page, best.1, 1);
        best.1
    }

    fn unplaced(&self) -> Loads {
        Loads {
            threads: self.busy.iter().map(|b| (b / 1000) as i64).collect(),
            controllers: vec![0; self.costs.homes.len()],
        }
    }

    /// Adds the page's load at `home`, or takes it away.
    fn apply(&self, loads: &mut Loads, page: PageNo, home: usize, sign: i64) {
        let row = self.counts.row(page.index()).unwrap_or(&[]);
        for (t, counts) in row.iter().enumerate().filter(|(_, c)| **c != Counts::NONE) {
            let node = self.costs.threads[t].index();
            let waiting = self.costs.waiting(*counts, node, home) / self.costs.outstanding / 1000;
            loads.threads[t] += sign * waiting as i64;
            loads.controllers[home] += sign * (self.costs.serving(*counts, node, home) / 1000) as i64;
        }
    }

    /// The measure of a placement, for tests.
    #[cfg(test)]
    pub(super) fn measure(&self, placement: &Placement) -> i128 {
        let mut loads = self.unplaced();
        for page in &self.pages {
            let node = placement.home(*page).unwrap_or(self.costs.homes[0]);
            let home = self.costs.homes.iter().position(|h| *h == node).unwrap();
            self.apply(&mut loads, *page, home, 1);
        }
        loads.measure()
    }
}
