//! The counter that all CPUs of an Arm processor share, and that stamps its samples.

use homenode_model::Ns;

/// The counter and the monotonic clock at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The counter's value.
    pub ticks: u64,
    /// The clock's value.
    pub time: Ns,
    /// Ticks a second.
    pub hertz: u64,
}

impl Counter {
    /// Both, now; `None` on processors other than Arm's.
    pub fn now() -> Option<Self> {
        let (ticks, hertz) = read()?;
        (hertz != 0).then(|| Self { ticks, time: crate::call::now(), hertz })
    }

    /// The time when the counter had the value `ticks`. That must be recent, because the clock's
    /// speed may be adjusted.
    pub fn time(&self, ticks: u64) -> Ns {
        let away = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(self.hertz.max(1))) as u64;
        if ticks <= self.ticks {
            Ns(self.time.0.saturating_sub(away(self.ticks - ticks)))
        } else {
            Ns(self.time.0.saturating_add(away(ticks - self.ticks)))
        }
    }
}

/// The virtual counter and its speed (`CNTVCT_EL0`, `CNTFRQ_EL0`), which Linux lets every program
/// read.
#[cfg(target_arch = "aarch64")]
fn read() -> Option<(u64, u64)> {
    let (ticks, hertz): (u64, u64);
    // SAFETY: reads two registers; no memory, no flags.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
    }
    Some((ticks, hertz))
}

#[cfg(not(target_arch = "aarch64"))]
const fn read() -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_before_and_after_are_times_before_and_after() {
        let counter = Counter { ticks: 1_000_000, time: Ns(5_000_000_000), hertz: 25_000_000 };
        assert_eq!(counter.time(1_000_000), Ns(5_000_000_000));
        assert_eq!(counter.time(1_000_000 - 25), Ns(4_999_999_000));
        assert_eq!(counter.time(1_000_000 + 25_000_000), Ns(6_000_000_000));
        assert_eq!(counter.time(0), Ns(4_960_000_000));
        let early = Counter { time: Ns(10), ..counter };
        assert_eq!(early.time(0), Ns(0));
        // A stamp that makes no sense is a time that makes none, and no panic.
        let _ = (counter.time(u64::MAX), Counter { hertz: 0, ..counter }.time(u64::MAX));
    }

    #[test]
    fn arms_counter_runs_and_others_have_none() {
        match (Counter::now(), Counter::now()) {
            (Some(a), Some(b)) => {
                assert!(cfg!(target_arch = "aarch64") && b.ticks >= a.ticks && b.time >= a.time)
            }
            both => assert_eq!((both, cfg!(target_arch = "aarch64")), ((None, None), false)),
        }
    }
}
