//! What is said of samples.

use homenode_statistics::{Sorted, variation};
use serde::{Deserialize, Serialize};

/// A distribution in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleSummary {
    /// How many samples.
    pub samples: u64,
    /// The smallest.
    pub min: f64,
    /// Half are smaller.
    pub median: f64,
    /// 99 % are smaller; with fewer than 100 samples the largest.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// Standard deviation over mean.
    pub cv: f64,
    /// How far the median would be off if all were measured again: samples in their order in up to
    /// eight groups, standard deviation over mean of the groups' medians, which is what repeated
    /// short measurements show. Of fewer than six samples, the median's standard error (1.2533
    /// σ/√n) over the median.
    pub cv_of_median: f64,
}

impl SampleSummary {
    /// A median that varies more is noisy.
    pub const NOISY: f64 = 0.02;
    const GROUPS: usize = 8;

    /// Of samples in the order in which they were taken; `None` of none, or when one is no number.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.iter().any(|s| !s.is_finite()) {
            return None;
        }
        let sorted = Sorted::of(samples);
        let n = sorted.count();
        let groups = (n / 3).min(Self::GROUPS);
        let cv_of_median = if groups >= 2 {
            let medians: Vec<f64> = (0..groups)
                .filter_map(|g| Sorted::of(&samples[g * n / groups..(g + 1) * n / groups]).median())
                .collect();
            variation(&medians)
        } else {
            1.2533 * variation(samples) / (n as f64).sqrt()
        };
        Some(Self {
            samples: n as u64,
            min: sorted.smallest()?,
            median: sorted.median()?,
            p99: sorted.percentile(99)?,
            max: sorted.largest()?,
            cv: variation(samples),
            cv_of_median,
        })
    }

    /// Of samples that were taken in several passes: the median is that of the passes' medians, and
    /// varies as these do, if that is more than in one of them. `None` of none.
    pub fn of_passes(passes: &[Self]) -> Option<Self> {
        let most = |of: fn(&Self) -> f64| passes.iter().map(of).fold(0.0, f64::max);
        let medians: Vec<f64> = passes.iter().map(|s| s.median).collect();
        Some(Self {
            samples: passes.iter().map(|s| s.samples).sum(),
            min: passes.iter().map(|s| s.min).reduce(f64::min)?,
            median: Sorted::of(medians.as_slice()).median()?,
            p99: most(|s| s.p99),
            max: most(|s| s.max),
            cv: most(|s| s.cv),
            cv_of_median: most(|s| s.cv_of_median).max(variation(&medians)),
        })
    }

    /// Whether the median varies too much to be relied on. One sample does not say.
    pub const fn is_noisy(&self) -> bool {
        self.samples < 2 || self.cv_of_median > Self::NOISY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_samples_have_known_numbers() {
        let samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let s = SampleSummary::of(&samples).unwrap();
        assert_eq!((s.samples, s.min, s.median, s.p99, s.max), (200, 1.0, 100.5, 198.0, 200.0));
        // Variance of 1..n is n (n + 1) / 12.
        assert!((s.cv - (200.0 * 201.0 / 12.0_f64).sqrt() / 100.5).abs() < 1e-12);
        assert!(s.is_noisy(), "a drift is noise");
    }

    #[test]
    fn scatter_is_not_drift() {
        // 90 and 110 in turn: each sample is far off, the median of a group is not.
        let samples: Vec<f64> = (0..800).map(|i| if i % 2 == 0 { 90.0 } else { 110.0 }).collect();
        let s = SampleSummary::of(&samples).unwrap();
        assert!(s.cv > 0.09 && s.cv_of_median == 0.0 && !s.is_noisy());
    }

    #[test]
    fn few_samples_are_judged_by_the_standard_error() {
        let s = SampleSummary::of(&[100.0, 101.0, 99.0]).unwrap();
        assert!((s.cv_of_median - 1.2533 * 0.01 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert!(!s.is_noisy());
        assert!(SampleSummary::of(&[100.0]).unwrap().is_noisy(), "one sample does not say");
        assert_eq!(SampleSummary::of(&[]), None);
        assert_eq!(SampleSummary::of(&[1.0, f64::NAN]), None);
    }
}
