//! The licence of a trial: whether moving has shown a gain, so that the whole budget may be spent.
//!
//! Pilots or the guard's verdict grant the licence; the verdict grants it once. After each
//! [`REVIEW`] of own time the licence is withdrawn if moving brought too little: less than one in
//! [`GAINS`] of the pages copied since then had another home, or each such page cost more than
//! [`PRICE`]. There is no licence while threads change nodes, because no gain is known to last
//! then.

use homenode_model::Ns;

/// Own time between two reviews.
const REVIEW: Ns = Ns(30_000_000);
/// One in this many of the copied pages must have moved.
const GAINS: u64 = 16;
/// What a moved page may have cost.
const PRICE: Ns = Ns(100_000);

/// What moving has cost and brought so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// homenode's own time.
    pub own: Ns,
    /// Copied pages.
    pub copied: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Licence {
    held: bool,
    /// Pages that moved with a touch.
    moved: u64,
    /// What had been spent, and how many pages had moved, at the last review.
    reviewed: (Spent, u64),
    /// Whether the guard's verdict has granted the licence.
    by_verdict: bool,
}

impl Licence {
    /// Whether the whole budget may be spent.
    pub const fn is_held(&self) -> bool {
        self.held
    }

    /// A page moved with a touch.
    pub const fn page_moved(&mut self) {
        self.moved += 1;
    }

    /// Grants the licence, unless threads change nodes.
    pub fn grant(&mut self, spent: Spent, threads_change: bool) {
        if !self.held && !threads_change {
            self.held = true;
            self.reviewed = (spent, self.moved);
        }
    }

    /// Withdraws the licence if it brings too little, or grants it by the guard's verdict. `pays`:
    /// the verdict is that moving pays.
    pub fn review(&mut self, spent: Spent, pays: bool, threads_change: bool) {
        // A small gain does not justify spending more than it brings.
        if pays && !self.by_verdict && spent.own <= PRICE.times(self.moved) {
            self.by_verdict = true;
            return self.grant(spent, threads_change);
        }
        self.held &= !threads_change;
        let (before, moved_before) = self.reviewed;
        let (own, copied, moved) =
            (spent.own - before.own, spent.copied - before.copied, self.moved - moved_before);
        if self.held && own >= REVIEW {
            self.held = moved * GAINS >= copied && own <= PRICE.times(moved);
            self.reviewed = (spent, self.moved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(own: Ns, copied: u64) -> Spent {
        Spent { own, copied }
    }

    fn licence(moved: u64) -> Licence {
        let mut licence = Licence::default();
        (0..moved).for_each(|_| licence.page_moved());
        licence
    }

    #[test]
    fn there_is_none_while_threads_change_nodes() {
        let mut l = licence(0);
        l.grant(Spent::default(), true);
        assert!(!l.is_held());
        l.grant(Spent::default(), false);
        assert!(l.is_held());
        l.review(Spent::default(), false, true);
        assert!(!l.is_held());
    }

    #[test]
    fn it_ends_when_few_of_the_copied_pages_moved_or_each_was_dear() {
        let after = |own, copied, moved: u64| {
            let mut l = licence(0);
            l.grant(Spent::default(), false);
            (0..moved).for_each(|_| l.page_moved());
            l.review(spent(own, copied), false, false);
            l.is_held()
        };
        assert!(after(REVIEW - Ns(1), 1 << 20, 0), "too early to say");
        assert!(after(REVIEW, 300 * GAINS, 300));
        assert!(!after(REVIEW, 300 * GAINS + 1, 300), "few moved");
        assert!(!after(PRICE.times(300) + Ns(1), 300, 300), "dear");
    }

    #[test]
    fn each_review_counts_from_the_one_before() {
        let mut l = licence(300);
        l.grant(spent(Ns(0), 0), false);
        (0..300).for_each(|_| l.page_moved());
        l.review(spent(REVIEW, 300), false, false);
        assert!(l.is_held());
        l.review(spent(REVIEW.times(2), 600), false, false);
        assert!(!l.is_held(), "nothing has moved since");
    }

    #[test]
    fn a_verdict_grants_it_once_and_not_for_more_than_it_brings() {
        let mut l = licence(10);
        l.review(spent(PRICE.times(10) + Ns(1), 10), true, false);
        assert!(!l.is_held(), "too dear");
        l.review(spent(PRICE.times(10), 10), true, false);
        assert!(l.is_held());
        l.review(spent(PRICE.times(10), 10), true, true);
        l.review(spent(PRICE.times(10), 10), true, false);
        assert!(!l.is_held(), "once");
    }
}
