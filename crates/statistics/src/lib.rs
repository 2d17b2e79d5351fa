//! Medians, quantiles, confidence intervals and spreads of a few repetitions.
//!
//! [`Sorted`] holds values in order and answers what their order says: none of these statistics
//! assumes a distribution. [`variation`] is the one that uses every value.
//!
//! ```text
//! let times = Sorted::of([Ns(12), Ns(10), Ns(11), Ns(40)]);
//! times.median()        // Some(11 ns): the mean of 11 and 12, rounded down
//! times.upper_median()  // Some(12 ns): a value that was measured
//! times.interval()      // None: 95 % needs six values
//! ```

use std::cmp::Ordering;

use homenode_model::Ns;

/// A value that has an order and a middle.
pub trait Ordered: Copy {
    /// A total order.
    fn order(&self, other: &Self) -> Ordering;

    /// The mean of `self` and a value that is not smaller. Integers are rounded down.
    fn middle(self, larger: Self) -> Self;

    /// How much larger `self` is than a value that is not larger.
    fn above(self, smaller: Self) -> Self;
}

impl Ordered for f64 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }

    fn middle(self, larger: Self) -> Self {
        Self::midpoint(self, larger)
    }

    fn above(self, smaller: Self) -> Self {
        self - smaller
    }
}

impl Ordered for u64 {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn middle(self, larger: Self) -> Self {
        Self::midpoint(self, larger)
    }

    fn above(self, smaller: Self) -> Self {
        self - smaller
    }
}

impl Ordered for Ns {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn middle(self, larger: Self) -> Self {
        Self(self.0.middle(larger.0))
    }

    fn above(self, smaller: Self) -> Self {
        Self(self.0.above(smaller.0))
    }
}

/// Values in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorted<T>(Vec<T>);

impl<T: Ordered> Sorted<T> {
    /// Sorts values.
    pub fn of(values: impl Into<Vec<T>>) -> Self {
        let mut values = values.into();
        values.sort_unstable_by(T::order);
        Self(values)
    }

    /// Number of values.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest value; `None` of none.
    pub fn smallest(&self) -> Option<T> {
        self.0.first().copied()
    }

    /// The largest value; `None` of none.
    pub fn largest(&self) -> Option<T> {
        self.0.last().copied()
    }

    /// The median; of an even number of values the mean of the two in the middle. `None` of none.
    pub fn median(&self) -> Option<T> {
        let lower = self.quantile(1, 2)?;
        Some(lower.middle(self.upper_median()?))
    }

    /// The median; of an even number of values the larger of the two in the middle, so that the
    /// result is one of the values. `None` of none.
    pub fn upper_median(&self) -> Option<T> {
        self.0.get(self.count() / 2).copied()
    }

    /// The quantile `part`/`of`: the value whose index is that part of the last index, rounded
    /// down. `None` of none.
    ///
    /// # Panics
    /// If `part` is larger than `of`, or `of` is 0.
    pub fn quantile(&self, part: usize, of: usize) -> Option<T> {
        assert!(part <= of, "a quantile lies between the smallest value and the largest");
        let last = self.count().checked_sub(1)?;
        self.0.get(last * part / of).copied()
    }

    /// The percentile by nearest rank: the smallest value that at least `percent` % of the values
    /// do not exceed. `None` of none.
    pub fn percentile(&self, percent: usize) -> Option<T> {
        let rank = (self.count() * percent).div_ceil(100).clamp(1, self.count().max(1));
        self.0.get(rank - 1).copied()
    }

    /// Largest minus smallest; `None` of fewer than two values.
    pub fn range(&self) -> Option<T> {
        (self.count() > 1).then(|| Some(self.largest()?.above(self.smallest()?)))?
    }

    /// The interval that holds the median with a probability of 95 % at least, whatever the
    /// distribution: the sign test's. `None` of fewer than six values, whose smallest and largest
    /// hold it with less.
    pub fn interval(&self) -> Option<(T, T)> {
        let outside = outside_each_end(self.count());
        Some((*self.0.get(outside.checked_sub(1)?)?, *self.0.get(self.count().checked_sub(outside)?)?))
    }
}

/// The most values for which [`outside_each_end`] adds up binomials: 2⁻¹⁰⁰⁰ is a number of `f64`.
const MOST_EXACT: usize = 1000;

/// The rank, from 1, of the value at which the interval of `n` values begins; 0 if all of them are
/// too few.
///
/// The number of values below the median is binomial with one half. The interval from the `k`th
/// smallest value to the `k`th largest misses the median with twice the probability of fewer than
/// `k`.
fn outside_each_end(n: usize) -> usize {
    if n > MOST_EXACT {
        let n = n as f64;
        return (n / 2.0 - 0.98 * n.sqrt()) as usize;
    }
    let mut term = 0.5_f64.powi(n as i32);
    let (mut k, mut sum) = (0, term);
    while sum <= 0.025 {
        k += 1;
        term *= (n + 1 - k) as f64 / k as f64;
        sum += term;
    }
    k
}

/// Standard deviation (of a sample) over mean; 0 of fewer than two values, and where the mean is 0.
pub fn variation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || mean == 0.0 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (squares / (n - 1.0)).sqrt() / mean.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to(n: u64) -> Sorted<Ns> {
        Sorted::of((1..=n).rev().map(Ns).collect::<Vec<_>>())
    }

    #[test]
    fn medians_of_few_values() {
        assert_eq!(Sorted::of([3.0, 1.0, 2.0]).median(), Some(2.0));
        assert_eq!(Sorted::of([4.0, 1.0]).median(), Some(2.5));
        assert_eq!(Sorted::of([9_u64, 4, 1, 2]).median(), Some(3));
        assert_eq!(Sorted::of([4_u64, 1, 2, 7]).upper_median(), Some(4));
        assert_eq!(Sorted::of([Ns(10), Ns(11)]).median(), Some(Ns(10)), "rounded down");
        assert_eq!((up_to(0).median(), up_to(0).upper_median()), (None, None));
    }

    #[test]
    fn quantiles_and_percentiles() {
        let of = |n: u64| [1, 2, 3].map(|part| up_to(n).quantile(part, 4));
        assert_eq!(of(0), [None; 3]);
        assert_eq!(of(1), [Some(Ns(1)); 3]);
        assert_eq!(of(101), [26, 51, 76].map(|n| Some(Ns(n))));
        assert_eq!([1, 99, 100, 200].map(|n| up_to(n).percentile(99).unwrap().0), [1, 99, 99, 198]);
        assert_eq!(up_to(0).percentile(99), None);
    }

    #[test]
    fn ranges() {
        assert_eq!(Sorted::of([3.0, 1.0]).range(), Some(2.0));
        assert_eq!(Sorted::of([3.0]).range(), None);
        assert_eq!((up_to(4).smallest(), up_to(4).largest()), (Some(Ns(1)), Some(Ns(4))));
    }

    #[test]
    fn the_median_s_interval_is_that_of_the_tables() {
        let of = |n: u64| up_to(n).interval();
        assert_eq!([of(0), of(1), of(5)], [None; 3]);
        // Ranks as tables of the sign test have them.
        for (n, from, to) in
            [(6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (20, 6, 15), (50, 18, 33), (70, 27, 44)]
        {
            assert_eq!(of(n), Some((Ns(from), Ns(to))), "{n}");
        }
        assert_eq!((of(1000), of(1001)), (Some((Ns(469), Ns(532))), Some((Ns(469), Ns(533)))));
    }

    #[test]
    fn the_variation_is_that_of_the_formula() {
        // The variance of 1..=n is n (n + 1) / 12.
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert!((variation(&values) - (200.0 * 201.0 / 12.0_f64).sqrt() / 100.5).abs() < 1e-12);
        assert_eq!((variation(&[]), variation(&[7.0]), variation(&[-1.0, 1.0])), (0.0, 0.0, 0.0));
    }
}
