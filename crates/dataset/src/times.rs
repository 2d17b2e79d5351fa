//! Times of intervals, of a source that does not tell when they began.

use homenode_model::Ns;

/// Deals a time out to intervals that follow each other, in proportion to `weights`: the begin and
/// the end of each. Without any weight all are equally long.
///
/// ```
/// use homenode_dataset::times::dealt;
/// use homenode_model::Ns;
///
/// assert_eq!(dealt(Ns(100), &[1, 3]), [(Ns(0), Ns(25)), (Ns(25), Ns(100))]);
/// assert_eq!(dealt(Ns(100), &[0, 0]), [(Ns(0), Ns(50)), (Ns(50), Ns(100))]);
/// ```
pub fn dealt(time: Ns, weights: &[u64]) -> Vec<(Ns, Ns)> {
    let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    let (sum, even) = if sum == 0 { (weights.len() as u128, true) } else { (sum, false) };
    // The sum has at most 64 bits then, so that its product with a time has at most 128.
    let shift = (u128::BITS - sum.leading_zeros()).saturating_sub(u64::BITS);
    let mut done = 0_u128;
    let mut begin = Ns(0);
    let deal = |weight: &u64| {
        done += if even { 1 } else { u128::from(*weight) };
        let end = u128::from(time.0) * (done >> shift) / (sum >> shift);
        let end = Ns(u64::try_from(end).unwrap_or(u64::MAX));
        (std::mem::replace(&mut begin, end), end)
    };
    weights.iter().map(deal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_time_is_dealt_out_in_order() {
        for weights in [&[1, 0, 5][..], &[u64::MAX; 9], &[0], &[0, 0, 0], &[u64::MAX, 1]] {
            for time in [0, 1, 7, 1_000_000_007, u64::MAX] {
                let all = dealt(Ns(time), weights);
                assert_eq!((all.len(), all[0].0), (weights.len(), Ns(0)));
                assert!(all.windows(2).all(|w| w[0].1 == w[1].0 && w[0].0 <= w[0].1), "{all:?}");
                assert_eq!(all[all.len() - 1].1, Ns(time), "{weights:?} {time}: {all:?}");
            }
        }
        assert_eq!(dealt(Ns(5), &[]), []);
    }
}
