//! A policy's own table of homes, and of the room left on each node.

use alloc::vec;
use alloc::vec::Vec;

use homenode_model::{MoveOutcome, MoveResult, NodeId, PageNo, PageRange, Placement};

use crate::PolicyContext;

/// Homes as the policy believes them to be, with the number of pages on each node: 2 bytes a page.
///
/// Invariant: `used[n]` is the number of pages whose home is `n`, plus the copies there that the
/// policy has reported.
#[derive(Clone, Debug)]
pub(crate) struct Homes {
    capacity: Vec<u64>,
    used: Vec<u64>,
    nearest: Vec<Vec<NodeId>>,
    home: Placement,
    end: u64,
}

impl Homes {
    pub(crate) fn new(context: &PolicyContext) -> Self {
        Self {
            capacity: context.capacity.clone(),
            used: vec![0; context.capacity.len()],
            nearest: context.nearest.clone(),
            home: Placement::new(),
            end: 0,
        }
    }
    /// Whether `node` can take one more page.
    pub(crate) fn has_room(&self, node: NodeId) -> bool {
        self.used[node.index()] < self.capacity[node.index()]
    }
    /// Number of further pages that `node` can take.
    pub(crate) fn room(&self, node: NodeId) -> u64 {
        self.capacity[node.index()].saturating_sub(self.used[node.index()])
    }
    /// The node with memory that is nearest to `node`, full or not.
    pub(crate) fn nearest(&self, node: NodeId) -> Option<NodeId> {
        self.nearest[node.index()].iter().copied().find(|n| self.capacity[n.index()] > 0)
    }
    /// Gives `page`, which has no home, one: `wanted` if it has room, else the nearest node with
    /// room; `None` if the machine is full.
    pub(crate) fn settle(&mut self, page: PageNo, wanted: NodeId) -> Option<NodeId> {
        self.forget(page);
        let fallback = || self.nearest[wanted.index()].iter().copied().find(|n| self.has_room(*n));
        let node = if self.has_room(wanted) { wanted } else { fallback()? };
        self.used[node.index()] += 1;
        self.home.set(page, node);
        self.end = self.end.max(page.0 + 1);
        Some(node)
    }
    /// Home of `page`, if it has one.
    pub(crate) fn home(&self, page: PageNo) -> Option<NodeId> {
        self.home.home(page)
    }
    /// One more than the highest page that ever had a home.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }
    /// A copy of some page came to `node`.
    pub(crate) fn copied_to(&mut self, node: NodeId) {
        self.used[node.index()] += 1;
    }
    /// A copy of some page on `node` does not exist any more.
    pub(crate) fn copy_gone(&mut self, node: NodeId) {
        self.used[node.index()] = self.used[node.index()].saturating_sub(1);
    }
    /// Notes a move that the driver reports.
    pub(crate) fn moved(&mut self, outcome: &MoveOutcome) {
        if outcome.result == MoveResult::Moved {
            self.forget(outcome.page);
            self.used[outcome.to.index()] += 1;
            self.home.set(outcome.page, outcome.to);
        }
    }
    /// Forgets pages that do not exist any more.
    pub(crate) fn free(&mut self, pages: PageRange) {
        let used = &mut self.used;
        self.home.clear_range(pages, |_, node| used[node.index()] = used[node.index()].saturating_sub(1));
    }
    fn forget(&mut self, page: PageNo) {
        if let Some(node) = self.home.home(page) {
            self.used[node.index()] = self.used[node.index()].saturating_sub(1);
            self.home.clear(page);
        }
    }
}
