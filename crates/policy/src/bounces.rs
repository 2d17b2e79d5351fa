//! Counts how often pages move back to a former home.

use homenode_model::{NodeId, PageNo, PageRange, Rows};

/// The history of a page: 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trail {
    /// Its home before its last move; [`Trail::NOWHERE`] without a move.
    before: u16,
    /// How often it has gone back to a former home.
    bounces: u8,
}

impl Trail {
    const NOWHERE: u16 = u16::MAX;
    const NEW: Self = Self { before: Self::NOWHERE, bounces: 0 };
}

/// Counts ping-pongs, and freezes pages at a limit.
#[derive(Clone, Debug)]
pub(crate) struct Bounces {
    limit: u8,
    trails: Rows<Trail>,
}

impl Bounces {
    /// Pages may go back `limit` times.
    pub(crate) const fn new(limit: u8) -> Self {
        Self { limit, trails: Rows::new(1, Trail::NEW) }
    }
    fn trail(&self, page: PageNo) -> Trail {
        self.trails.row(page.index()).map_or(Trail::NEW, |r| r[0])
    }
    /// Whether the page may go to `to`: it was not there before its last move, or it has not gone
    /// back too often.
    pub(crate) fn allow(&self, page: PageNo, to: NodeId) -> bool {
        let trail = self.trail(page);
        trail.bounces < self.limit || trail.bounces == self.limit && trail.before != to.0
    }
    /// Notes a move of the page.
    pub(crate) fn moved(&mut self, page: PageNo, from: NodeId, to: NodeId) {
        let trail = &mut self.trails.row_mut(page.index())[0];
        trail.bounces = trail.bounces.saturating_add((trail.before == to.0).into());
        trail.before = from.0;
    }
    /// Forgets pages that do not exist any more.
    pub(crate) fn free(&mut self, pages: PageRange) {
        self.trails.range_mut(pages.indices()).for_each(|(_, row)| row[0] = Trail::NEW);
    }
}
