//! The access counts of one interval: who accessed which page how often.

use alloc::vec::Vec;

use homenode_model::{AccessKind, NodeId, PageNo};

/// What is known of a page beside its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// 32 bits are 16 TiB of 4 KiB pages, four times what drivers tell of.
    page: u32,
    pub(crate) home: NodeId,
    /// It was written to.
    pub(crate) written: bool,
}

impl Seen {
    #[inline]
    pub(crate) fn page(self) -> PageNo {
        PageNo(self.page.into())
    }
}

/// Counts by (page, node), in the order in which the driver tells of them: ascending pages. 4 bytes a page and node and 8
/// a page. Pages that nobody accessed take no room, and forgetting all of it costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    nodes: usize,
    seen: Vec<Seen>,
    counts: Vec<u32>,
}

impl Interval {
    pub(crate) const fn new(nodes: usize) -> Self {
        Self { nodes, seen: Vec::new(), counts: Vec::new() }
    }
    /// Adds what an [`Event::Accesses`](homenode_model::Event) says.
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
    }
}
