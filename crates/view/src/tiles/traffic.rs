//! Accesses from node to node: by object and time, and by region.

use std::collections::BTreeMap;

use homenode_dataset::SeenCount;
use serde::Serialize;

use super::axis::Columns;

/// Most sums of each kind.
const MOST: usize = 1 << 15;

/// Sums while the table is read.
#[derive(Debug)]
pub struct Gathering {
    /// The columns of this table: coarser than those of the pictures.
    columns: Columns,
    by_object: BTreeMap<[u32; 4], [u64; 2]>,
    by_region: BTreeMap<[u32; 4], [u64; 2]>,
    left: [u64; 2],
}

/// Adds to a sum; says whether there was room.
fn add<K: Ord>(sums: &mut BTreeMap<K, [u64; 2]>, key: K, value: [u64; 2]) -> bool {
    if sums.len() >= MOST && !sums.contains_key(&key) {
        return false;
    }
    let sum = sums.entry(key).or_default();
    sum.iter_mut().zip(value).for_each(|(s, v)| *s = s.saturating_add(v));
    true
}

impl Gathering {
    /// Nothing yet. `objects`: how many have a picture; `nodes`: how many there are.
    pub fn new(intervals: usize, objects: usize, nodes: usize) -> Self {
        let pairs = nodes * nodes.min(8);
        let most = (MOST / pairs.max(1) / objects.max(1)).clamp(1, 64);
        Self {
            columns: Columns::of(0, intervals, most),
            by_object: BTreeMap::new(),
            by_region: BTreeMap::new(),
            left: [0; 2],
        }
    }

    /// Adds a row. `object`: its place among the pictures plus one, 0 for any other; `region`: its
    /// number plus one; `at`: position of the interval; nodes by index.
    pub fn add(&mut self, object: u32, region: u32, at: usize, node: usize, home: usize, tally: SeenCount) {
        let value = [tally.seen(), tally.count().map_or(0, |c| c.parts().0)];
        let column = self.columns.column(at).unwrap_or(0) as u32;
        let (node, home) = (node as u32, home as u32);
        if !add(&mut self.by_object, [object, column, node, home], value) {
            self.left = [self.left[0].saturating_add(value[0]), self.left[1].saturating_add(value[1])];
        }
        add(&mut self.by_region, [region, object, node, home], value);
    }

    /// All rows were added.
    pub fn finish(self) -> Traffic {
        let list = |sums: BTreeMap<[u32; 4], [u64; 2]>| {
            sums.into_iter().map(|(k, v)| {
                let [a, b, c, d] = k.map(u64::from);
                [a, b, c, d, v[0], v[1]]
            })
        };
        Traffic {
            time_shift: self.columns.shift,
            by_object: list(self.by_object).collect(),
            by_region: list(self.by_region).collect(),
            left_out: self.left,
        }
    }
}

/// Accesses that count, from node to node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// A column holds `1 << time_shift` intervals.
    pub time_shift: u32,
    /// Place of the object in the model plus one (0: any other), column, index of the accessing
    /// node, index of the home, reports of the source, accesses.
    pub by_object: Vec<[u64; 6]>,
    /// Region plus one (0: none), object as above, and the same four numbers.
    pub by_region: Vec<[u64; 6]>,
    /// Reports and accesses for which there was no room in `by_object`.
    pub left_out: [u64; 2],
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_dataset::Basis;

    #[test]
    fn accesses_are_summed_by_object_time_and_region() {
        let mut t = Gathering::new(8, 1, 2);
        for at in [0, 0, 7] {
            t.add(1, 3, at, 0, 1, SeenCount::new(2, Basis::Sampled { one_in: 10 }));
        }
        t.add(0, 0, 7, 1, 1, SeenCount::new(5, Basis::Presence));
        let traffic = t.finish();
        assert_eq!(traffic.by_object, [[0, 7, 1, 1, 5, 0], [1, 0, 0, 1, 4, 40], [1, 7, 0, 1, 2, 20]]);
        assert_eq!(traffic.by_region, [[0, 0, 1, 1, 5, 0], [3, 1, 0, 1, 6, 60]]);
    }

    #[test]
    fn what_has_no_room_is_told() {
        let mut t = Gathering::new(1, 1, 2);
        for node in 0..MOST + 10 {
            t.add(0, 0, 0, node, 0, SeenCount::new(1, Basis::Exact));
        }
        let traffic = t.finish();
        assert_eq!((traffic.by_object.len(), traffic.left_out), (MOST, [10, 10]));
    }
}
