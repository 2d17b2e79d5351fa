//! Where each page lived at the end of each interval, who touched it first, and whether it comes
//! back.

use homenode_model::{Bytes, NodeId, PageNo, PageRange, Ps, Rows, ThreadId};

use homenode_order::step::ByteRange;

/// Without a home.
const NOWHERE: u16 = u16::MAX;
/// Touched by nobody yet.
const NOBODY: u32 = u32::MAX;

/// What is known of a page: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    home: u16,
    /// Allocations that live and have only a part of the page.
    sharers: u16,
    /// It keeps its home, but what lived there is freed.
    left: bool,
    /// First interval at whose end it is at this home.
    since: u32,
    first: PageFirstTouch,
}

const UNTOUCHED: Page = Page {
    home: NOWHERE,
    sharers: 0,
    left: false,
    since: 0,
    first: PageFirstTouch { thread: ThreadId(NOBODY), unit: 0, at: Ps::ZERO },
};

/// The first touch of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFirstTouch {
    /// Who.
    pub thread: ThreadId,
    /// The 4 KiB unit of the canonical address.
    pub unit: u32,
    /// When.
    pub at: Ps,
}

/// A page at one home over a run of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stay {
    /// The page, by canonical address.
    pub page: u32,
    /// First interval at whose end it lived there.
    pub from: u32,
    /// Last interval at whose end it did.
    pub until: u32,
    /// The home.
    pub home: NodeId,
}

/// All pages.
#[derive(Clone, Debug)]
pub(super) struct Homes {
    pages: Rows<Page>,
    /// Nodes where the page has lived, a bit each.
    lived: Rows<u64>,
    /// Stays that are over.
    stays: Vec<Stay>,
    page: Bytes,
}

impl Homes {
    pub(super) fn new(nodes: usize, page: Bytes) -> Self {
        Self {
            pages: Rows::new(1, UNTOUCHED),
            lived: Rows::new(nodes.div_ceil(64).max(1), 0),
            stays: Vec::new(),
            page,
        }
    }

    /// A page without a home is touched.
    pub(super) fn touched(&mut self, page: PageNo, touch: PageFirstTouch) {
        let first = &mut self.pages.row_mut(page.index())[0].first;
        if first.thread.0 == NOBODY {
            *first = touch;
        }
    }

    /// The page has a new home, in this interval. Whether it has lived there before.
    pub(super) fn settle(&mut self, page: PageNo, home: NodeId, interval: u32) -> bool {
        self.end(page, interval);
        let it = &mut self.pages.row_mut(page.index())[0];
        (it.home, it.since, it.left) = (home.0, interval, false);
        let (word, bit) = (home.index() / 64, 1 << (home.index() % 64));
        let lived = &mut self.lived.row_mut(page.index())[word];
        let before = *lived & bit != 0;
        *lived |= bit;
        before
    }

    /// Notes the page's stay at its home, as far as it was there at the end of an interval before
    /// this one.
    fn end(&mut self, page: PageNo, interval: u32) {
        let Some(&[Page { home, since, left, .. }]) = self.pages.row(page.index()) else { return };
        if home != NOWHERE && !left && since < interval {
            let (page, until) = (super::moves::page(page), interval - 1);
            self.stays.push(Stay { page, from: since, until, home: NodeId(home) });
        }
    }

    /// An allocation has these bytes.
    pub(super) fn allocated(&mut self, range: ByteRange, interval: u32) {
        for page in self.shared(range) {
            let it = &mut self.pages.row_mut(page.index())[0];
            it.sharers = it.sharers.saturating_add(1);
            if std::mem::take(&mut it.left) {
                it.since = interval;
            }
        }
    }

    /// The bytes are freed; the pages that lie wholly within have no home any more.
    pub(super) fn freed(&mut self, range: ByteRange, inside: PageRange, interval: u32) {
        let pages: Vec<PageNo> =
            self.pages.range(inside.indices()).map(|(page, _)| PageNo(page as u64)).collect();
        for page in pages {
            self.end(page, interval);
            self.pages.row_mut(page.index())[0].home = NOWHERE;
            self.lived.row_mut(page.index()).fill(0);
        }
        for page in self.shared(range) {
            let it = &mut self.pages.row_mut(page.index())[0];
            it.sharers = it.sharers.saturating_sub(1);
            if it.sharers == 0 && it.home != NOWHERE {
                self.end(page, interval);
                self.pages.row_mut(page.index())[0].left = true;
            }
        }
    }

    /// Pages that have bytes of the range and bytes of others.
    fn shared(&self, range: ByteRange) -> impl Iterator<Item = PageNo> + use<> {
        let (page, end) = (self.page.0, range.first.saturating_add(range.bytes));
        let first = (!range.first.is_multiple_of(page)).then_some(range.first / page);
        let last = (!end.is_multiple_of(page) && range.bytes > 0).then_some(end / page);
        let last = last.filter(|l| Some(*l) != first);
        first.into_iter().chain(last).map(PageNo)
    }

    /// Intervals have become fewer: `coarser` says which one of the new ones ends where an old one
    /// ends.
    pub(super) fn coarsen(
        &mut self,
        coarser: impl Fn(u32, u32) -> Option<(u32, u32)>,
        now: impl Fn(u32) -> u32,
    ) {
        self.stays.retain_mut(|stay| match coarser(stay.from, stay.until) {
            Some((from, until)) => {
                (stay.from, stay.until) = (from, until);
                true
            }
            None => false,
        });
        for (_, row) in self.pages.range_mut(0..usize::MAX) {
            row[0].since = now(row[0].since);
        }
    }

    /// Memory of the stays that are over.
    pub(super) const fn bytes(&self) -> usize {
        self.stays.len() * size_of::<Stay>()
    }

    /// Ends all stays with the interval `last`; all stays by page, and the first touches by page.
    pub(super) fn finish(mut self, last: u32) -> (Vec<Stay>, Vec<(u32, PageFirstTouch)>) {
        let pages: Vec<usize> = self.pages.iter().map(|(page, _)| page).collect();
        pages.into_iter().for_each(|page| self.end(PageNo(page as u64), last.saturating_add(1)));
        let firsts = self.pages.iter().map(|(page, row)| (page as u32, row[0].first));
        let firsts = firsts.filter(|(_, first)| first.thread.0 != NOBODY).collect();
        self.stays.sort_unstable();
        (self.stays, firsts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stays(homes: Homes, last: u32) -> Vec<(u32, u32, u32, u16)> {
        homes.finish(last).0.iter().map(|s| (s.page, s.from, s.until, s.home.0)).collect()
    }

    #[test]
    fn a_page_lives_where_it_is_at_the_end_of_an_interval() {
        let mut homes = Homes::new(4, Bytes(4096));
        assert!(!homes.settle(PageNo(1), NodeId(0), 0));
        assert!(!homes.settle(PageNo(1), NodeId(1), 2));
        // Within one interval it goes back and forth.
        assert!(homes.settle(PageNo(1), NodeId(0), 3));
        assert!(homes.settle(PageNo(1), NodeId(1), 3));
        assert!(!homes.settle(PageNo(1), NodeId(2), 3));
        assert_eq!(stays(homes, 5), [(1, 0, 1, 0), (1, 2, 2, 1), (1, 3, 5, 2)]);
    }

    #[test]
    fn freed_pages_live_nowhere_though_a_shared_one_keeps_its_home() {
        let mut homes = Homes::new(4, Bytes(4096));
        // The first page is shared with what the C library writes before it.
        let range = ByteRange { first: 4096 + 16, bytes: 8192 - 16 };
        let inside = PageRange { first: PageNo(2), count: 1 };
        homes.allocated(range, 0);
        homes.settle(PageNo(1), NodeId(3), 0);
        homes.settle(PageNo(2), NodeId(3), 0);
        homes.freed(range, inside, 1);
        homes.allocated(range, 4);
        assert!(!homes.settle(PageNo(2), NodeId(3), 4), "it is another page");
        assert_eq!(stays(homes, 4), [(1, 0, 0, 3), (1, 4, 4, 3), (2, 0, 0, 3), (2, 4, 4, 3)]);
    }

    #[test]
    fn the_first_touch_stays() {
        let mut homes = Homes::new(1, Bytes(4096));
        let touch = |thread, at| PageFirstTouch { thread: ThreadId(thread), unit: 7, at: Ps(at) };
        homes.touched(PageNo(7), touch(2, 5));
        homes.touched(PageNo(7), touch(1, 9));
        assert_eq!(homes.finish(0).1, [(7, touch(2, 5))]);
    }
}
