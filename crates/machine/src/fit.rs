//! Caches whose number of sets is a power of two.
//!
//! Real last-level caches are made of slices, one a core, and an odd number of cores gives an odd
//! number of sets. The model indexes sets by address bits. So sets are rounded to a power of two
//! and the ways changed such that the *size*, which decides what fits, stays as near as it can.

use homenode_model::Bytes;

/// Size and ways of the modellable cache nearest to one of `size` bytes with lines of `line` bytes
/// and `ways` ways; `None` when that is no cache (zero, or a line that is no power of two).
///
/// Sets are the power of two nearest to the true number (by ratio; the larger on a tie), ways are
/// what then brings the size nearest: 105 MiB, 15 ways become 104 MiB (131072 sets) × 13 ways; 1.25
/// MiB, 20 ways stay as they are.
pub fn fit_cache(size: Bytes, line: Bytes, ways: u32) -> Option<(Bytes, u32)> {
    if !line.0.is_power_of_two() || ways == 0 || size.0 < line.0 {
        return None;
    }
    let set = line.0.checked_mul(u64::from(ways))?;
    // A cache of less than one set is one set of fewer ways.
    let true_sets = (size.0 / set).max(1);
    let below = 1u64 << true_sets.ilog2();
    // sqrt(2) · below is the middle by ratio: true² ≥ 2 · below² rounds up.
    let up = u128::from(true_sets).pow(2) >= 2 * u128::from(below).pow(2);
    let sets = if up { below.checked_mul(2)? } else { below };
    let column = sets.checked_mul(line.0)?;
    let ways = (size.0.checked_add(column / 2)? / column).max(1);
    Some((Bytes(column.checked_mul(ways)?), u32::try_from(ways).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn caches_that_fit_stay_as_they_are() {
        for (kib, ways) in [(1280, 20), (48 << 10, 12), (512, 8), (8192, 2), (4096, 1)] {
            assert_eq!(fit_cache(Bytes::kib(kib), Bytes(64), ways), Some((Bytes::kib(kib), ways)));
        }
    }

    #[test]
    fn odd_slices_keep_the_size_where_possible() {
        assert_eq!(fit_cache(Bytes::mib(30), Bytes(64), 20), Some((Bytes::mib(30), 15)));
        assert_eq!(fit_cache(Bytes::mib(96), Bytes(64), 16), Some((Bytes::mib(96), 12)));
        assert_eq!(fit_cache(Bytes::mib(105), Bytes(64), 15), Some((Bytes::mib(104), 13)));
    }

    #[test]
    fn nonsense_is_no_cache() {
        for (size, line, ways) in
            [(0, 64, 8), (1 << 20, 48, 8), (1 << 20, 64, 0), (1 << 20, 0, 8), (u64::MAX, 64, 0)]
        {
            assert_eq!(fit_cache(Bytes(size), Bytes(line), ways), None);
        }
    }

    proptest! {
        #[test]
        fn sets_are_a_power_of_two_and_the_size_is_near(size in 64u64..1 << 40, shift in 5u32..9, ways in 1u32..64) {
            let line = 1u64 << shift;
            prop_assume!(size >= line * u64::from(ways));
            let (got, w) = fit_cache(Bytes(size), Bytes(line), ways).unwrap();
            let sets = got.0 / (line * u64::from(w));
            prop_assert!(sets.is_power_of_two());
            prop_assert_eq!(sets * line * u64::from(w), got.0);
            // Half a way of error at most.
            prop_assert!(got.0.abs_diff(size) <= sets * line / 2 || w == 1);
        }

        #[test]
        fn no_input_panics(size: u64, line: u64, ways: u32) {
            let _ = fit_cache(Bytes(size), Bytes(line), ways);
        }
    }
}
