//! Access histogram: who touched a block, how often.

use crate::rows::Rows;
use crate::{AccessKind, NodeId, PageNo};

/// Counts by (page, node): 8 bytes a page and node (reads and writes, 32 bits each, saturating).
///
/// Pages are canonical: they start at 0 and are compact; a far one costs its own neighbourhood
/// only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    pages: usize,
    cells: Rows<[u32; 2]>,
}

impl Histogram {
    /// Empty, for `nodes` nodes.
    pub const fn new(nodes: usize) -> Self {
        Self { pages: 0, cells: Rows::new(nodes, [0; 2]) }
    }
    /// Number of nodes a row has.
    pub const fn nodes(&self) -> usize {
        self.cells.width()
    }
    /// One more than the highest page ever added.
    pub const fn pages(&self) -> usize {
        self.pages
    }
    /// Adds `count` accesses of `node` to `page`.
    #[inline]
    pub fn add(&mut self, page: PageNo, node: NodeId, kind: AccessKind, count: u32) {
        self.pages = self.pages.max(page.index() + 1);
        let cell = &mut self.cells.row_mut(page.index())[node.index()][kind as usize];
        *cell = cell.saturating_add(count);
    }
    /// Adds all counts of `other`, which must be of as many nodes.
    ///
    /// # Panics
    /// When it is not.
    pub fn absorb(&mut self, other: &Self) {
        assert_eq!(self.nodes(), other.nodes(), "histograms of different machines");
        self.pages = self.pages.max(other.pages);
        for (page, row) in other.rows() {
            for (to, from) in self.cells.row_mut(page.index()).iter_mut().zip(row) {
                *to = [to[0].saturating_add(from[0]), to[1].saturating_add(from[1])];
            }
        }
    }
    /// `[reads, writes]` of each node; `None` for a page never added.
    pub fn row(&self, page: PageNo) -> Option<&[[u32; 2]]> {
        if page.index() >= self.pages {
            return None;
        }
        self.cells.row(page.index())
    }
    /// Pages with a count, ascending, with their rows.
    pub fn rows(&self) -> impl Iterator<Item = (PageNo, &[[u32; 2]])> + '_ {
        let rows = self.cells.range(0..self.pages);
        rows.filter(|(_, row)| row.iter().any(|c| *c != [0; 2])).map(|(p, row)| (PageNo(p as u64), row))
    }
    /// Reads and writes of `node` to `page`.
    pub fn total(&self, page: PageNo, node: NodeId) -> u64 {
        self.row(page).map_or(0, |r| r[node.index()].iter().map(|c| u64::from(*c)).sum())
    }
    /// Forgets all counts, keeps the memory.
    pub fn clear(&mut self) {
        self.pages = 0;
        self.cells.clear();
    }
    /// Forgets the counts of one page.
    pub fn clear_page(&mut self, page: PageNo) {
        if self.row(page).is_some() {
            self.cells.row_mut(page.index()).fill([0; 2]);
        }
    }
    /// As many nodes, no counts.
    pub const fn like(&self) -> Self {
        Self::new(self.nodes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_apart_by_node_and_kind() {
        let mut h = Histogram::new(3);
        h.add(PageNo(5), NodeId(2), AccessKind::Write, 7);
        h.add(PageNo(5), NodeId(2), AccessKind::Read, 1);
        assert_eq!(h.row(PageNo(5)).unwrap(), &[[0, 0], [0, 0], [1, 7]]);
        assert_eq!(h.total(PageNo(5), NodeId(2)), 8);
        assert_eq!(h.total(PageNo(4), NodeId(2)), 0);
        assert_eq!(h.total(PageNo(4000), NodeId(0)), 0);
    }

    #[test]
    fn absorbing_adds_cell_by_cell() {
        let (mut a, mut b) = (Histogram::new(2), Histogram::new(2));
        a.add(PageNo(1), NodeId(0), AccessKind::Read, 1);
        b.add(PageNo(1), NodeId(0), AccessKind::Read, 2);
        b.add(PageNo(9), NodeId(1), AccessKind::Write, 4);
        a.absorb(&b);
        let rows: alloc::vec::Vec<_> = a.rows().map(|(p, r)| (p.0, r.to_vec())).collect();
        assert_eq!(rows, [(1, [[3, 0], [0, 0]].to_vec()), (9, [[0, 0], [0, 4]].to_vec())]);
        assert_eq!(a.pages(), 10);
    }
}
