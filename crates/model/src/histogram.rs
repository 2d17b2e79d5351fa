//! Access histogram: who touched a block, how often.

use alloc::vec;
use alloc::vec::Vec;

use crate::{AccessKind, NodeId, PageNo};

/// Counts by (page, node), dense: 8 bytes a page and node (reads and writes, 32 bits each, saturating).
///
/// Pages are those in `first .. first + pages`; the caller keeps one histogram a range or one over its whole
/// canonical address space, which starts at page 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    nodes: usize,
    cells: Vec<[u32; 2]>,
}

impl Histogram {
    /// Empty, for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self { nodes, cells: Vec::new() }
    }
    /// Number of nodes a row has.
    pub const fn nodes(&self) -> usize {
        self.nodes
    }
    /// Pages with a row: one more than the highest page ever added.
    pub fn pages(&self) -> usize {
        self.cells.len() / self.nodes.max(1)
    }
    /// Adds `count` accesses of `node` to `page`.
    #[inline]
    pub fn add(&mut self, page: PageNo, node: NodeId, kind: AccessKind, count: u32) {
        let end = (page.index() + 1) * self.nodes;
        if end > self.cells.len() {
            self.grow(end);
        }
        let cell = &mut self.cells[page.index() * self.nodes + node.index()][kind as usize];
        *cell = cell.saturating_add(count);
    }
    #[cold]
    fn grow(&mut self, end: usize) {
        self.cells.resize(end.max(self.cells.len() * 2).next_multiple_of(self.nodes), [0; 2]);
    }
    /// `[reads, writes]` of each node; `None` for a page never added.
    pub fn row(&self, page: PageNo) -> Option<&[[u32; 2]]> {
        self.cells.get(page.index() * self.nodes..(page.index() + 1) * self.nodes)
    }
    /// Reads and writes of `node` to `page`.
    pub fn total(&self, page: PageNo, node: NodeId) -> u64 {
        self.row(page).map_or(0, |r| r[node.index()].iter().map(|c| u64::from(*c)).sum())
    }
    /// Forgets all counts, keeps the memory.
    pub fn clear(&mut self) {
        self.cells.fill([0; 2]);
    }
    /// The same shape with no counts.
    pub fn like(&self) -> Self {
        Self { nodes: self.nodes, cells: vec![[0; 2]; self.cells.len()] }
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
}
