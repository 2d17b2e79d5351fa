//! How many samples the budget allows: overhead × time / cost of a sample.
//!
//! The cost is measured if possible: homenode's own work for a sample is timed, and the program's
//! fault was timed once on homenode's own memory.

use homenode_model::Ns;

/// A budget of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleBudget {
    /// Thousandths of the time that samples may take; for several CPUs this may be more than a
    /// thousand.
    permille: u64,
    /// When the allowance was last updated.
    last: Ns,
    /// Nanoseconds of samples that may still be taken; below zero if too much was taken.
    left: i64,
}

/// Longest time for which allowance is saved up, so that a program that slept is not flooded
/// afterwards. Debt has the same limit: one sample with an exceptional cost must not be the last
/// one.
const SAVED: Ns = Ns(1_000_000_000);

impl SampleBudget {
    /// This many thousandths from `now` on.
    pub const fn new(permille: u64, now: Ns) -> Self {
        Self { permille, last: now, left: 0 }
    }

    /// The allowance of a second.
    const fn most(&self) -> i64 {
        (SAVED.0 * self.permille / 1000) as i64
    }

    /// Number of samples of `cost` each that may be taken now.
    pub fn room(&mut self, cost: Ns, now: Ns) -> usize {
        let passed = Ns(now.0.saturating_sub(self.last.0)).0;
        self.last = now;
        let more = (passed.min(SAVED.0) * self.permille / 1000) as i64;
        self.left = (self.left + more).min(self.most());
        (self.left.max(0) as u64 / cost.0.max(1)) as usize
    }

    /// Notes samples of this total cost, which may exceed the [`SampleBudget::room`].
    pub fn spend(&mut self, cost: Ns) {
        self.left = self.left.saturating_sub_unsigned(cost.0).max(-self.most());
    }
}

/// The recent cost of a sample, over some thirty samples: it was `before`, and `count` more took
/// `all`.
pub fn lately(before: Ns, all: Ns, count: u64) -> Ns {
    const OF: u64 = 32;
    let Some(each) = all.0.checked_div(count) else { return before };
    let n = count.min(OF);
    Ns((before.0 * (OF - n) + each * n) / OF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(b: &mut SampleBudget, wanted: usize, cost: Ns, now: Ns) -> usize {
        let taken = wanted.min(b.room(cost, now));
        b.spend(cost.times(taken as u64));
        taken
    }

    #[test]
    fn one_percent_of_a_second_at_twelve_microseconds_is_833_samples() {
        let mut b = SampleBudget::new(10, Ns(0));
        assert_eq!(take(&mut b, 10_000, Ns(12_000), Ns(1_000_000_000)), 833);
        assert_eq!(take(&mut b, 10_000, Ns(12_000), Ns(1_000_000_000)), 0);
        assert_eq!(take(&mut b, 5, Ns(12_000), Ns(1_100_000_000)), 5);
    }

    #[test]
    fn a_sleep_saves_no_more_than_a_second() {
        let mut b = SampleBudget::new(10, Ns(0));
        assert_eq!(take(&mut b, 1_000_000, Ns(10_000), Ns(3_600_000_000_000)), 1000);
    }

    #[test]
    fn time_that_goes_back_allows_nothing() {
        let mut b = SampleBudget::new(10, Ns(500));
        assert_eq!(take(&mut b, 10, Ns(1), Ns(100)), 0);
    }

    #[test]
    fn what_was_dearer_than_thought_is_made_up_for() {
        let mut b = SampleBudget::new(10, Ns(0));
        assert_eq!(b.room(Ns(1_000), Ns(100_000_000)), 1000);
        b.spend(Ns(3_000_000));
        assert_eq!(b.room(Ns(1_000), Ns(200_000_000)), 0, "a millisecond more, of two that are owed");
        assert_eq!(b.room(Ns(1_000), Ns(400_000_000)), 1000);
        // But for a second at most.
        b.spend(Ns(u64::MAX));
        assert_eq!(b.room(Ns(1_000), Ns(1_500_000_000)), 0);
        assert_eq!(b.room(Ns(1_000), Ns(2_600_000_000)), 10_000);
    }

    #[test]
    fn many_samples_tell_at_once_what_one_costs() {
        assert_eq!(lately(Ns(700), Ns(64 * 14_000), 64), Ns(14_000));
        assert_eq!(lately(Ns(700), Ns(14_000), 1), Ns(1115));
        assert_eq!(lately(Ns(700), Ns(0), 0), Ns(700));
    }
}
