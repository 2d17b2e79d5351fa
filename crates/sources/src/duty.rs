//! Switches a source on and off, so that its samples stay within their share of the time: on until
//! they have cost too much, off until that is made up for.
//!
//! The period stays the same. The kernel changes the period of one event alone
//! (`PERF_EVENT_IOC_PERIOD`, kernel/events/core.c, perf_event_period). Threads that inherited the
//! event would keep the old one, and counts could not be compared. On and off reach every thread
//! (perf_event_for_each_child).

use homenode_model::Ns;

/// Thousandths of one CPU's time that samples may take, on each CPU.
const SHARE: u64 = 10;
/// Cost of samples on each CPU after which they are turned off. It is long enough to make the
/// turning worthwhile.
const MOST: Ns = Ns(2_000_000);
/// The times on and off are averages over about this time.
const MEMORY: Ns = Ns(5_000_000_000);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Duty {
    on: bool,
    last: Ns,
    /// Nanoseconds that samples have cost beyond their share.
    owed: u64,
    cpus: u64,
    /// Recent times on and off.
    time_on: u64,
    time_off: u64,
}

impl Duty {
    /// On from now on, on this many CPUs.
    pub const fn new(cpus: u64, now: Ns) -> Self {
        Self { on: true, last: now, owed: 0, cpus, time_on: 0, time_off: 0 }
    }

    /// Whether it is on.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Notes more samples of this cost. Returns whether to turn the source on or off now.
    pub fn after(&mut self, samples: u64, cost: Ns, now: Ns) -> Option<bool> {
        let passed = now.0.saturating_sub(self.last.0);
        self.last = now;
        let time = if self.on { &mut self.time_on } else { &mut self.time_off };
        *time += passed;
        if self.time_on + self.time_off > MEMORY.0 {
            self.time_on /= 2;
            self.time_off /= 2;
        }
        let allowed = passed / 1000 * SHARE * self.cpus;
        self.owed = (self.owed + samples * cost.0).saturating_sub(allowed);
        let on = if self.on { self.owed <= MOST.0 * self.cpus } else { self.owed == 0 };
        (on != self.on).then(|| {
            self.on = on;
            on
        })
    }

    /// Accesses that a sample stands for, if one in `period` is sampled while the source is on.
    pub fn one_in(&self, period: u64) -> u64 {
        let all = u128::from(self.time_on + self.time_off);
        match u128::from(self.time_on) {
            0 => period,
            on => u64::try_from(u128::from(period) * all / on).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_cost_too_much_pause_until_it_is_made_up_for() {
        let mut d = Duty::new(2, Ns(0));
        let ms = |n: u64| Ns(n * 1_000_000);
        // 10 ms of two CPUs have 0.2 ms for samples: 1000 of 2 µs are 1.8 ms too many, 3000 more
        // beyond what may be owed.
        assert_eq!(d.after(1000, Ns(2_000), ms(10)), None);
        assert_eq!(d.one_in(20_011), 20_011);
        assert_eq!(d.after(3000, Ns(2_000), ms(20)), Some(false));
        // 7.6 ms are owed: 380 ms.
        assert_eq!(d.after(0, Ns(2_000), ms(200)), None);
        assert_eq!(d.after(0, Ns(2_000), ms(400)), Some(true));
        assert_eq!(d.one_in(20_000), 400_000, "on for 20 ms of 400");
    }

    #[test]
    fn what_is_spent_is_the_share_whatever_a_sample_costs() {
        for (rate, cost) in [(50_u64, 1_000), (50, 9_000), (1, 500)] {
            let (mut d, mut on, mut spent, mut counted) = (Duty::new(1, Ns(0)), true, 0, 0);
            for now in 1..=20_000_u64 {
                let samples = if on { rate } else { 0 };
                spent += samples * cost;
                counted += samples * d.one_in(1);
                if let Some(next) = d.after(samples, Ns(cost), Ns(now * 1_000_000)) {
                    on = next;
                }
            }
            let share = 20_000 * 1_000_000 / 100;
            let least = (rate * cost * 20_000).min(share);
            assert!(
                spent >= least * 9 / 10 && spent <= share + MOST.0 + rate * cost,
                "{rate} {cost}: {spent}"
            );
            // Counts are of all the time, of which it was off for most.
            let all = rate * 20_000;
            assert!(counted > all / 2 && counted < all * 2, "{rate} {cost}: {counted} of {all}");
        }
    }

    #[test]
    fn time_that_goes_back_does_no_harm() {
        let mut d = Duty::new(1, Ns(1_000));
        assert_eq!(d.after(1, Ns(1), Ns(0)), None);
        assert_eq!(d.one_in(u64::MAX), u64::MAX);
    }
}
