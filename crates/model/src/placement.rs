//! Placement: the home node of each page.

use alloc::vec::Vec;

use crate::{NodeId, PageNo};

const NOWHERE: u16 = u16::MAX;

/// Home node by page, dense from page 0: 2 bytes a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    home: Vec<u16>,
}

impl Placement {
    /// No page has a home.
    pub const fn new() -> Self {
        Self { home: Vec::new() }
    }
    /// Home of `page`, if it has one.
    #[inline]
    pub fn home(&self, page: PageNo) -> Option<NodeId> {
        match self.home.get(page.index()) {
            Some(&n) if n != NOWHERE => Some(NodeId(n)),
            _ => None,
        }
    }
    /// Gives `page` the home `node`.
    #[inline]
    pub fn set(&mut self, page: PageNo, node: NodeId) {
        if page.index() >= self.home.len() {
            self.grow(page);
        }
        self.home[page.index()] = node.0;
    }
    #[cold]
    fn grow(&mut self, page: PageNo) {
        self.home.resize((page.index() + 1).max(self.home.len() * 2), NOWHERE);
    }
    /// Takes the home away (the memory was freed).
    pub fn clear(&mut self, page: PageNo) {
        if let Some(h) = self.home.get_mut(page.index()) {
            *h = NOWHERE;
        }
    }
    /// All pages that have a home, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (PageNo, NodeId)> + '_ {
        self.home
            .iter()
            .enumerate()
            .filter(|(_, n)| **n != NOWHERE)
            .map(|(p, n)| (PageNo(p as u64), NodeId(*n)))
    }
}
