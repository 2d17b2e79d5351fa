//! What is to be armed, and what arming has left to tidy up.

use homenode_model::NodeId;
use homenode_sys::Span;

use super::waiting::Waiting;
use crate::driver::mover::Manner;
use crate::watch::numbers::PAGE;

/// How often everything is armed without a request: at the first region, and when a level of the
/// iteration is found.
const UNASKED: u32 = 3;

/// Neighbouring pages with the same target node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SameTarget {
    /// The pages.
    pub pages: homenode_model::PageRange,
    /// Their target.
    pub to: NodeId,
    /// Whether the policy wants to know the outcome of each page.
    pub told: bool,
}

impl SameTarget {
    /// Extends these pages by `next`, if they have one target and `next` follows.
    pub fn is_extended(&mut self, next: &Self) -> bool {
        let follows = self.pages.first.0 + self.pages.count == next.pages.first.0;
        let joins = follows && (self.to, self.told) == (next.to, next.told);
        self.pages.count += if joins { next.pages.count } else { 0 };
        joins
    }
}

/// Spans to arm, by the manner in which their pages come to the toucher.
#[derive(Debug, Default)]
pub struct ToArm {
    /// Spans whose pages come with others around the touched one.
    pub around: Vec<Span>,
    /// Spans whose pages come one by one.
    pub alone: Vec<Span>,
}

impl ToArm {
    /// Spans whose pages come one by one.
    pub fn alone(alone: Vec<Span>) -> Self {
        Self { alone, ..Self::default() }
    }

    /// The spans of a manner.
    pub const fn of(&mut self, manner: Manner) -> &mut Vec<Span> {
        match manner {
            Manner::Alone => &mut self.alone,
            _ => &mut self.around,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct ArmingWork {
    /// Memory that waits for its turn.
    pub waiting: Waiting,
    /// Whether the current work is a request of the program.
    pub asked: bool,
    /// Pages that did not exist when an object was last looked at.
    missing: Vec<Span>,
    /// Whether seams should be armed page by page.
    seams: bool,
    /// Whether everything was armed in this round.
    all: bool,
    /// How often everything was armed without a request.
    unasked: u32,
    /// Whether something armed was touched since the last tidying up, moved or not.
    unsettled: bool,
    /// Whether there may be huge pages to restore.
    pub split: bool,
}

impl ArmingWork {
    /// The page does not exist yet.
    pub fn miss(&mut self, page: usize) {
        match self.missing.last_mut() {
            Some(span) if span.end == page => span.end += PAGE,
            _ => self.missing.push(Span::new(page, PAGE)),
        }
    }

    /// Removes and returns the pages that did not exist.
    pub fn take_missing(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.missing)
    }

    /// Everything is armed, or asked for again.
    pub const fn arms_all(&mut self) {
        self.all = true;
    }

    /// A round ends. If everything has had its turn, every page that is used at all has been
    /// touched, and seams can be seen.
    pub fn round_ends(&mut self, follows_first: bool) {
        if self.waiting.is_empty() {
            self.seams |= std::mem::take(&mut self.all) && follows_first;
        }
    }

    /// Pages moved in a region at whose start all waiting memory was armed. A touch brought whole
    /// blocks, so at the seams some pages are on the wrong node.
    pub fn moved_in_region(&mut self) {
        self.seams |= self.waiting.is_empty();
    }

    /// Whether seams should be armed. They are asked for once.
    pub const fn takes_seams(&mut self) -> bool {
        std::mem::replace(&mut self.seams, false)
    }

    /// Whether everything may be armed again without a request, because a level of the iteration
    /// was found.
    pub const fn may_arm_again(&self) -> bool {
        self.unasked > 0 && self.unasked < UNASKED
    }

    /// Everything is armed again without a request.
    pub const fn arms_again(&mut self) {
        self.unasked += 1;
    }

    /// Something was armed at the start of a region, without a request.
    pub fn has_armed(&mut self) {
        self.unasked = self.unasked.max(1);
    }

    /// Whether nothing has been armed without a request.
    pub const fn is_untried(&self) -> bool {
        self.unasked == 0
    }

    /// Something armed was touched.
    pub const fn touched(&mut self) {
        self.unsettled = true;
    }

    /// Whether touched memory should be tidied up. Huge pages may be split then.
    pub const fn takes_unsettled(&mut self) -> bool {
        let unsettled = std::mem::replace(&mut self.unsettled, false);
        self.split |= unsettled;
        unsettled
    }
}

#[cfg(test)]
mod tests {
    use homenode_model::{ObjectId, PageNo, PageRange};

    use super::*;
    use crate::driver::state::waiting::Why;

    #[test]
    fn missing_neighbours_are_one_span() {
        let mut arming = ArmingWork::default();
        [0, 1, 2, 5, 6].into_iter().for_each(|i| arming.miss(i * PAGE));
        assert_eq!(arming.take_missing(), [Span::new(0, 3 * PAGE), Span::new(5 * PAGE, 2 * PAGE)]);
        assert!(arming.take_missing().is_empty());
    }

    #[test]
    fn seams_are_looked_at_once_everything_had_its_turn() {
        let mut arming = ArmingWork::default();
        arming.arms_all();
        arming.waiting.add(Why::New, 64, ObjectId(1));
        arming.round_ends(true);
        assert!(!arming.takes_seams(), "an object waits");
        arming.waiting.forget(64, 1);
        arming.round_ends(true);
        assert!(arming.takes_seams() && !arming.takes_seams());
        arming.round_ends(true);
        assert!(!arming.takes_seams(), "nothing was armed since");
        arming.moved_in_region();
        assert!(arming.takes_seams());
    }

    #[test]
    fn everything_is_armed_three_times_at_most() {
        let mut arming = ArmingWork::default();
        assert!(arming.is_untried() && !arming.may_arm_again(), "nothing to correct");
        (0..5).for_each(|_| arming.has_armed());
        let mut again = 0;
        while arming.may_arm_again() {
            arming.arms_again();
            again += 1;
        }
        assert_eq!(again, 2);
    }

    #[test]
    fn touches_are_tidied_up_once_and_may_have_split_huge_pages() {
        let mut arming = ArmingWork::default();
        assert!(!arming.takes_unsettled() && !arming.split);
        arming.touched();
        assert_eq!([(); 2].map(|()| arming.takes_unsettled()), [true, false]);
        assert!(arming.split);
    }

    #[test]
    fn only_neighbours_with_one_target_are_joined() {
        let pages = |first, count| PageRange { first: PageNo(first), count };
        let run = |first, to, told| SameTarget { pages: pages(first, 1), to: NodeId(to), told };
        let mut first = run(4, 1, true);
        for other in [run(6, 1, true), run(5, 0, true), run(5, 1, false)] {
            assert!(!first.is_extended(&other), "{other:?}");
        }
        assert!(first.is_extended(&run(5, 1, true)) && first.pages == pages(4, 2));
    }
}
