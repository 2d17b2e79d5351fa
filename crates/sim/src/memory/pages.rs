//! Homes of pages, which are armed, and how full the nodes are: 4 bytes a page.

use homenode_model::{Bytes, NodeId, PageNo, PageRange, Placement, Rows, Topology};

use crate::stream::ByteRange;

/// Pages from here on are refused: 4 TiB of 4 KiB pages. Canonical addresses are compact, so only a damaged or hostile
/// stream gets there.
pub(crate) const MAX_PAGES: u64 = 1 << 30;

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Home; where [`Page::HOMELESS`] is set, the last one it had, if any.
    home: u16,
    flags: u8,
    /// Whether it is on the list of pages to tell the policy of.
    listed: bool,
}

impl Page {
    const HOMELESS: u8 = 1;
    const ARMED: u8 = 2;
    const NOWHERE: u16 = u16::MAX;
    const UNTOUCHED: Self = Self { home: Self::NOWHERE, flags: Self::HOMELESS, listed: false };

    /// Has a home and is not armed: an access needs nobody's decision.
    #[inline]
    pub(super) const fn is_plain(self) -> bool {
        self.flags == 0
    }
    /// Has a home.
    #[inline]
    pub(super) const fn is_placed(self) -> bool {
        self.flags & Self::HOMELESS == 0
    }
    /// The home of a page that is placed.
    #[inline]
    pub(super) const fn home(self) -> NodeId {
        NodeId(self.home)
    }
}

/// All pages and nodes' memory.
///
/// Invariants: `used[n]` pages are placed on node n; it never exceeds `capacity[n]`, which is 0 without memory.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    table: Rows<Page>,
    shift: u32,
    capacity: Vec<u64>,
    used: Vec<u64>,
    nearest: Vec<Vec<NodeId>>,
}

impl Pages {
    pub(super) fn new(topology: &Topology, page: Bytes) -> Self {
        Self {
            table: Rows::new(1, Page::UNTOUCHED),
            shift: page.0.trailing_zeros(),
            capacity: topology.nodes.iter().map(|n| n.memory.0 / page.0).collect(),
            used: vec![0; topology.nodes.len()],
            nearest: topology.node_ids().map(|n| topology.nearest_memory(n)).collect(),
        }
    }
    #[inline]
    pub(super) fn get(&self, page: PageNo) -> Page {
        self.table.row(page.index()).map_or(Page::UNTOUCHED, |r| r[0])
    }
    /// Marks the page as listed; true when it was not.
    #[inline]
    pub(super) fn list(&mut self, page: PageNo) -> bool {
        !std::mem::replace(&mut self.table.row_mut(page.index())[0].listed, true)
    }
    /// Takes it off the list.
    pub(super) fn unlist(&mut self, page: PageNo) {
        self.table.row_mut(page.index())[0].listed = false;
    }
    /// Whether `node` has memory for one more page.
    pub(super) fn has_room(&self, node: NodeId) -> bool {
        self.capacity.get(node.index()).is_some_and(|c| self.used[node.index()] < *c)
    }
    /// The nearest node to `node` with room: where Linux puts a page.
    pub(super) fn nearest_room(&self, node: NodeId) -> Option<NodeId> {
        self.nearest[node.index()].iter().copied().find(|n| self.has_room(*n))
    }
    /// Gives `page` a new home. The caller has checked for room.
    pub(super) fn settle(&mut self, page: PageNo, node: NodeId) {
        let cell = &mut self.table.row_mut(page.index())[0];
        if cell.is_placed() {
            self.used[usize::from(cell.home)] -= 1;
        }
        self.used[node.index()] += 1;
        debug_assert!(self.used[node.index()] <= self.capacity[node.index()], "{node} is over-full");
        cell.home = node.0;
        cell.flags &= !Page::HOMELESS;
    }
    /// Takes the homes of `pages` away.
    pub(super) fn free(&mut self, pages: PageRange) {
        for (_, row) in self.table.range_mut(pages.indices()) {
            if row[0].is_placed() {
                self.used[usize::from(row[0].home)] -= 1;
            }
            row[0].flags = Page::HOMELESS;
        }
    }
    /// Arms those of `pages` that have a home.
    pub(super) fn arm(&mut self, pages: PageRange) {
        for (_, row) in self.table.range_mut(pages.indices()) {
            if row[0].is_placed() {
                row[0].flags |= Page::ARMED;
            }
        }
    }
    pub(super) fn disarm(&mut self, page: PageNo) {
        self.table.row_mut(page.index())[0].flags &= !Page::ARMED;
    }
    /// Pages that have a byte in `range`; `None` when it leaves the address space.
    pub(super) fn overlapping(&self, range: ByteRange) -> Option<PageRange> {
        let end = self.end(range)?;
        let first = range.first >> self.shift;
        let last = end.div_ceil(1 << self.shift);
        Some(PageRange { first: PageNo(first), count: if range.bytes == 0 { 0 } else { last - first } })
    }
    /// Pages that lie wholly in `range`; `None` when it leaves the address space.
    pub(super) fn inside(&self, range: ByteRange) -> Option<PageRange> {
        let end = self.end(range)?;
        let first = range.first.div_ceil(1 << self.shift);
        Some(PageRange { first: PageNo(first), count: (end >> self.shift).saturating_sub(first) })
    }
    fn end(&self, range: ByteRange) -> Option<u64> {
        range.first.checked_add(range.bytes).filter(|end| *end <= MAX_PAGES << self.shift)
    }
    /// Home of each page, for freed pages the last.
    pub(super) fn last_homes(&self) -> Placement {
        let mut homes = Placement::new();
        for (page, row) in self.table.iter().filter(|(_, r)| r[0].home != Page::NOWHERE) {
            homes.set(PageNo(page as u64), row[0].home());
        }
        homes
    }
    /// Pages placed on each node.
    pub(super) fn used(&self) -> &[u64] {
        &self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::testing::machine;

    #[test]
    fn partly_covered_pages_overlap_but_are_not_inside() {
        let pages = Pages::new(&machine(1).build(), Bytes(4096));
        let range = ByteRange { first: 4095, bytes: 4098 };
        let of = |first, count| Some(PageRange { first: PageNo(first), count });
        assert_eq!(pages.overlapping(range), of(0, 3));
        assert_eq!(pages.inside(range), of(1, 1));
        assert_eq!(pages.inside(ByteRange { first: 1, bytes: 4096 }), of(1, 0));
        assert_eq!(pages.overlapping(ByteRange { first: 8192, bytes: 0 }), of(2, 0));
        assert_eq!(pages.inside(ByteRange { first: u64::MAX, bytes: 2 }), None);
        assert_eq!(pages.inside(ByteRange { first: 0, bytes: 1 << 60 }), None);
    }
}
