//! Interleaved pairs: two programs are run in turns, A B B A A B B A …, so that what the machine
//! does meanwhile falls on both, and each pair gives one ratio. The median of the ratios comes with
//! the interval of the order statistics that covers it with at least 95 % whatever the ratios'
//! distribution is (the sign test's interval).

/// How sure the interval is.
const SURE: f64 = 0.95;

/// Ratios of pairs, summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The middle one; the mean of the two middle ones when there is an even number.
    pub median: f64,
    /// The interval, or nothing when there are too few pairs for it (fewer than six).
    pub interval: Option<(f64, f64)>,
}

/// Which of the two goes first in pair `number`.
pub fn first_is_ours(number: usize) -> bool {
    number.is_multiple_of(2)
}

/// The median of positive ratios and its interval.
pub fn summarise(ratios: &[f64]) -> Option<Ratio> {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let median = f64::midpoint(*sorted.get(n.checked_sub(1)? / 2)?, sorted[n / 2]);
    Some(Ratio { median, interval: outermost(n).map(|k| (sorted[k], sorted[n - 1 - k])) })
}

/// How many ratios lie outside of the interval at each end.
///
/// The number of ratios below the median is binomial with one half; the interval from the k-th
/// smallest to the k-th largest (from 0) misses the median with twice the probability of at most k.
fn outermost(n: usize) -> Option<usize> {
    let mut at_most = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut term = at_most;
    let mut widest = None;
    for k in 0..n / 2 {
        if 2.0 * at_most > 1.0 - SURE {
            break;
        }
        widest = Some(k);
        term *= (n - k) as f64 / (k + 1) as f64;
        at_most += term;
    }
    widest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // Number of observations and rank (from 1) of the interval's ends at 95 %: the sign test's
        // tables.
        for (n, rank) in
            [(5, None), (6, Some(1)), (8, Some(1)), (9, Some(2)), (12, Some(3)), (15, Some(4)), (20, Some(6))]
        {
            assert_eq!(outermost(n).map(|k| k + 1), rank, "{n}");
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(summarise(&[]), None);
        assert_eq!(summarise(&[3.0, 1.0, 2.0]), Some(Ratio { median: 2.0, interval: None }));
        assert_eq!(summarise(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        let ratio = summarise(&[1.0, 6.0, 2.0, 5.0, 3.0, 4.0]).unwrap();
        assert_eq!((ratio.median, ratio.interval), (3.5, Some((1.0, 6.0))));
    }
}
