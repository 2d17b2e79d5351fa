//! The access counts of one interval: which node accessed which page how often.

use alloc::vec::Vec;

use homenode_model::{AccessKind, NodeId, PageNo, PageRange};

/// How long counts count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counters {
    /// For one interval.
    #[default]
    Interval,
    /// Until the page moves, or does not exist any more.
    Move,
}

/// The state of a page beside its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// 32 bits are 16 TiB of 4 KiB pages, four times what drivers report.
    page: u32,
    pub(crate) home: NodeId,
    /// Whether it was written to.
    pub(crate) written: bool,
}

impl Seen {
    #[inline]
    pub(crate) fn page(self) -> PageNo {
        PageNo(self.page.into())
    }
}

/// Counts by (page, node), in the driver's order: ascending pages in each report. 4 bytes a page
/// and node and 8 a page. Pages without accesses take no room, and clearing costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    nodes: usize,
    seen: Vec<Seen>,
    counts: Vec<u32>,
    /// Rows from earlier intervals, ascending: the first ones.
    kept: usize,
}

impl Interval {
    pub(crate) const fn new(nodes: usize) -> Self {
        Self { nodes, seen: Vec::new(), counts: Vec::new(), kept: 0 }
    }
    /// Adds an [`Event::Accesses`](homenode_model::Event).
    #[inline]
    pub(crate) fn add(&mut self, page: PageNo, home: NodeId, node: NodeId, kind: AccessKind, count: u32) {
        let Ok(page) = u32::try_from(page.0) else { return };
        match self.seen.last_mut() {
            Some(last) if last.page == page => last.written |= kind == AccessKind::Write,
            _ => self.begin(Seen { page, home, written: kind == AccessKind::Write }),
        }
        let row = self.counts.len() - self.nodes;
        if let Some(cell) = self.counts[row..].get_mut(node.index()) {
            *cell = cell.saturating_add(count);
        }
    }
    #[inline]
    fn begin(&mut self, seen: Seen) {
        self.seen.push(seen);
        self.counts.extend(core::iter::repeat_n(0, self.nodes));
    }
    /// Joins several reports: afterwards each page occurs once, ascending. One report needs no
    /// work.
    pub(crate) fn join(&mut self) {
        if self.kept == 0 && self.seen.windows(2).all(|w| w[0].page < w[1].page) {
            return;
        }
        let told = core::mem::replace(self, Self::new(self.nodes));
        let mut order: Vec<usize> =
            (0..told.len()).filter(|i| told.row(*i).1.iter().any(|c| *c > 0)).collect();
        // The sort is stable, so the home is that of the last report.
        order.sort_by_key(|i| told.seen[*i].page);
        for i in order {
            let (seen, counts) = told.row(i);
            match self.seen.last_mut() {
                Some(last) if last.page == seen.page => {
                    *last = Seen { written: last.written | seen.written, ..seen };
                }
                _ => self.begin(seen),
            }
            let row = self.counts.len() - self.nodes;
            for (all, more) in self.counts[row..].iter_mut().zip(counts) {
                *all = all.saturating_add(*more);
            }
        }
    }
    /// The pages with the counts of each node, ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (Seen, &[u32])> + Clone + '_ {
        self.seen.iter().copied().zip(self.counts.chunks_exact(self.nodes.max(1)))
    }
    /// Number of pages.
    pub(crate) const fn len(&self) -> usize {
        self.seen.len()
    }
    /// The page at `index`, and its counts.
    pub(crate) fn row(&self, index: usize) -> (Seen, &[u32]) {
        (self.seen[index], &self.counts[index * self.nodes..(index + 1) * self.nodes])
    }
    /// Forgets everything, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.seen.clear();
        self.counts.clear();
        self.kept = 0;
    }
    /// Begins another interval in which the counts so far count, too. They are joined.
    pub(crate) const fn keep(&mut self) {
        self.kept = self.seen.len();
    }
    /// Forgets the counts of earlier intervals of some pages.
    pub(crate) fn forget(&mut self, pages: PageRange) {
        let kept = &self.seen[..self.kept];
        let from = kept.partition_point(|s| u64::from(s.page) < pages.first.0);
        let to = kept.partition_point(|s| u64::from(s.page) < pages.first.0.saturating_add(pages.count));
        self.counts[from * self.nodes..to * self.nodes].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn what_is_told_at_several_times_is_joined() {
        let mut interval = Interval::new(2);
        let mut add = |page, home, node, kind, count| {
            interval.add(PageNo(page), NodeId(home), NodeId(node), kind, count)
        };
        add(3, 0, 1, AccessKind::Read, 5);
        add(7, 0, 0, AccessKind::Read, 1);
        add(3, 1, 0, AccessKind::Write, 2);
        add(3, 1, 1, AccessKind::Read, u32::MAX);
        add(5, 0, 0, AccessKind::Read, 4);
        interval.join();
        let rows: Vec<_> =
            interval.rows().map(|(s, counts)| (s.page().0, s.home.0, s.written, counts.to_vec())).collect();
        let want = [(3, 1, true, [2, u32::MAX]), (5, 0, false, [4, 0]), (7, 0, false, [1, 0])];
        assert_eq!(rows, want.map(|(page, home, written, counts)| (page, home, written, counts.to_vec())));
        let once = interval.clone();
        interval.join();
        assert_eq!((interval.seen, interval.counts), (once.seen, once.counts));
    }

    #[test]
    fn kept_counts_count_until_a_page_is_forgotten() {
        let mut interval = Interval::new(2);
        let rows = |interval: &Interval| -> Vec<_> {
            interval.rows().map(|(s, counts)| (s.page().0, s.home.0, counts.to_vec())).collect()
        };
        for page in [3, 5] {
            interval.add(PageNo(page), NodeId(0), NodeId(1), AccessKind::Read, 7);
        }
        interval.join();
        interval.keep();
        interval.forget(PageRange { first: PageNo(5), count: 1 });
        interval.add(PageNo(3), NodeId(1), NodeId(1), AccessKind::Read, 2);
        interval.join();
        assert_eq!(rows(&interval), [(3, 1, vec![0, 9])]);
        interval.keep();
        interval.add(PageNo(4), NodeId(0), NodeId(0), AccessKind::Read, 1);
        interval.join();
        assert_eq!(rows(&interval), [(3, 1, vec![0, 9]), (4, 0, vec![1, 0])]);
        interval.clear();
        assert_eq!(rows(&interval), []);
    }
}
