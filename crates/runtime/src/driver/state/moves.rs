//! Moves: those that are wanted now, those that wait, and counts of pages that moved.

use std::collections::BTreeSet;

use homenode_model::{NodeId, PageNo, PageRange};
use homenode_sys::HUGE;

use super::overlap::Overlap;
use super::postponed::Postponed;
use crate::watch::numbers::PageNumbers;

/// A page that should move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedMove {
    /// The page.
    pub page: PageNo,
    /// The node on which it should be.
    pub to: NodeId,
    /// Whether the policy wants to know the outcome.
    pub told: bool,
}

/// Pages that are to move together.
#[derive(Debug, Default)]
pub struct MoveList {
    wanted: Vec<WantedMove>,
    /// Pages that are already where the policy places them, among those that it decides on now.
    stays: Vec<WantedMove>,
}

impl MoveList {
    /// These pages should move. `told`: the policy wants to know the outcome.
    pub fn add(&mut self, pages: PageRange, to: NodeId, told: bool) {
        self.wanted.extend(pages.iter().map(|page| WantedMove { page, to, told }));
    }

    /// These pages are at their target.
    pub fn stay(&mut self, pages: PageRange, to: NodeId) {
        self.stays.extend(pages.iter().map(|page| WantedMove { page, to, told: false }));
    }

    /// Removes and returns the pages that still exist. Pages that stay are among them if others of
    /// their huge page should move: a huge page moves whole, so they count when its target is
    /// chosen.
    pub fn take(&mut self, numbers: &PageNumbers) -> Vec<WantedMove> {
        let (mut moves, stays) = (std::mem::take(&mut self.wanted), std::mem::take(&mut self.stays));
        if !moves.is_empty() {
            let unit = |w: &WantedMove| numbers.address(w.page).map(|address| address & !(HUGE - 1));
            let units: BTreeSet<usize> = moves.iter().filter_map(unit).collect();
            moves.extend(stays.into_iter().filter(|w| unit(w).is_some_and(|u| units.contains(&u))));
        }
        moves.retain(|m| numbers.address(m.page).is_some());
        moves
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct PageMoves {
    /// Pages that are to move now.
    pub list: MoveList,
    /// Moves that wait for room in the budget.
    pub later: Postponed,
    /// Whether moves wait for the team to run.
    pub overlap: Overlap,
    /// Counts of pages that moved.
    pub counts: MoveCounts,
}

/// Counts of pages that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveCounts {
    /// Pages that moved with a touch since the region began.
    pub now: u64,
    /// Pages of these that returned to their former home, and such moves by the kernel.
    pub ping_pongs: u64,
    /// Pages that moved in this round, up to the last end of a region.
    pub in_round: u64,
    /// Whether pages have moved.
    pub ever: bool,
}

impl MoveCounts {
    /// A page moved with a touch. `back`: it returned to its former home.
    pub fn with_touch(&mut self, back: bool) {
        self.now += 1;
        self.ping_pongs += u64::from(back);
        self.ever = true;
    }

    /// The kernel has moved pages.
    pub const fn by_kernel(&mut self, pages: u64, ping_pongs: u64) {
        self.in_round += pages;
        self.ping_pongs += ping_pongs;
        self.ever |= pages > 0;
    }

    /// A region begins.
    pub const fn region_begins(&mut self) {
        (self.now, self.ping_pongs) = (0, 0);
    }

    /// A region has ended.
    pub const fn region_ends(&mut self) {
        self.in_round += self.now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::numbers::PAGE;

    #[test]
    fn pages_that_stay_are_listed_only_beside_others_of_their_huge_page() {
        let mut numbers = PageNumbers::default();
        let pages = numbers.give(4 * HUGE, 3 * (HUGE / PAGE) as u64);
        let page = |at: usize| PageNo(pages.first.0 + (at / PAGE) as u64);
        let range = |first, count| PageRange { first, count };
        let mut list = MoveList::default();
        list.stay(range(page(0), 1), NodeId(1));
        list.stay(range(page(HUGE), 1), NodeId(1));
        assert_eq!(list.take(&numbers), [], "nothing should move");
        list.stay(range(page(0), 1), NodeId(1));
        list.stay(range(page(HUGE), 1), NodeId(1));
        list.add(range(page(HUGE + 4 * PAGE), 2), NodeId(0), true);
        list.add(range(PageNo(pages.first.0 + pages.count), 1), NodeId(0), true);
        let taken: Vec<_> = list.take(&numbers).iter().map(|w| (w.page, w.to.0, w.told)).collect();
        let moves = [page(HUGE + 4 * PAGE), page(HUGE + 5 * PAGE)].map(|page| (page, 0, true));
        assert_eq!(taken, [&moves[..], &[(page(HUGE), 1, false)]].concat(), "and only pages that exist");
        assert_eq!(list.take(&numbers), []);
    }

    #[test]
    fn counts_are_of_a_region_a_round_and_the_run() {
        let mut c = MoveCounts::default();
        c.with_touch(true);
        c.with_touch(false);
        c.by_kernel(5, 1);
        assert_eq!(c, MoveCounts { now: 2, ping_pongs: 2, in_round: 5, ever: true });
        c.region_ends();
        c.region_begins();
        assert_eq!(c, MoveCounts { now: 0, ping_pongs: 0, in_round: 7, ever: true });
        let mut none = MoveCounts::default();
        none.by_kernel(0, 0);
        assert_eq!(none, MoveCounts::default());
    }
}
