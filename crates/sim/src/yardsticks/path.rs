//! Each page's own cheapest way through the epochs: the oracle.
//!
//! # Problem
//!
//! The bound is a number. What would somebody do who knew all counts in advance and looked at one
//! page at a time?
//!
//! # Approach
//!
//! Shortest path per page: an epoch costs the latencies of all its accesses at the home, a change
//! of home between two epochs costs a move. Moves are carried out by one thread at the iteration
//! mark while all others wait, so that a move counts in full and an access by its share of a
//! thread's time (divided by the number of threads at work).
//!
//! # Terms
//!
//! *Way*: the home at first use, and moves by iteration mark. *Step*: a page in an epoch in which
//! it was accessed.
//!
//! # Algorithm
//!
//! Forward: V(h) ← min(V(h), min V + move) + c(h), noting for each h whether it came from
//! elsewhere, and from where. Backward from the least V. Ties go to the page's current home, then
//! to the smallest node.
//!
//! # Properties
//!
//! - `the_way_follows_a_page_whose_user_changes`
//! - `a_page_never_moves_for_less_than_it_costs`

use homenode_model::{NodeId, PageNo, Placement, Rows};

use super::costs::{Costs, Counts};
use super::epoch::Epoch;

/// Steps that are kept: 16 bytes each.
pub const MAX_STEPS: usize = 1 << 24;

/// Homes that a step can tell apart.
const MAX_HOMES: usize = 64;

/// Where each page should be, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomePath {
    /// The home at first use.
    pub first: Placement,
    /// Moves, ascending by (iteration, page): the iteration mark that they come with.
    pub moves: Vec<(u32, PageNo, NodeId)>,
}

/// A page in an epoch.
#[derive(Clone, Copy, Debug)]
struct Step {
    page: u32,
    /// The home that all homes of `moved` were come to from.
    best: u16,
    /// Homes that were come to by a move.
    moved: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Path {
    values: Rows<u64>,
    steps: Vec<Step>,
    /// Where each epoch's steps end.
    ends: Vec<usize>,
    given_up: bool,
}

impl Path {
    pub(super) fn new(costs: &Costs) -> Self {
        let homes = costs.homes.len();
        Self {
            values: Rows::new(homes, 0),
            steps: Vec::new(),
            ends: Vec::new(),
            given_up: homes > MAX_HOMES || homes == 0,
        }
    }

    /// The epoch's counts go in.
    pub(super) fn close(&mut self, costs: &Costs, epoch: &Epoch) {
        let room = MAX_STEPS - self.steps.len();
        self.given_up |= epoch.pages().len() > room || epoch.pages().last().is_some_and(|p| p.0 >> 32 > 0);
        if self.given_up {
            self.steps = Vec::new();
            return;
        }
        let at_work = epoch.active.iter().filter(|a| **a).count().max(1) as u64;
        let moving = costs.moving.1.saturating_mul(at_work);
        for page in epoch.pages() {
            let row = self.values.row_mut(page.index());
            if epoch.was_freed(*page) {
                row.fill(row.iter().copied().min().unwrap_or(0));
            }
            let best = (0..row.len()).min_by_key(|h| (row[*h], *h)).unwrap_or(0);
            let from_best = row[best].saturating_add(moving);
            let mut moved = 0u64;
            for (h, value) in row.iter_mut().enumerate() {
                if from_best < *value {
                    *value = from_best;
                    moved |= 1 << h;
                }
                *value = value.saturating_add(cost(costs, epoch.row(*page), h));
            }
            self.steps.push(Step { page: page.0 as u32, best: best as u16, moved });
        }
        self.ends.push(self.steps.len());
    }

    /// The ways, with the numbers of the iteration marks.
    pub(super) fn finish(self, costs: &Costs, numbers: &[u32]) -> Option<HomePath> {
        if self.given_up {
            return None;
        }
        let mut way = HomePath::default();
        let mut homes = Placement::new();
        for (page, row) in self.values.iter() {
            let least = (0..row.len()).min_by_key(|h| (row[*h], *h)).unwrap_or(0);
            homes.set(PageNo(page as u64), NodeId(least as u16));
        }
        for epoch in (0..self.ends.len()).rev() {
            let begin = epoch.checked_sub(1).map_or(0, |e| self.ends[e]);
            for step in &self.steps[begin..self.ends[epoch]] {
                let page = PageNo(step.page.into());
                let Some(home) = homes.home(page).filter(|h| step.moved >> h.0 & 1 != 0) else { continue };
                if let Some(number) = numbers.get(epoch) {
                    way.moves.push((*number, page, costs.homes[home.index()]));
                }
                homes.set(page, NodeId(step.best));
            }
        }
        // Only pages that were accessed in some epoch are spoken for.
        let mut pages: Vec<u32> = self.steps.iter().map(|s| s.page).collect();
        pages.sort_unstable();
        pages.dedup();
        for page in pages.into_iter().map(|p| PageNo(p.into())) {
            if let Some(home) = homes.home(page) {
                way.first.set(page, costs.homes[home.index()]);
            }
        }
        way.moves.sort_unstable();
        Some(way)
    }
}

/// The latencies of a page's accesses with the page at `home`.
fn cost(costs: &Costs, row: &[Counts], home: usize) -> u64 {
    let each = row.iter().enumerate().filter(|(_, c)| **c != Counts::NONE);
    each.fold(0, |sum: u64, (t, c)| {
        let waiting = costs.waiting(*c, costs.threads[t].index(), home) / costs.outstanding;
        sum.saturating_add(waiting)
    })
}
