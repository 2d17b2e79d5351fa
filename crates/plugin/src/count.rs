//! Counts by page.
//!
//! A physical page's counts belong to the process and the virtual page that it was last seen under;
//! when that changes, they are closed.

use std::collections::BTreeMap;

/// Loads and stores that reached main memory.
pub type LoadsAndStores = [u64; 2];

/// What one row of the result is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// Counted from 0.
    pub interval: u32,
    /// The process's number.
    pub process: u16,
    /// Virtual page.
    pub page: u64,
    /// Page of the guest's memory.
    pub physical: u64,
}

/// Virtual page and process in one word, never 0.
const PROCESS: u32 = 48;

/// Counts of the pages of the guest's memory.
#[derive(Debug)]
pub struct PageCounts {
    nodes: usize,
    /// By physical page × node × load or store. The host gives memory only for what is touched.
    counts: Vec<u32>,
    /// The process and virtual page of each physical one, plus 1; 0: none yet.
    seen_as: Vec<u64>,
    /// Physical pages with open counts.
    touched: Vec<u32>,
    /// Number of the visit that is open on each physical page.
    visits: Vec<u32>,
    /// Visits so far: each time that a physical page is first seen as another virtual one.
    visit: u32,
    /// Closed counts.
    rows: BTreeMap<RowKey, PageRow>,
    interval: u32,
}

/// What happened to a physical page while it was a virtual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRow {
    /// Number of its first visit: of two rows of a virtual page in one interval, the smaller one's
    /// physical page came first.
    pub visit: u32,
    /// By node.
    pub counts: Vec<LoadsAndStores>,
}

impl PageCounts {
    /// Counts for the given numbers of physical pages and nodes.
    pub fn new(pages: usize, nodes: usize) -> Self {
        Self {
            nodes,
            counts: vec![0; pages * nodes * 2],
            seen_as: vec![0; pages],
            touched: Vec::new(),
            visits: vec![0; pages],
            visit: 0,
            rows: BTreeMap::new(),
            interval: 0,
        }
    }

    /// An access of `node` to a physical page that is virtual page `page` of `process`.
    pub fn add(&mut self, process: u16, page: u64, physical: usize, node: usize, write: bool) {
        let seen = (u64::from(process) << PROCESS | page) + 1;
        if self.seen_as[physical] != seen {
            self.open(physical, seen);
        }
        let count = &mut self.counts[(physical * self.nodes + node) * 2 + usize::from(write)];
        *count += 1;
        if *count == u32::MAX {
            self.open(physical, seen);
        }
    }

    fn open(&mut self, physical: usize, seen: u64) {
        self.close(physical);
        self.seen_as[physical] = seen;
        self.visits[physical] = self.visit;
        self.visit = self.visit.saturating_add(1);
        self.touched.push(physical as u32);
    }

    fn close(&mut self, physical: usize) {
        let Some(seen) = self.seen_as[physical].checked_sub(1) else { return };
        let (process, page) = ((seen >> PROCESS) as u16, seen & ((1 << PROCESS) - 1));
        let open = &mut self.counts[physical * self.nodes * 2..][..self.nodes * 2];
        let key = RowKey { interval: self.interval, process, page, physical: physical as u64 };
        let fresh = || PageRow { visit: self.visits[physical], counts: vec![[0; 2]; self.nodes] };
        let row = self.rows.entry(key).or_insert_with(fresh);
        for (sum, pair) in row.counts.iter_mut().zip(open.chunks_exact_mut(2)) {
            for (sum, count) in sum.iter_mut().zip(pair) {
                *sum += u64::from(std::mem::take(count));
            }
        }
        self.seen_as[physical] = 0;
    }

    fn close_all(&mut self) {
        for physical in std::mem::take(&mut self.touched) {
            self.close(physical as usize);
        }
    }

    /// A new interval begins.
    pub fn next_interval(&mut self) {
        self.close_all();
        self.interval += 1;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.close_all();
        self.rows.clear();
        self.interval = 0;
        self.visit = 0;
    }

    /// All rows, closed.
    pub fn rows(&mut self) -> &BTreeMap<RowKey, PageRow> {
        self.close_all();
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_given_to_another_address_starts_anew() {
        let mut c = PageCounts::new(4, 2);
        c.add(1, 100, 3, 0, false);
        c.add(1, 100, 3, 1, true);
        c.add(1, 200, 3, 1, false);
        c.add(2, 100, 3, 1, false);
        c.add(1, 100, 3, 0, false);
        c.next_interval();
        c.add(1, 100, 3, 0, false);
        let rows: Vec<_> = c.rows().iter().map(|(k, v)| (*k, v.visit, v.counts.clone())).collect();
        let key = |interval, process, page| RowKey { interval, process, page, physical: 3 };
        assert_eq!(
            rows,
            [
                (key(0, 1, 100), 0, vec![[2, 0], [0, 1]]),
                (key(0, 1, 200), 1, vec![[0, 0], [1, 0]]),
                (key(0, 2, 100), 2, vec![[0, 0], [1, 0]]),
                (key(1, 1, 100), 4, vec![[1, 0], [0, 0]]),
            ]
        );
        c.clear();
        assert!(c.rows().is_empty());
    }
}
