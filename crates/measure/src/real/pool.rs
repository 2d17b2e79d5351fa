//! Memory that was placed and may be used again.

use std::collections::BTreeMap;

use homenode_sys::block::AnonymousMemory;
use homenode_sys::ring::Ring;

use crate::axes::{NodeNumber, PageSize};

/// Blocks that were placed and may be used again; placing takes longer than measuring.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: BTreeMap<(NodeNumber, PageSize, usize), Vec<AnonymousMemory>>,
    rings: BTreeMap<(NodeNumber, PageSize, usize), Ring>,
}

impl Pool {
    /// Gives a block back.
    pub fn give(&mut self, node: NodeNumber, page: PageSize, block: AnonymousMemory) {
        self.free.entry((node, page, block.span().len())).or_default().push(block);
    }
    /// Gives a ring back.
    pub fn give_ring(&mut self, node: NodeNumber, page: PageSize, ring: Ring) {
        self.rings.insert((node, page, ring.slots()), ring);
    }
    /// The ring with this number of slots, if there is one. All others are dropped: each is large.
    pub fn ring(&mut self, node: NodeNumber, page: PageSize, slots: usize) -> Option<Ring> {
        let found = self.rings.remove(&(node, page, slots));
        self.rings.clear();
        found
    }
    /// Drops what is not on one of `nodes` with such pages.
    pub fn keep(&mut self, nodes: &[NodeNumber], page: PageSize) {
        self.free.retain(|(n, p, _), _| nodes.contains(n) && *p == page);
    }
    pub(super) fn take(&mut self, node: NodeNumber, page: PageSize, bytes: usize) -> Option<AnonymousMemory> {
        self.free.get_mut(&(node, page, bytes))?.pop()
    }
    pub(super) fn clear(&mut self) {
        self.free.clear();
        self.rings.clear();
    }
}
