//! Homes of pages, their copies and frames, which are armed, and how full the nodes are: 4 bytes a
//! page, 8 more where there are copies.

use homenode_model::{Bytes, LineNo, NodeId, PageNo, PageRange, Placement, Rows, Topology};

use super::frames::Frames;
use homenode_order::step::ByteRange;

/// Pages from here on are refused: 4 TiB of 4 KiB pages. Canonical addresses are compact, so only a
/// damaged or hostile stream gets there.
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
    const COPIED: u8 = 4;
    const FRAMED: u8 = 8;
    const NOWHERE: u16 = u16::MAX;
    const UNTOUCHED: Self = Self { home: Self::NOWHERE, flags: Self::HOMELESS, listed: false };

    /// Has a home and neither copies nor frames, and is not armed: an access goes to its home, and
    /// that is all.
    #[inline]
    pub(super) const fn is_plain(self) -> bool {
        self.flags == 0
    }
    /// An access needs a decision first: there is no home, or the page is armed.
    #[inline]
    pub(super) const fn traps(self) -> bool {
        self.flags & (Self::HOMELESS | Self::ARMED) != 0
    }
    /// Has copies on other nodes than its home.
    #[inline]
    pub(super) const fn is_copied(self) -> bool {
        self.flags & Self::COPIED != 0
    }
    /// Has frames on other nodes than its home.
    #[inline]
    pub(super) const fn is_framed(self) -> bool {
        self.flags & Self::FRAMED != 0
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
/// Invariants: `used[n]` pages, copies and frames are on node n; it never exceeds `capacity[n]`,
/// which is 0 without memory. A page has copies or frames or neither, on other nodes than its home,
/// and only if it has a home.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    table: Rows<Page>,
    /// Nodes with a copy of the page, one bit each.
    copies: Rows<u64>,
    pub(super) frames: Frames,
    shift: u32,
    capacity: Vec<u64>,
    used: Vec<u64>,
    nearest: Vec<Vec<NodeId>>,
}

impl Pages {
    pub(super) fn new(topology: &Topology, page: Bytes) -> Self {
        let line = topology.caches.last().map_or(LineNo::BYTES, |c| c.line.0);
        let step = (line / LineNo::BYTES).max(1);
        Self {
            table: Rows::new(1, Page::UNTOUCHED),
            copies: Rows::new(1, 0),
            frames: Frames::new(page.0.trailing_zeros() - LineNo::SHIFT, step),
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
    /// Takes the homes of `pages` away, their copies and their frames.
    pub(super) fn free(&mut self, pages: PageRange) {
        for page in self.frames.of(pages) {
            self.give_up_frames(page);
        }
        for (_, row) in self.table.range_mut(pages.indices()) {
            if row[0].is_placed() {
                self.used[usize::from(row[0].home)] -= 1;
            }
            row[0].flags = Page::HOMELESS;
        }
        for (_, row) in self.copies.range_mut(pages.indices()) {
            give_back(&mut self.used, std::mem::take(&mut row[0]));
        }
    }
    /// Whether a copy can be on `node` at all: sets of them are 64 bits wide.
    pub(super) fn can_copy_to(&self, node: NodeId) -> bool {
        node.index() < self.capacity.len().min(64)
    }
    /// Whether `node` has a copy of `page`.
    #[inline]
    pub(super) fn has_copy(&self, page: PageNo, node: NodeId) -> bool {
        node.0 < 64 && self.copies.row(page.index()).is_some_and(|r| r[0] & 1 << node.0 != 0)
    }
    /// Puts a copy of a placed page on a node that [`Pages::can_copy_to`], has room and is not its
    /// home.
    pub(super) fn copy(&mut self, page: PageNo, node: NodeId) {
        self.used[node.index()] += 1;
        debug_assert!(self.used[node.index()] <= self.capacity[node.index()], "{node} is over-full");
        self.copies.row_mut(page.index())[0] |= 1 << node.0;
        self.table.row_mut(page.index())[0].flags |= Page::COPIED;
    }
    /// Gives the copies of `page` back.
    pub(super) fn collapse(&mut self, page: PageNo) {
        if self.get(page).is_copied() {
            give_back(&mut self.used, std::mem::take(&mut self.copies.row_mut(page.index())[0]));
            self.table.row_mut(page.index())[0].flags &= !Page::COPIED;
        }
    }
    /// Allots a frame for a placed page on a node that [`Pages::can_copy_to`], has room, and has
    /// neither the page nor a frame.
    pub(super) fn allot(&mut self, page: PageNo, node: NodeId) {
        self.used[node.index()] += 1;
        debug_assert!(self.used[node.index()] <= self.capacity[node.index()], "{node} is over-full");
        self.frames.allot(page, node);
        self.table.row_mut(page.index())[0].flags |= Page::FRAMED;
    }
    /// Gives up the frame of `page` on `node`; how many of its lines must go home first.
    pub(super) fn give_up_frame(&mut self, page: PageNo, node: NodeId) -> u64 {
        let Some((owned, last)) = self.frames.give_up(page, node) else { return 0 };
        self.used[node.index()] -= 1;
        if last {
            self.table.row_mut(page.index())[0].flags &= !Page::FRAMED;
        }
        owned
    }
    /// Gives up all frames of `page`; for each node, how many lines must go home first.
    pub(super) fn give_up_frames(&mut self, page: PageNo) -> Vec<(NodeId, u64)> {
        let all = self.frames.give_up_all(page);
        for (node, _) in &all {
            self.used[node.index()] -= 1;
        }
        self.table.row_mut(page.index())[0].flags &= !Page::FRAMED;
        all
    }
    /// The nearest node to `node` that has a frame, and the page whose frame it would give up.
    pub(super) fn nearest_frame(&self, node: NodeId) -> Option<(PageNo, NodeId)> {
        let holders = self.nearest[node.index()].iter();
        holders.copied().find_map(|n| Some((self.frames.least_recently_missed(n, None)?, n)))
    }
    /// Pages that have copies, ascending.
    pub(super) fn copied(&self) -> Vec<PageNo> {
        let with = self.copies.iter().filter(|(_, r)| r[0] != 0);
        with.map(|(page, _)| PageNo(page as u64)).collect()
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
    /// Pages and copies on each node.
    pub(super) fn used(&self) -> &[u64] {
        &self.used
    }
}

/// The nodes of the set have one page less each.
fn give_back(used: &mut [u64], mut nodes: u64) {
    while nodes != 0 {
        used[nodes.trailing_zeros() as usize] -= 1;
        nodes &= nodes - 1;
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
