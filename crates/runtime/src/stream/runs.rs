//! Runs of pages that move together, or have one home: one record for all of them.

use homenode_model::{MoveResult, NodeId, Ns};
use homenode_wire::live::{MoveOrigin, ObjectNo, Pages, RegionNo};

/// A page's move.
#[derive(Clone, Copy, Debug)]
pub struct MovedPage {
    /// Former home.
    pub from: NodeId,
    /// New home.
    pub to: NodeId,
    /// Why.
    pub cause: MoveOrigin,
    /// What it cost, if that was measured.
    pub cost: Option<Ns>,
    /// The outcome.
    pub outcome: MoveResult,
}

/// What all pages of a run have in common.
#[derive(Clone, Copy, Debug)]
pub struct PageRun {
    /// The object.
    pub object: ObjectNo,
    /// When the first page moved.
    pub time: Ns,
    /// The region that ran.
    pub region: Option<RegionNo>,
    /// The move of each page. The cost is that of one page.
    pub moved: MovedPage,
}

impl PageRun {
    fn is_like(&self, other: &Self) -> bool {
        let fate = |r: &Self| (r.object, r.region, r.moved.from, r.moved.to, r.moved.cause, r.moved.outcome);
        fate(self) == fate(other) && self.moved.cost == other.moved.cost
    }
}

/// The open runs, which may still become longer.
#[derive(Debug, Default)]
pub struct OpenRuns {
    moved: Option<(PageRun, Pages)>,
    home: Option<(ObjectNo, NodeId, Pages)>,
}

const fn follows(pages: &Pages, page: u32) -> bool {
    pages.first.saturating_add(pages.count) == page
}

const fn covers(pages: Pages, page: u32) -> bool {
    pages.first <= page && page < pages.first.saturating_add(pages.count)
}

impl OpenRuns {
    /// Adds a moved page. Returns the run that this ends, if any.
    pub fn moved(&mut self, run: PageRun, page: u32) -> Option<(PageRun, Pages)> {
        if let Some((open, pages)) = &mut self.moved
            && open.is_like(&run)
            && follows(pages, page)
        {
            pages.count += 1;
            return None;
        }
        self.moved.replace((run, Pages { first: page, count: 1 }))
    }

    /// Adds a page with a known home. Returns the run that this ends, if any.
    pub fn home(
        &mut self,
        (object, node): (ObjectNo, NodeId),
        page: u32,
    ) -> Option<(ObjectNo, NodeId, Pages)> {
        if let Some((open, at, pages)) = &mut self.home
            && (*open, *at) == (object, node)
            && follows(pages, page)
        {
            pages.count += 1;
            return None;
        }
        self.home.replace((object, node, Pages { first: page, count: 1 }))
    }

    /// Whether the open run of homes contains this page.
    pub fn home_covers(&self, object: ObjectNo, page: u32) -> bool {
        self.home.is_some_and(|(of, _, pages)| of == object && covers(pages, page))
    }

    /// Whether the open run of moves contains this page.
    pub fn move_covers(&self, object: ObjectNo, page: u32) -> bool {
        self.moved.is_some_and(|(run, pages)| run.object == object && covers(pages, page))
    }

    /// Ends the run of moves.
    pub const fn take_moved(&mut self) -> Option<(PageRun, Pages)> {
        self.moved.take()
    }

    /// Ends the run of homes.
    pub const fn take_home(&mut self) -> Option<(ObjectNo, NodeId, Pages)> {
        self.home.take()
    }
}
