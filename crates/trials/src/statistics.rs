//! Medians of a few repetitions, and how sure they are.

/// The median; none of nothing.
pub fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    let last = all.len().checked_sub(1)?;
    Some((all[last / 2] + all[all.len() / 2]) / 2.0)
}

/// Largest minus smallest; none of fewer than two.
pub fn spread(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    (all.len() > 1).then(|| all[all.len() - 1] - all[0])
}

/// The interval that holds the median with a probability of 95 % at least, by the sign test: the
/// `k`th smallest to the `k`th largest value. None of fewer than six values, whose smallest and
/// largest hold it with less.
pub fn interval(mut all: Vec<f64>) -> Option<(f64, f64)> {
    all.sort_by(f64::total_cmp);
    let n = all.len();
    // Probability that fewer than `k` of `n` values lie below the median, as a sum of binomials.
    let mut tail = 0.0;
    let mut term = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut k = 0;
    while k < n / 2 && tail + term <= 0.025 {
        tail += term;
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    (k > 0).then(|| (all[k - 1], all[n - k]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
        assert_eq!(spread(vec![3.0, 1.0]), Some(2.0));
        assert_eq!(spread(vec![3.0]), None);
    }

    /// Order statistics of the sign test, as tables have them.
    #[test]
    fn intervals_are_those_of_the_sign_test() {
        let of = |n: u32| interval((1..=n).map(f64::from).collect());
        assert_eq!(of(5), None);
        assert_eq!(of(6), Some((1.0, 6.0)));
        assert_eq!(of(8), Some((1.0, 8.0)));
        assert_eq!(of(9), Some((2.0, 8.0)));
        assert_eq!(of(20), Some((6.0, 15.0)));
    }
}
