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

use homenode_model::{MoveOutcome, MoveResult, NodeId, Ns, PageNo, PageRange};
use homenode_sys::HUGE;

use super::arming::Wanted;
use super::run::Driver;
use super::waiting::{GAP, measured};
use crate::guard::Verdict;
use crate::watch::numbers::PAGE;

/// Pages of a huge page.
const WHOLE: u64 = (HUGE / PAGE) as u64;
/// Assumed price of moving a page, until enough moves have been measured.
const MOVE: Ns = Ns(4_000);
/// Pages of a turn: 32 MiB, some tens of milliseconds. Below: pages of the first turns.
const TURN: u64 = 8192;
const FIRST: u64 = 512;

/// Target nodes of pages, by runs.
#[derive(Debug, Default)]
pub(super) struct Runs(BTreeMap<u64, Run>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    count: u64,
    to: NodeId,
    /// Whether the pages should move. If not, they stay on `to`, and count when the target of the
    /// rest of their huge page is chosen.
    goes: bool,
}

impl Runs {
    pub fn is_empty(&self) -> bool {
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
            _ => _ = self.0.insert(page.0, Run { count: 1, to, goes }),
        }
    }

    /// Removes these pages. Returns how many of them should move.
    fn remove(&mut self, pages: PageRange) -> u64 {
        let (start, end) = (pages.first.0, pages.first.0 + pages.count);
        if let Some((first, run)) = self.0.range_mut(..start).next_back()
            && first + run.count > start
        {
            let rest = Run { count: first + run.count - start, ..*run };
            run.count -= rest.count;
            self.0.insert(start, rest);
        }
        let mut gone = 0;
        while let Some((&first, &run)) = self.0.range(start..end).next() {
            self.0.remove(&first);
            let behind = (first + run.count).saturating_sub(end);
            if behind > 0 {
                self.0.insert(end, Run { count: behind, ..run });
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
                self.0.insert(first + count, Run { count: run.count - count, ..run });
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
pub(super) struct Later {
    /// Pages that follow later.
    runs: Runs,
    /// Pages that stay, as their policy was told. They are only counted; the policy decides again.
    refused: Runs,
    looked: Ns,
    /// Time that moving has taken so far, and number of moved pages.
    took: (Ns, u64),
    /// Pages that should have moved, of objects that died before their turn.
    missed: u64,
    /// Pages that were moved back after the verdict that moving does not pay.
    undone: Option<u64>,
}

impl Later {
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
}

impl Driver {
    /// Whether it is time to look for room for waiting moves.
    pub(super) fn is_move_due(&self, now: Ns) -> bool {
        !self.later.runs.is_empty()
            && now - self.later.looked >= GAP
            && (self.stopped.is_none() || self.later.is_undoing())
    }

    /// Moves waiting pages, as far as the budget has room. Returns how many moved.
    pub(super) fn move_later(&mut self) -> u64 {
        self.later.looked = (self.clocks.wall)();
        let mut moved = 0;
        loop {
            let room = self.turn();
            // Takes the rest of a huge page that begins within the turn, too.
            let moves = if room > 0 { self.later.runs.take(room + WHOLE) } else { Vec::new() };
            if moves.is_empty() {
                return moved;
            }
            let wanted: Vec<Wanted> =
                moves.into_iter().map(|(page, to)| Wanted { page, to, told: false }).collect();
            let n = wanted.len();
            let (now, waits) = self.move_in_turns(wanted);
            moved += now;
            if waits == n {
                return moved;
            }
        }
    }

    /// Moves pages in turns, as far as the budget has room. The others wait, or their policy is
    /// told that they stay. Returns how many moved, and how many wait.
    pub(super) fn move_in_turns(&mut self, mut moves: Vec<Wanted>) -> (u64, usize) {
        let mut room = self.turn();
        if (moves.len() as u64) > room && room > 0 {
            // Huge pages move whole, so all wanted pages of one have the same turn.
            moves.sort_by_cached_key(|m| self.objects.numbers().address(m.page));
        }
        let (mut moved, mut rest) = (0, &moves[..]);
        loop {
            let (now, waits) = rest.split_at(self.whole_units(rest, room));
            if now.is_empty() {
                break;
            }
            moved += self.move_now(now);
            rest = waits;
            room = self.turn();
        }
        rest.iter().for_each(|m| self.put_off(m));
        self.note_undone(moved);
        (moved, rest.len())
    }

    /// If pages go back, counts that `moved` more have gone back.
    pub(super) fn note_undone(&mut self, moved: u64) {
        let Some(undone) = &mut self.later.undone else { return };
        *undone += moved;
        let why = match self.hold.verdict() {
            Verdict::NoGain => "made no difference",
            _ => "made it worse",
        };
        self.stopped = Some(format!("moving {why} (presence samples); {undone} pages were moved back"));
    }

    /// Pages of the next turn; 0 if there is no room.
    fn turn(&self) -> u64 {
        let took = self.later.took;
        let (price, most) = match measured(took) {
            Some(price) => (price, TURN),
            // A few pages say little about the price, except that it may be high.
            None => (MOVE.max(Ns(took.0.0 / took.1.max(1))), FIRST),
        };
        self.room_at(price, price).min(most)
    }

    /// How many of `moves` make a turn of at most `room` pages that ends with a whole huge page.
    fn whole_units(&self, moves: &[Wanted], room: u64) -> usize {
        let n = room.min(moves.len() as u64) as usize;
        let unit = |m: &Wanted| self.objects.numbers().address(m.page).map(|a| a / HUGE);
        match (n.checked_sub(1).map(|last| unit(&moves[last])), moves.get(n).map(unit)) {
            (Some(last), Some(next)) if last == next => {
                moves[..n].iter().rposition(|m| unit(m) != last).map_or(0, |i| i + 1)
            }
            _ => n,
        }
    }

    fn move_now(&mut self, moves: &[Wanted]) -> u64 {
        let begin = (self.clocks.thread)();
        let moved = self.move_pages(moves);
        self.later.took.0 += (self.clocks.thread)() - begin;
        self.later.took.1 += moves.len() as u64;
        moved
    }

    /// Puts a move off for lack of room.
    fn put_off(&mut self, m: &Wanted) {
        let address = self.objects.numbers().address(m.page);
        let home = address.and_then(|a| self.objects.get(a)?.home(m.page));
        let runs = if m.told { &mut self.later.refused } else { &mut self.later.runs };
        runs.add(m.page, m.to, home != Some(m.to));
        if m.told {
            let result = MoveResult::Busy;
            self.policy.outcome(&MoveOutcome { page: m.page, to: m.to, result, cost: Ns::ZERO });
        }
    }

    /// Pages that the budget had no room to move; the verb for the report; whether the budget is
    /// the only reason.
    pub(super) fn not_moved(&self) -> (u64, &'static str, bool) {
        let Later { runs, refused, missed, .. } = &self.later;
        let back = self.later.is_undoing();
        let what = if back { "moved back" } else { "moved" };
        (runs.pages() + refused.pages() + missed, what, back || self.stopped.is_none())
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
        let mut runs = Runs::default();
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
}
