//! Placement: the home node of each page.

use crate::rows::Rows;
use crate::{NodeId, PageNo, PageRange};

const NOWHERE: u16 = u16::MAX;

/// Home node by page: 2 bytes a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    home: Rows<u16>,
}

impl Default for Placement {
    fn default() -> Self {
        Self::new()
    }
}

impl Placement {
    /// No page has a home.
    pub const fn new() -> Self {
        Self { home: Rows::new(1, NOWHERE) }
    }
    /// Home of `page`, if it has one.
    #[inline]
    pub fn home(&self, page: PageNo) -> Option<NodeId> {
        match self.home.row(page.index()) {
            Some(&[n]) if n != NOWHERE => Some(NodeId(n)),
            _ => None,
        }
    }
    /// Gives `page` the home `node`.
    #[inline]
    pub fn set(&mut self, page: PageNo, node: NodeId) {
        self.home.row_mut(page.index())[0] = node.0;
    }
    /// Takes the home away (the memory was freed).
    pub fn clear(&mut self, page: PageNo) {
        if self.home(page).is_some() {
            self.home.row_mut(page.index())[0] = NOWHERE;
        }
    }
    /// Takes the homes of all `pages` away and tells of each that had one, ascending.
    pub fn clear_range(&mut self, pages: PageRange, mut had: impl FnMut(PageNo, NodeId)) {
        for (page, cell) in self.home.range_mut(pages.indices()) {
            if cell[0] != NOWHERE {
                had(PageNo(page as u64), NodeId(cell[0]));
                cell[0] = NOWHERE;
            }
        }
    }
    /// All pages that have a home, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (PageNo, NodeId)> + '_ {
        self.home
            .iter()
            .filter(|(_, cell)| cell[0] != NOWHERE)
            .map(|(p, cell)| (PageNo(p as u64), NodeId(cell[0])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_are_equal_when_the_homes_are() {
        let (mut a, mut b) = (Placement::new(), Placement::new());
        a.set(PageNo(3), NodeId(1));
        b.set(PageNo(90_000), NodeId(0));
        b.set(PageNo(3), NodeId(1));
        assert_ne!(a, b);
        b.clear(PageNo(90_000));
        assert_eq!(a, b);
    }

    #[test]
    fn clearing_a_range_tells_what_was_there() {
        let mut p = Placement::new();
        for page in [2, 3, 5] {
            p.set(PageNo(page), NodeId(page as u16));
        }
        let mut had = alloc::vec::Vec::new();
        p.clear_range(PageRange { first: PageNo(3), count: u64::MAX }, |page, node| {
            had.push((page.0, node.0))
        });
        assert_eq!(had, [(3, 3), (5, 5)]);
        assert_eq!(p.iter().count(), 1);
    }
}
