//! Counts by region, page, node, home and kind: what accesses did in an interval.

use homenode_model::{AccessKind, NodeId, PageNo, Rows};

/// No region.
pub const NO_REGION: u32 = u32::MAX;
/// In a coarsened block's page: no object owns the block.
pub const NOBODYS: u32 = 1 << 31;
/// Cells that may wait to be added up.
const WAITING: usize = 1 << 15;

/// One count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountCell {
    /// First page of the block, by canonical address; of a coarsened one with [`NOBODYS`].
    pub page: u32,
    /// The region, or [`NO_REGION`].
    pub region: u32,
    /// The accessing node.
    pub node: NodeId,
    /// The node whose memory was accessed.
    pub home: NodeId,
    /// Load or store.
    pub kind: AccessKind,
    /// How often.
    pub count: u64,
}

impl CountCell {
    const fn key(&self) -> (u32, u32, NodeId, NodeId, AccessKind) {
        (self.page, self.region, self.node, self.home, self.kind)
    }
}

/// Cells of an interval. They are added up when the waiting ones are as many as the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    all: Vec<CountCell>,
    /// Of these, those in front that are sorted and added up.
    sorted: usize,
}

impl Cells {
    /// Adds cells.
    pub(super) fn extend(&mut self, cells: impl IntoIterator<Item = CountCell>) {
        self.all.extend(cells);
    }

    pub(super) fn is_due(&self) -> bool {
        self.all.len() > 2 * self.sorted + WAITING
    }

    /// Sorts the cells and adds up those of one key.
    pub(super) fn add_up(&mut self) {
        if self.sorted == self.all.len() {
            return;
        }
        self.all.sort_unstable();
        let mut kept = 0;
        for i in 1..self.all.len() {
            let cell = self.all[i];
            if self.all[kept].key() == cell.key() {
                self.all[kept].count = self.all[kept].count.saturating_add(cell.count);
            } else {
                kept += 1;
                self.all[kept] = cell;
            }
        }
        self.all.truncate(kept + 1);
        self.sorted = self.all.len();
    }

    /// Gives each cell another page and adds up.
    pub(super) fn map_pages(&mut self, mut page: impl FnMut(u32) -> u32) {
        self.all.iter_mut().for_each(|c| c.page = page(c.page));
        self.sorted = 0;
        self.add_up();
        self.all.shrink_to_fit();
    }

    /// Takes all cells out.
    pub(super) fn take(&mut self) -> Vec<CountCell> {
        self.sorted = 0;
        std::mem::take(&mut self.all)
    }

    /// Memory that it takes.
    pub(super) const fn bytes(&self) -> usize {
        self.all.len() * size_of::<CountCell>()
    }

    /// The cells, sorted and added up.
    pub fn all(&self) -> &[CountCell] {
        &self.all
    }
}

/// Counts since the region or interval changed: a row a page, with one home at a time.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    /// The home, plus one; then loads and stores by node.
    rows: Rows<u32>,
    /// Pages with counts.
    listed: Vec<u32>,
}

impl Fresh {
    pub(super) const fn new(nodes: usize) -> Self {
        Self { rows: Rows::new(1 + 2 * nodes, 0), listed: Vec::new() }
    }

    /// Notes an access. False when the row is another home's or full: then [`Fresh::flush`], and
    /// again.
    #[inline]
    pub(super) fn note(&mut self, page: PageNo, node: NodeId, home: NodeId, kind: AccessKind) -> bool {
        let row = self.rows.row_mut(page.index());
        let tag = u32::from(home.0) + 1;
        if row[0] != tag {
            if row[0] != 0 {
                return false;
            }
            row[0] = tag;
            self.listed.push(page.0 as u32);
        }
        let count = &mut row[1 + 2 * node.index() + kind as usize];
        let room = *count < u32::MAX;
        *count += u32::from(room);
        room
    }

    /// Moves the counts of one page to `cells`. The page stays listed.
    #[cold]
    pub(super) fn flush(&mut self, page: PageNo, region: u32, cells: &mut Cells) {
        let row = self.rows.row_mut(page.index());
        drain(row, page.0 as u32, region, cells);
    }

    /// Moves all counts to `cells`.
    pub(super) fn flush_all(&mut self, region: u32, cells: &mut Cells) {
        for page in self.listed.drain(..) {
            drain(self.rows.row_mut(page as usize), page, region, cells);
        }
    }
}

fn drain(row: &mut [u32], page: u32, region: u32, cells: &mut Cells) {
    let Some(home) = row[0].checked_sub(1) else { return };
    let home = NodeId(home as u16);
    for (node, pair) in (0u16..).map(NodeId).zip(row[1..].chunks_exact(2)) {
        for (kind, count) in [(AccessKind::Read, pair[0]), (AccessKind::Write, pair[1])] {
            if count > 0 {
                cells.extend([CountCell { page, region, node, home, kind, count: u64::from(count) }]);
            }
        }
    }
    row.fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_one_key_are_added_up() {
        let (mut fresh, mut cells) = (Fresh::new(2), Cells::default());
        // The page is at node 0, then at 1, then at 0 again.
        for (page, node, home) in [(3, 0, 0), (3, 0, 0), (3, 1, 0), (3, 1, 1), (3, 1, 0), (9, 0, 1)] {
            let (page, node, home) = (PageNo(page), NodeId(node), NodeId(home));
            if !fresh.note(page, node, home, AccessKind::Read) {
                fresh.flush(page, 7, &mut cells);
                assert!(fresh.note(page, node, home, AccessKind::Read));
            }
        }
        fresh.flush_all(7, &mut cells);
        cells.add_up();
        let found: Vec<_> = cells.all().iter().map(|c| (c.page, c.node.0, c.home.0, c.count)).collect();
        assert_eq!(found, [(3, 0, 0, 2), (3, 1, 0, 2), (3, 1, 1, 1), (9, 0, 1, 1)]);
        fresh.flush_all(7, &mut cells);
        assert_eq!(cells.all().len(), 4, "nothing is left");
        cells.map_pages(|page| page / 8);
        assert_eq!(cells.all().iter().map(|c| c.count).sum::<u64>(), 6);
    }
}
