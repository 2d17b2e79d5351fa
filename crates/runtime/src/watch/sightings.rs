//! Sightings for a recording: who was seen at which page since the interval began.
//!
//! State: a row of some 40 bytes for each region and node that was seen at a page. The number of
//! rows is bounded by [`ROWS`]. When they are used up, neighbouring pages are joined, two by two,
//! up to 2 MiB. The end of an interval empties the table.

use std::collections::BTreeMap;

use homenode_model::{AccessKind, NodeId};

/// Most rows.
const ROWS: usize = 1 << 18;
/// How often pages are joined, at most: up to 2 MiB.
const COARSEST: u32 = 9;

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    /// The object's number in the recording.
    pub object: u32,
    /// First page of the joined pages, counted from the page with the object's first byte.
    pub page: u32,
    /// The region that ran.
    pub region: Option<u32>,
    /// Where the page is.
    pub home: NodeId,
    /// Who touched it.
    pub node: NodeId,
    /// How, if that is known.
    pub kind: Option<AccessKind>,
}

/// See the module.
#[derive(Debug)]
pub struct Sightings {
    rows: BTreeMap<Sighting, u32>,
    doublings: u32,
    most: usize,
    lost: u64,
    highest: usize,
}

impl Default for Sightings {
    fn default() -> Self {
        Self::new(ROWS)
    }
}

impl Sightings {
    const fn new(most: usize) -> Self {
        Self { rows: BTreeMap::new(), doublings: 0, most, lost: 0, highest: 0 }
    }

    /// Somebody was seen; the row's page is that page alone.
    pub fn add(&mut self, mut row: Sighting) {
        let page = row.page;
        row.page = self.first(page);
        if !self.rows.contains_key(&row) {
            while self.rows.len() >= self.most && self.doublings < COARSEST {
                self.join();
            }
            row.page = self.first(page);
            if self.rows.len() >= self.most && !self.rows.contains_key(&row) {
                self.lost += 1;
                return;
            }
        }
        let told = self.rows.entry(row).or_default();
        *told = told.saturating_add(1);
    }

    /// The first page of those that `page` is joined with.
    const fn first(&self, page: u32) -> u32 {
        page >> self.doublings << self.doublings
    }

    fn join(&mut self) {
        self.doublings += 1;
        for (row, n) in std::mem::take(&mut self.rows) {
            let told = self.rows.entry(Sighting { page: self.first(row.page), ..row }).or_default();
            *told = told.saturating_add(n);
        }
    }

    /// The rows in order, how often each was reported, and how many pages each stands for.
    /// Neighbouring pages are joined until there are at most `most` rows, if that is possible. It
    /// is empty afterwards.
    pub fn take(&mut self, most: usize) -> (BTreeMap<Sighting, u32>, u32) {
        self.highest = self.highest.max(self.rows.len());
        while self.rows.len() > most && self.doublings < COARSEST {
            self.join();
        }
        let pages = 1 << std::mem::take(&mut self.doublings);
        (std::mem::take(&mut self.rows), pages)
    }

    /// What was told and there was no room for.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes of memory that it took at most, about: nodes of a tree are two thirds full.
    pub fn bytes(&self) -> usize {
        self.highest.max(self.rows.len()) * (size_of::<Sighting>() + size_of::<u32>()) * 3 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(page: u32, node: u16) -> Sighting {
        Sighting { object: 0, page, region: None, home: NodeId(0), node: NodeId(node), kind: None }
    }

    fn told(s: &mut Sightings) -> Vec<(u32, u32, u16, u32)> {
        s.take(usize::MAX).0.into_iter().map(|(r, n)| (r.object, r.page, r.node.0, n)).collect()
    }

    #[test]
    fn nodes_kinds_and_regions_are_told_apart_by_page() {
        let mut s = Sightings::default();
        [(3, 1), (3, 1), (3, 0), (4, 1)].into_iter().for_each(|(page, node)| s.add(row(page, node)));
        assert_eq!(told(&mut s), [(0, 3, 0, 1), (0, 3, 1, 2), (0, 4, 1, 1)]);
        s.add(row(4, 1));
        s.add(Sighting { kind: Some(AccessKind::Write), ..row(4, 1) });
        s.add(Sighting { region: Some(7), ..row(4, 1) });
        assert_eq!(told(&mut s).len(), 3);
        assert!(told(&mut s).is_empty(), "the next interval begins with nothing");
    }

    #[test]
    fn full_rows_are_joined_and_nothing_is_lost_of_them() {
        let mut s = Sightings::new(16);
        (0..64).for_each(|page| s.add(row(page, (page / 32) as u16)));
        assert_eq!(s.lost(), 0);
        let (rows, pages) = s.take(usize::MAX);
        assert_eq!(pages, 4);
        assert!(rows.iter().all(|(r, n)| *n == 4 && u32::from(r.node.0) == r.page / 32), "{rows:?}");
        // Objects cannot be joined.
        (0..40).for_each(|object| s.add(Sighting { object, ..row(0, 0) }));
        assert!(s.lost() > 0 && s.bytes() > 0);
        assert_eq!(s.take(usize::MAX).0.len(), 16);
    }

    #[test]
    fn rows_are_joined_where_fewer_are_wanted() {
        let mut s = Sightings::default();
        (0..64).for_each(|page| s.add(row(page, 0)));
        let (rows, pages) = s.take(10);
        assert_eq!((rows.len(), pages), (8, 8));
        assert_eq!(rows.values().sum::<u32>(), 64);
        (0..64).for_each(|page| s.add(row(page, 0)));
        assert_eq!(s.take(64).1, 1, "they are as fine as before");
        (0..4).for_each(|object| s.add(Sighting { object, ..row(0, 0) }));
        assert_eq!(s.take(0).0.len(), 4, "what cannot be joined stays");
    }
}
