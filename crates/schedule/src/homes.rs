//! The node of each iteration, by the value of the loop's variable.
//!
//! Loops over one array mostly use their variable as its index. So values are compared, not
//! indices: `for (i = k; i < n; i++)` finds the nodes that `for (i = 0; i < n; i++)` left.

use crate::space::{Run, Space};
use crate::table::IterationTable;

/// Nodes of ranges of values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueHomes {
    /// From a value up to, not including, another: the node. Sorted; none overlaps another.
    ranges: Vec<(i128, i128, u16)>,
}

impl ValueHomes {
    /// The nodes of the threads that executed a loop, where they are known.
    pub fn of(space: &Space, table: &IterationTable, node_of: impl Fn(usize) -> Option<u16>) -> Self {
        let mut ranges: Vec<(i128, i128, u16)> = Vec::new();
        for thread in 0..table.team() {
            let Some(node) = node_of(thread) else { continue };
            ranges.extend(table.runs(thread).iter().map(|run| {
                let (low, high) = space.place(*run);
                (low, high, node)
            }));
        }
        Self::joined(ranges)
    }

    fn joined(mut ranges: Vec<(i128, i128, u16)>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(i128, i128, u16)> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.1 == range.0 && last.2 == range.2 => last.1 = range.1,
                _ => joined.push(range),
            }
        }
        Self { ranges: joined }
    }

    /// Ranges of values with a node, which hold where they are; what is known besides stays.
    /// `ranges` ascend, and none overlaps another.
    pub fn overlaid(&self, ranges: Vec<(i128, i128, u16)>) -> Self {
        let mut all: Vec<(i128, i128, u16)> = Vec::with_capacity(self.ranges.len() + ranges.len());
        let mut over = ranges.iter().copied().peekable();
        for (mut begin, end, node) in self.ranges.iter().copied() {
            while over.next_if(|o| o.1 <= begin).is_some() {}
            // A range of `ranges` may reach into the next one of these.
            while let Some((from, to, _)) = over.peek().copied().filter(|o| o.0 < end) {
                if begin < from {
                    all.push((begin, from, node));
                }
                begin = to.max(begin);
                if to > end {
                    break;
                }
                over.next();
            }
            if begin < end {
                all.push((begin, end, node));
            }
        }
        all.extend(ranges);
        Self::joined(all)
    }

    /// Whether no node is known.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges of values have a node. The time of a look-up grows with the number of ranges
    /// that a run covers.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The node of most values of a run of a loop; the lower number where two have as many. `None`
    /// where no value has a node.
    pub fn node(&self, space: &Space, run: Run) -> Option<u16> {
        let shares = self.values(space, run);
        shares.into_iter().max_by_key(|(n, sum)| (*sum, std::cmp::Reverse(*n))).map(|(n, _)| n)
    }

    /// How many values of a run each node has, in no order. Nodes without a value are left out.
    pub fn values(&self, space: &Space, run: Run) -> Vec<(u16, i128)> {
        let (low, high) = space.place(run);
        let from = self.ranges.partition_point(|r| r.1 <= low);
        let over = self.ranges[from..].iter().take_while(|r| r.0 < high);
        // Few nodes: a search of the list is the fastest.
        let mut shares: Vec<(u16, i128)> = Vec::new();
        for (begin, end, node) in over {
            let share = *end.min(&high) - *begin.max(&low);
            match shares.iter_mut().find(|(n, _)| n == node) {
                Some((_, sum)) => *sum += share,
                None => shares.push((*node, share)),
            }
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(begin: u64, end: u64) -> Run {
        Run { begin, end }
    }

    #[test]
    fn ranges_that_are_known_better_hold() {
        let homes = ValueHomes { ranges: vec![(0, 10, 0), (10, 20, 1), (30, 40, 2)] };
        let over = |ranges: &[(i128, i128, u16)]| homes.overlaid(ranges.to_vec()).ranges;
        assert_eq!(over(&[]), homes.ranges);
        assert_eq!(
            over(&[(5, 12, 3), (13, 15, 4), (18, 35, 5), (50, 60, 6)]),
            [
                (0, 5, 0),
                (5, 12, 3),
                (12, 13, 1),
                (13, 15, 4),
                (15, 18, 1),
                (18, 35, 5),
                (35, 40, 2),
                (50, 60, 6)
            ]
        );
        assert_eq!(over(&[(-5, 100, 7)]), [(-5, 100, 7)]);
        assert_eq!(over(&[(0, 10, 1)]), [(0, 20, 1), (30, 40, 2)]);
    }

    #[test]
    fn another_loop_finds_the_nodes_by_value() {
        let space = Space::excluding(0, 100, 1).unwrap();
        let table =
            IterationTable::new(100, vec![vec![run(0, 40)], vec![run(40, 70)], vec![run(70, 100)]]).unwrap();
        let homes = ValueHomes::of(&space, &table, |t| [Some(0), Some(1), None][t]);
        let later = Space::excluding(30, 100, 1).unwrap();
        assert_eq!(homes.node(&later, run(0, 8)), Some(0));
        assert_eq!(homes.node(&later, run(10, 18)), Some(1));
        assert_eq!(homes.node(&later, run(7, 11)), Some(0), "three of four values");
        assert_eq!(homes.node(&later, run(8, 12)), Some(0), "as many");
        assert_eq!(homes.node(&later, run(60, 70)), None, "nothing is known there");
        let down = Space::excluding(99, -1, -1).unwrap();
        assert_eq!((homes.node(&down, run(90, 100)), homes.node(&down, run(35, 45))), (Some(0), Some(1)));
        let strided = Space::excluding(0, 100, 20).unwrap();
        assert_eq!(homes.node(&strided, run(2, 3)), Some(1));
    }
}
