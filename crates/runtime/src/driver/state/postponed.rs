//! Moves that wait for room in the budget.
//!
//! # Problem
//!
//! The team waits while pages are moved. A policy, a plan or a verdict may want all memory moved at
//! one moment. The price of a page is known only after some have moved.
//!
//! # Approach
//!
//! The driver moves pages in turns of some thousand pages, and of a few hundred until the price is
//! known. Before each turn it asks the budget for room at the measured price. A page without a turn
//! stays where it is:
//!
//! - If the policy wants to know the outcome, the driver tells it that the page stays. The policy
//!   decides again from what it sees next.
//! - Pages placed once and for all wait, and follow at the start of later regions as the budget
//!   grows. These are pages of a plan, of a policy that places by address, and pages that move
//!   back.
//!
//! Moving back keeps within the budget, too: the budget is a promise about all own time, and moving
//! back stops the team as long as moving did. It may use the part of the budget that is kept for
//! samples, because nobody takes samples any more.

use std::collections::BTreeMap;

use homenode_model::{NodeId, Ns, PageNo, PageRange};
use homenode_sys::HUGE;

use super::waiting::{GAP, measured};
use crate::watch::numbers::PAGE;

/// Pages of a huge page.
const WHOLE: u64 = (HUGE / PAGE) as u64;
/// Assumed price of moving a page, until enough moves have been measured.
const MOVE: Ns = Ns(4_000);
/// Pages of a turn: 32 MiB, some tens of milliseconds. Below: pages of the first turns.
const TURN: u64 = 8192;
const FIRST: u64 = 512;

/// Target nodes of pages, by stretches of neighbours with one target.
#[derive(Debug, Default)]
struct Targets(BTreeMap<u64, Stretch>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    count: u64,
    to: NodeId,
    /// Whether the pages should move. If not, they stay on `to`, and count when the target of the
    /// rest of their huge page is chosen.
    goes: bool,
}

impl Targets {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the target of a page, whatever it was before. `goes`: it should move there; otherwise
    /// it stays there.
    fn add(&mut self, page: PageNo, to: NodeId, goes: bool) {
        self.remove(PageRange { first: page, count: 1 });
        match self.0.range_mut(..page.0).next_back() {
            Some((first, run)) if first + run.count == page.0 && (run.to, run.goes) == (to, goes) => {
                run.count += 1;
            }
            _ => _ = self.0.insert(page.0, Stretch { count: 1, to, goes }),
        }
    }

    /// Removes these pages. Returns how many of them should move.
    fn remove(&mut self, pages: PageRange) -> u64 {
        let (start, end) = (pages.first.0, pages.first.0 + pages.count);
        if let Some((first, run)) = self.0.range_mut(..start).next_back()
            && first + run.count > start
        {
            let rest = Stretch { count: first + run.count - start, ..*run };
            run.count -= rest.count;
            self.0.insert(start, rest);
        }
        let mut gone = 0;
        while let Some((&first, &run)) = self.0.range(start..end).next() {
            self.0.remove(&first);
            let behind = (first + run.count).saturating_sub(end);
            if behind > 0 {
                self.0.insert(end, Stretch { count: behind, ..run });
            }
            gone += if run.goes { run.count - behind } else { 0 };
        }
        gone
    }

    /// Removes and returns the first `n` pages.
    fn take(&mut self, n: u64) -> Vec<(PageNo, NodeId)> {
        let mut list = Vec::new();
        while (list.len() as u64) < n
            && let Some((first, run)) = self.0.pop_first()
        {
            let count = run.count.min(n - list.len() as u64);
            list.extend((first..first + count).map(|page| (PageNo(page), run.to)));
            if count < run.count {
                self.0.insert(first + count, Stretch { count: run.count - count, ..run });
            }
        }
        list
    }

    /// Number of pages that should move.
    fn pages(&self) -> u64 {
        self.0.values().filter(|run| run.goes).map(|run| run.count).sum()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Postponed {
    /// Pages that follow later.
    runs: Targets,
    /// Pages that stay, as their policy was told. They are only counted; the policy decides again.
    refused: Targets,
    looked: Ns,
    /// Time that moving has taken so far, and number of moved pages.
    took: (Ns, u64),
    /// Pages that should have moved, of objects that died before their turn.
    missed: u64,
    /// Pages that were moved back after the verdict that moving does not pay.
    undone: Option<u64>,
}

impl Postponed {
    /// Drops waiting moves of these pages: somebody else has decided on them. Returns how many.
    pub fn forget(&mut self, pages: PageRange) -> u64 {
        if self.runs.is_empty() && self.refused.is_empty() {
            return 0;
        }
        self.runs.remove(pages) + self.refused.remove(pages)
    }

    /// The object of these pages has died.
    pub fn dies(&mut self, pages: PageRange) {
        self.missed += self.forget(pages);
    }

    /// Drops all waiting moves: everything goes back.
    pub fn undo(&mut self) {
        *self = Self { took: self.took, undone: Some(0), ..Self::default() };
    }

    /// Whether everything that goes back is back.
    pub fn is_undone(&self) -> bool {
        self.is_undoing() && self.runs.is_empty()
    }

    /// Whether moved pages go back.
    pub const fn is_undoing(&self) -> bool {
        self.undone.is_some()
    }

    /// If pages go back: counts that this many more have gone back, and returns how many have.
    pub fn went_back(&mut self, pages: u64) -> Option<u64> {
        let undone = self.undone.as_mut()?;
        *undone += pages;
        Some(*undone)
    }

    /// Whether moves wait.
    pub fn waits(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether it is time to look for room for waiting moves.
    pub fn is_due(&self, now: Ns) -> bool {
        self.waits() && now - self.looked >= GAP
    }

    /// Somebody looks for room now.
    pub const fn looks(&mut self, now: Ns) {
        self.looked = now;
    }

    /// Removes and returns the pages of a turn of `room` pages, and the rest of a huge page that
    /// begins within it.
    pub fn take_turn(&mut self, room: u64) -> Vec<(PageNo, NodeId)> {
        if room > 0 { self.runs.take(room + WHOLE) } else { Vec::new() }
    }

    /// The price of moving a page, and the most pages of a turn at this price.
    pub fn price(&self) -> (Ns, u64) {
        match measured(self.took) {
            Some(price) => (price, TURN),
            // A few pages say little about the price, except that it may be high.
            None => (MOVE.max(Ns(self.took.0.0 / self.took.1.max(1))), FIRST),
        }
    }

    /// Moving this many pages took this time.
    pub fn took(&mut self, time: Ns, pages: u64) {
        self.took.0 += time;
        self.took.1 += pages;
    }

    /// Puts off the move of a page that is at `home`. `told`: the policy was told that the page
    /// stays. It decides again, so the move is only counted.
    pub fn put_off(&mut self, page: PageNo, to: NodeId, home: Option<NodeId>, told: bool) {
        let runs = if told { &mut self.refused } else { &mut self.runs };
        runs.add(page, to, home != Some(to));
    }

    /// Pages that the budget had no room to move.
    pub fn left_out(&self) -> u64 {
        self.runs.pages() + self.refused.pages() + self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(first: u64, count: u64) -> PageRange {
        PageRange { first: PageNo(first), count }
    }

    #[test]
    fn runs_are_joined_cut_and_taken_in_order() {
        let mut runs = Targets::default();
        (0..10).for_each(|p| runs.add(PageNo(p), NodeId(1), true));
        (10..12).for_each(|p| runs.add(PageNo(p), NodeId(0), false));
        assert_eq!((runs.0.len(), runs.pages()), (2, 10));
        assert_eq!(runs.remove(pages(3, 2)), 2);
        assert_eq!(runs.remove(pages(8, 3)), 2, "and one that was not to go");
        assert_eq!((runs.0.len(), runs.pages()), (3, 6));
        // It has been decided anew.
        runs.add(PageNo(5), NodeId(2), true);
        let taken: Vec<_> = runs.take(5).into_iter().map(|(page, to)| (page.0, to.0)).collect();
        assert_eq!(taken, [(0, 1), (1, 1), (2, 1), (5, 2), (6, 1)]);
        assert_eq!(runs.take(9).len(), 2);
        assert!(runs.is_empty() && runs.remove(pages(0, 100)) == 0);
    }

    #[test]
    fn a_page_that_is_at_its_target_or_was_decided_on_is_not_left_out() {
        let mut p = Postponed::default();
        (0..8).for_each(|i| p.put_off(PageNo(i), NodeId(1), Some(NodeId(u16::from(i < 2))), i >= 6));
        assert_eq!((p.left_out(), p.is_due(GAP), p.is_due(GAP - Ns(1))), (6, true, false));
        assert_eq!(p.forget(pages(4, 3)), 3);
        p.dies(pages(0, 100));
        assert_eq!((p.left_out(), p.is_due(GAP)), (3, false), "they were never moved");
    }

    #[test]
    fn going_back_drops_what_waits_and_keeps_the_price() {
        let mut p = Postponed::default();
        p.took(Ns(9 * 8192), 8192);
        p.put_off(PageNo(1), NodeId(1), None, false);
        assert_eq!((p.went_back(1), p.is_undoing()), (None, false));
        p.undo();
        assert_eq!((p.went_back(3), p.went_back(4), p.is_undone()), (Some(3), Some(7), true));
        assert_eq!((p.price(), p.left_out(), p.take_turn(8).len()), ((Ns(9), TURN), 0, 0));
        p.put_off(PageNo(1), NodeId(0), None, false);
        assert!(!p.is_undone() && p.take_turn(0).is_empty() && p.take_turn(1) == [(PageNo(1), NodeId(0))]);
    }

    #[test]
    fn the_first_pages_can_only_raise_the_price() {
        let mut p = Postponed::default();
        p.took(Ns(10), 10);
        assert_eq!(p.price(), (MOVE, FIRST));
        p.took(Ns(1_000_000), 10);
        assert_eq!(p.price(), (Ns(1_000_010 / 20), FIRST));
    }
}
