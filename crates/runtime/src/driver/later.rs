//! Moves that wait for their turn.
//!
//! # Problem
//!
//! The team waits while pages are moved. A policy, a plan or a verdict may want all memory moved at
//! one moment, and what a page costs is known only from having moved some.
//!
//! # Approach
//!
//! Pages are moved in turns of some thousand, a few hundred until the price is known, and before
//! each the budget is asked whether there is room for it at the measured price. What has no turn
//! stays where it is. A policy that wants to know what became of its moves is told so, and decides
//! anew by what it has seen until then. What is placed once and for all (by a plan, by a policy
//! that places by address, and what is moved back) waits and follows at the begins of later
//! regions, as the budget grows.
//!
//! What is moved back because moving did not pay keeps within the budget like all else, for that is
//! what was promised, and to go back stops the team as long as to come did. It has what is kept of
//! the budget for samples, which nobody takes any more.

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
/// What it costs to move a page, until enough have told.
const MOVE: Ns = Ns(4_000);
/// Pages of a turn: 32 MiB, some tens of milliseconds; and of the first ones.
const TURN: u64 = 8192;
const FIRST: u64 = 512;

/// Where pages are to go, by runs.
#[derive(Debug, Default)]
pub(super) struct Runs(BTreeMap<u64, Run>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    count: u64,
    to: NodeId,
    /// It is elsewhere; else it has a say where the rest of its huge page goes.
    goes: bool,
}

impl Runs {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A page is to go to `to`, whatever was to become of it before; or to stay there, unless it
    /// `goes`.
    fn add(&mut self, page: PageNo, to: NodeId, goes: bool) {
        self.remove(PageRange { first: page, count: 1 });
        match self.0.range_mut(..page.0).next_back() {
            Some((first, run)) if first + run.count == page.0 && (run.to, run.goes) == (to, goes) => {
                run.count += 1;
            }
            _ => _ = self.0.insert(page.0, Run { count: 1, to, goes }),
        }
    }

    /// These wait no longer. How many were to go.
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

    /// The first `n` pages, which wait no longer.
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

    /// How many are to go.
    fn pages(&self) -> u64 {
        self.0.values().filter(|run| run.goes).map(|run| run.count).sum()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Later {
    /// What follows.
    runs: Runs,
    /// What a policy was told of that it stays. Only counted: the policy decides anew.
    refused: Runs,
    looked: Ns,
    /// What moving took so far, and pages.
    took: (Ns, u64),
    /// Pages that were to go, of objects that went before their turn.
    missed: u64,
    /// Pages that were moved back, once it was seen that moving does not pay.
    undone: Option<u64>,
}

impl Later {
    /// Somebody else has decided on these pages.
    pub fn forget(&mut self, pages: PageRange) -> u64 {
        if self.runs.is_empty() && self.refused.is_empty() {
            return 0;
        }
        self.runs.remove(pages) + self.refused.remove(pages)
    }

    /// The object of these pages is no longer there.
    pub fn dies(&mut self, pages: PageRange) {
        self.missed += self.forget(pages);
    }

    /// Nothing is as it was decided: all goes back.
    pub fn undo(&mut self) {
        *self = Self { took: self.took, undone: Some(0), ..Self::default() };
    }

    /// Whether all that moved is back, as far as it goes back.
    pub fn is_undone(&self) -> bool {
        self.is_undoing() && self.runs.is_empty()
    }

    /// Whether what moved goes back.
    pub const fn is_undoing(&self) -> bool {
        self.undone.is_some()
    }
}

impl Driver {
    /// Whether it is time to look for room for what waits to be moved.
    pub(super) fn is_move_due(&self, now: Ns) -> bool {
        !self.later.runs.is_empty()
            && now - self.later.looked >= GAP
            && (self.stopped.is_none() || self.later.is_undoing())
    }

    /// Moves what waits, as far as there is room. How many pages moved.
    pub(super) fn move_later(&mut self) -> u64 {
        self.later.looked = (self.clocks.wall)();
        let mut moved = 0;
        loop {
            let room = self.turn();
            // With the rest of a huge page that begins within the turn.
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

    /// Moves pages in turns, as far as there is room; the others wait, or their policy is told that
    /// they stay. How many moved, and how many wait.
    pub(super) fn move_in_turns(&mut self, mut moves: Vec<Wanted>) -> (u64, usize) {
        let mut room = self.turn();
        if (moves.len() as u64) > room && room > 0 {
            // Huge pages move whole, so all that is wanted of one has its turn at once.
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

    /// If what moved goes back, says so, and that so many more pages have.
    pub(super) fn note_undone(&mut self, moved: u64) {
        let Some(undone) = &mut self.later.undone else { return };
        *undone += moved;
        let why = match self.hold.verdict() {
            Verdict::NoGain => "made no difference",
            _ => "made it worse",
        };
        self.stopped = Some(format!("moving {why} (presence samples); {undone} pages were moved back"));
    }

    /// Pages of the next turn; 0: there is no room.
    fn turn(&self) -> u64 {
        let took = self.later.took;
        let (price, most) = match measured(took) {
            Some(price) => (price, TURN),
            // A few pages say little, but that it may be dear.
            None => (MOVE.max(Ns(took.0.0 / took.1.max(1))), FIRST),
        };
        self.room_at(price, price).min(most)
    }

    /// How many of the moves are one turn of at most `room` that ends with a huge page's worth.
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

    /// There is no room for a move now.
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

    /// Pages that were to be moved and for which the budget had no room; what was to become of
    /// them; whether that is not for another reason.
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
