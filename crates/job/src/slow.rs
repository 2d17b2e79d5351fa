//! Slow ranks: those that worked longer than the others.
//!
//! **Problem.** Ranks wait for each other, so all of them end at the same time. Most MPI libraries
//! wait by spinning, so all of them take the same CPU time, too.
//!
//! **Approach.** Time in parallel regions has no waiting for other ranks in it, as long as the
//! program communicates outside of them. So that time decides where every rank has it. Otherwise
//! the CPU time decides; it shows slow ranks only where waiting takes none.

use crate::part::RankSummary;
use crate::place::named;

/// How much longer than the median a slow rank worked, in percent.
const MORE: u64 = 10;
/// The least that a slow rank worked longer, in nanoseconds: ten ticks of the kernel's CPU times.
const LEAST: u64 = 100_000_000;

/// What is compared between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yardstick {
    /// Time in parallel regions.
    Regions,
    /// CPU time of the program.
    Cpu,
}

impl Yardstick {
    /// The one that every part has.
    pub fn of(parts: &[RankSummary]) -> Self {
        let has = |p: &RankSummary| p.measured.is_some_and(|m| m.regions_ns > 0);
        if !parts.is_empty() && parts.iter().all(has) { Self::Regions } else { Self::Cpu }
    }

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regions => "time in parallel regions",
            Self::Cpu => "CPU time",
        }
    }

    /// Of one rank, in nanoseconds.
    pub fn value(self, part: &RankSummary) -> u64 {
        match self {
            Self::Regions => part.measured.map_or(0, |m| m.regions_ns),
            Self::Cpu => part.cpu_ns,
        }
    }
}

/// A sentence for each slow rank, the slowest first.
pub fn sentences(parts: &[RankSummary]) -> Vec<String> {
    let yardstick = Yardstick::of(parts);
    let mut values: Vec<u64> = parts.iter().map(|p| yardstick.value(p)).collect();
    values.sort_unstable();
    // Of two ranks the faster one counts.
    let Some(&median) = values.get(values.len().saturating_sub(1) / 2).filter(|m| **m > 0) else {
        return Vec::new();
    };
    let is_slow = |v: u64| v - median.min(v) >= (median / 100 * MORE).max(LEAST);
    let mut slow: Vec<&RankSummary> = parts.iter().filter(|p| is_slow(yardstick.value(p))).collect();
    slow.sort_by_key(|p| (std::cmp::Reverse(yardstick.value(p)), p.rank));
    let sentence = |part: &&RankSummary| {
        let value = yardstick.value(part);
        format!(
            "{} is slow: {:.2} s of {}, the median rank has {:.2} s (+{:.0} %)",
            named("rank", [part.rank]),
            value as f64 * 1e-9,
            yardstick.name(),
            median as f64 * 1e-9,
            (value - median) as f64 * 100.0 / median as f64
        )
    };
    slow.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Measured;
    use crate::summary::example;

    const MS: u64 = 1_000_000;

    fn with(regions: &[u64], cpu: &[u64]) -> Vec<RankSummary> {
        let mut parts = example(regions.len());
        for ((part, r), c) in parts.iter_mut().zip(regions).zip(cpu) {
            part.measured = Some(Measured { regions_ns: r * MS, ..Measured::default() });
            part.cpu_ns = c * MS;
        }
        parts
    }

    #[test]
    fn time_in_regions_decides_although_every_rank_spins_for_the_same_time() {
        let parts = with(&[1000, 1050, 990, 2000], &[4000; 4]);
        assert_eq!(
            sentences(&parts),
            ["rank 3 is slow: 2.00 s of time in parallel regions, the median rank has 1.00 s (+100 %)"]
        );
    }

    #[test]
    fn without_regions_in_every_rank_cpu_time_decides() {
        let parts = with(&[1000, 0], &[1000, 1500]);
        assert_eq!(
            sentences(&parts),
            ["rank 1 is slow: 1.50 s of CPU time, the median rank has 1.00 s (+50 %)"]
        );
    }

    #[test]
    fn little_more_is_not_slow() {
        assert_eq!(sentences(&with(&[1000, 1000, 1090], &[0; 3])), Vec::<String>::new());
        // 50 % of 20 ms is less than the kernel's clock can tell.
        assert_eq!(sentences(&with(&[20, 20, 30], &[0; 3])), Vec::<String>::new());
        assert_eq!(sentences(&[]), Vec::<String>::new());
    }

    #[test]
    fn the_slowest_comes_first() {
        let slow = sentences(&with(&[1000, 1500, 1000, 3000, 1000], &[0; 5]));
        assert_eq!(slow.len(), 2);
        assert!(slow[0].starts_with("rank 3 ") && slow[1].starts_with("rank 1 "), "{slow:?}");
    }
}
