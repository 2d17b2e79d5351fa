//! The order of objects in a report: the object with most moved pages comes first.
//!
//! Two arrays of one loop move about equally many pages, and chance decides which array is ahead by
//! a page. Objects whose numbers of moved pages differ by less than an eighth therefore count as
//! equal. Of equal objects, the larger comes first, then the older. So the next run names the same
//! array first.

use std::cmp::Reverse;

/// An object counts as equal to the one with most moves if it has at least this many eighths of
/// them.
const EQUAL: u64 = 7;

/// What decides on an object's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank<I> {
    /// Pages that moved.
    pub moved: u64,
    pub bytes: usize,
    /// Grows from the oldest object to the youngest.
    pub id: I,
}

/// Sorts objects by their ranks.
pub(super) fn sort<T, I: Ord + Copy>(objects: &mut [T], rank: impl Fn(&T) -> Rank<I>) {
    objects.sort_by_key(|o| (Reverse((rank(o).moved, rank(o).bytes)), rank(o).id));
    let mut rest = objects;
    while let Some(most) = rest.first().map(|o| rank(o).moved) {
        let equal = rest.iter().take_while(|o| rank(o).moved * 8 >= most * EQUAL).count();
        let (group, others) = rest.split_at_mut(equal);
        group.sort_by_key(|o| (Reverse(rank(o).bytes), rank(o).id));
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(objects: &[(u64, usize, u32)]) -> Vec<u32> {
        let mut all = objects.to_vec();
        sort(&mut all, |&(moved, bytes, id)| Rank { moved, bytes, id });
        all.into_iter().map(|(_, _, id)| id).collect()
    }

    #[test]
    fn two_arrays_of_a_loop_keep_their_order_from_run_to_run() {
        for (a, b) in [(1020, 1026), (1026, 1026), (1026, 1020), (1026, 900)] {
            assert_eq!(sorted(&[(3, 1 << 24, 3), (b, 1 << 22, 2), (a, 1 << 22, 1)]), [1, 2, 3]);
        }
        assert_eq!(sorted(&[(1020, 1 << 22, 1), (1018, 1 << 23, 2)]), [2, 1]);
    }

    #[test]
    fn what_moved_clearly_more_is_first() {
        assert_eq!(sorted(&[(500, 1 << 24, 1), (1026, 1 << 20, 2), (0, 1 << 30, 3)]), [2, 1, 3]);
        assert_eq!(sorted(&[(0, 10, 1), (0, 20, 2), (1, 5, 3)]), [3, 2, 1]);
        assert_eq!(sorted(&[]), [] as [u32; 0]);
    }
}
