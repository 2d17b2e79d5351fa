//! How many samples the budget allows: overhead × time / what a sample costs.
//!
//! The cost is measured where it can be: what homenode itself does for a sample is timed, what the program pays in
//! a fault was timed once on memory of homenode's own.

use homenode_model::Ns;

/// Allows samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Thousandths of the time that may go into samples; of several CPUs' more than a thousand.
    permille: u64,
    /// Where the allowance was last looked at.
    last: Ns,
    /// Nanoseconds of samples that may still be taken.
    left: u64,
}

/// Allowance is saved up for so long at most: a program that slept must not be flooded afterwards.
const SAVED: Ns = Ns(1_000_000_000);

impl Budget {
    /// So many thousandths from `now` on.
    pub const fn new(permille: u64, now: Ns) -> Self {
        Self { permille, last: now, left: 0 }
    }

    /// How many samples of `cost` each may be taken now.
    pub fn room(&mut self, cost: Ns, now: Ns) -> usize {
        let passed = Ns(now.0.saturating_sub(self.last.0)).0;
        self.last = now;
        let most = SAVED.0 * self.permille / 1000;
        self.left = (self.left + passed.min(SAVED.0) * self.permille / 1000).min(most);
        (self.left / cost.0.max(1)) as usize
    }

    /// So many samples are taken for which there was [`Budget::room`].
    pub const fn spend(&mut self, taken: usize, cost: Ns) {
        self.left = self.left.saturating_sub(taken as u64 * cost.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(b: &mut Budget, wanted: usize, cost: Ns, now: Ns) -> usize {
        let taken = wanted.min(b.room(cost, now));
        b.spend(taken, cost);
        taken
    }

    #[test]
    fn one_percent_of_a_second_at_twelve_microseconds_is_833_samples() {
        let mut b = Budget::new(10, Ns(0));
        assert_eq!(take(&mut b, 10_000, Ns(12_000), Ns(1_000_000_000)), 833);
        assert_eq!(take(&mut b, 10_000, Ns(12_000), Ns(1_000_000_000)), 0);
        assert_eq!(take(&mut b, 5, Ns(12_000), Ns(1_100_000_000)), 5);
    }

    #[test]
    fn a_sleep_saves_no_more_than_a_second() {
        let mut b = Budget::new(10, Ns(0));
        assert_eq!(take(&mut b, 1_000_000, Ns(10_000), Ns(3_600_000_000_000)), 1000);
    }

    #[test]
    fn time_that_goes_back_allows_nothing() {
        let mut b = Budget::new(10, Ns(500));
        assert_eq!(take(&mut b, 10, Ns(1), Ns(100)), 0);
    }
}
