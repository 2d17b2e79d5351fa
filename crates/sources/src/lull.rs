//! Lulls: whether the program has few page faults now, so that reports of all faults cost little.
//!
//! Initialisations touch fresh pages all the time, and some programs free and allocate memory all
//! the time. The kernel's fault count of the process shows that without any report.

use homenode_model::Ns;

/// Thousandths of the CPUs' time that reports of faults may take.
const SHARE: u64 = 10;
/// Shortest time over which faults are counted.
const LEAST: Ns = Ns(2_000_000);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Lull {
    cpus: u64,
    /// Time and number of faults at the last count.
    last: (Ns, u64),
    few: bool,
    /// Total time with too many faults.
    many: Ns,
}

impl Lull {
    /// From now on, on this many CPUs. `faults`: the process's faults so far.
    pub const fn new(cpus: u64, faults: u64, now: Ns) -> Self {
        Self { cpus, last: (now, faults), few: true, many: Ns::ZERO }
    }

    /// Whether the program had few faults since the last call. `faults`: its faults so far.
    /// `telling`: the cost of a report.
    pub fn look(&mut self, faults: u64, telling: Ns, now: Ns) -> bool {
        let passed = now.0.saturating_sub(self.last.0.0);
        if passed >= LEAST.0 {
            let cost = faults.saturating_sub(self.last.1).saturating_mul(telling.0);
            self.few = cost <= passed / 1000 * SHARE * self.cpus;
            self.last = (now, faults);
            self.many += Ns(if self.few { 0 } else { passed });
        }
        self.few
    }

    /// Restarts the total time with too many faults.
    pub const fn forget(&mut self) {
        self.many = Ns::ZERO;
    }

    /// Total time with too many faults.
    pub const fn many(&self) -> Ns {
        self.many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initialisation_is_no_lull_and_what_follows_is() {
        let mut lull = Lull::new(2, 1000, Ns(0));
        let ms = |n: u64| Ns(n * 1_000_000);
        assert!(lull.look(50_000, Ns(800), ms(1)), "too short to tell");
        // 10 ms of two CPUs have 0.2 ms for 250 faults of 0.8 µs.
        assert!(!lull.look(1251, Ns(800), ms(10)));
        assert!(lull.look(1501, Ns(800), ms(20)));
        assert!(!lull.look(9000, Ns(800), ms(25)));
        assert!(!lull.look(9000, Ns(800), ms(26)), "not counted anew");
        assert!(lull.look(9000, Ns(800), ms(28)));
        assert_eq!(lull.many(), ms(15));
    }

    #[test]
    fn time_and_counts_that_go_back_do_no_harm() {
        let mut lull = Lull::new(1, 10, Ns(100_000_000));
        assert!(lull.look(0, Ns(u64::MAX), Ns(0)) && lull.look(5, Ns(u64::MAX), Ns(200_000_000)));
        lull.forget();
        assert!(!lull.look(6, Ns(u64::MAX), Ns(300_000_000)));
        assert_eq!(lull.many(), Ns(100_000_000));
    }
}
