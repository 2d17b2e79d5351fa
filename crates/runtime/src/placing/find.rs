//! Where pages are, and whether they are on the right node.

use homenode_model::NodeId;
use homenode_model::code::{HN_ABSENT, HN_PARTIAL, HN_UNKNOWN};
use homenode_sys::maps::{self, PageEntry};
use homenode_sys::{Error, PAGE, Span};

use super::machine::UsableNodes;
use super::{Failure, Result};
use crate::moving;

/// Pages asked for in one call.
const ASK: usize = 1024;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageWhereabouts {
    /// On a node.
    On(NodeId),
    /// Not in memory: never written, swapped out, or not mapped.
    Absent,
    /// The system does not say.
    Unknown,
}

impl PageWhereabouts {
    /// As the C API has it: a node's number, or a negative code.
    pub fn number(self) -> i32 {
        match self {
            Self::On(node) => node.0.into(),
            Self::Absent => HN_ABSENT,
            Self::Unknown => HN_UNKNOWN,
        }
    }
}

/// Numbers of pages of a range, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTotals {
    /// All pages.
    pub pages: u64,
    /// Pages on the given node.
    pub there: u64,
    /// Pages on other nodes.
    pub elsewhere: u64,
    /// Pages that are not in memory.
    pub absent: u64,
    /// Pages whose node the system does not say.
    pub unknown: u64,
}

impl PageTotals {
    /// Counts one page, which should be on `wanted`.
    pub(super) fn note(&mut self, place: PageWhereabouts, wanted: NodeId) {
        self.pages += 1;
        *match place {
            PageWhereabouts::On(node) if node == wanted => &mut self.there,
            PageWhereabouts::On(_) => &mut self.elsewhere,
            PageWhereabouts::Absent => &mut self.absent,
            PageWhereabouts::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// Calls `tell` with the place of each page of `span`, in order.
///
/// # Errors
/// The system forbids the query, and there is more than one node. Every page was then reported as
/// [`PageWhereabouts::Unknown`] or [`PageWhereabouts::Absent`].
pub fn each(span: Span, mut tell: impl FnMut(PageWhereabouts)) -> Result<()> {
    let mut failed: Option<Error> = None;
    let mut only: Option<Option<NodeId>> = None;
    let (mut pages, mut homes) = (Vec::with_capacity(ASK), [None; ASK]);
    for piece in chunks(span) {
        pages.clear();
        pages.extend((piece.start..piece.end).step_by(PAGE));
        let homes = &mut homes[..pages.len()];
        match moving::homes(&pages, homes) {
            None => homes.iter().for_each(|h| tell(h.map_or(PageWhereabouts::Absent, PageWhereabouts::On))),
            Some(error) => {
                let only = *only.get_or_insert_with(|| UsableNodes::here().only());
                if only.is_none() {
                    failed = Some(error);
                }
                present(piece, only.map_or(PageWhereabouts::Unknown, PageWhereabouts::On), &mut tell);
            }
        }
    }
    match failed {
        None => Ok(()),
        Some(error) => Err(Failure::system("cannot ask where pages are", error)),
    }
}

/// The first `count` pages of `span`, or all.
pub fn first_pages(span: Span, count: usize) -> Span {
    Span { start: span.start, end: span.end.min(span.start.saturating_add(count.saturating_mul(PAGE))) }
}

fn chunks(span: Span) -> impl Iterator<Item = Span> {
    (span.start..span.end)
        .step_by(ASK * PAGE)
        .map(move |at| Span { start: at, end: span.end.min(at + ASK * PAGE) })
}

/// Without `move_pages`: reports which pages are in memory, all of them at `place`.
fn present(span: Span, place: PageWhereabouts, tell: &mut impl FnMut(PageWhereabouts)) {
    let mut entries = [PageEntry(0); ASK];
    let entries = &mut entries[..span.pages().min(ASK)];
    match maps::page_entries(span.start, entries) {
        Ok(n) => {
            let known =
                entries.iter().take(n).map(|e| if e.present() { place } else { PageWhereabouts::Absent });
            known.chain(std::iter::repeat(PageWhereabouts::Absent)).take(span.pages()).for_each(tell);
        }
        Err(_) => (0..span.pages()).for_each(|_| tell(PageWhereabouts::Unknown)),
    }
}

/// Counts the pages of a range by place. The result says whether all are on `node`.
///
/// # Errors
/// There is no such node, or the system forbids the query; most pages are then unknown.
pub fn count(span: Span, node: i32) -> (PageTotals, Result<()>) {
    let wanted = match UsableNodes::here().node(node) {
        Ok(wanted) => wanted,
        Err(f) => {
            return (
                PageTotals {
                    pages: span.pages() as u64,
                    unknown: span.pages() as u64,
                    ..PageTotals::default()
                },
                Err(f),
            );
        }
    };
    let mut found = PageTotals::default();
    let asked = each(span, |place| found.note(place, wanted));
    let judged = asked.and_then(|()| judge(&found, wanted));
    (found, judged)
}

fn judge(found: &PageTotals, wanted: NodeId) -> Result<()> {
    if found.there == found.pages {
        return Ok(());
    }
    let PageTotals { pages, there, elsewhere, absent, unknown } = found;
    let unknown = if *unknown > 0 { format!(", {unknown} not known") } else { String::new() };
    Err(Failure::new(
        HN_PARTIAL,
        format!(
            "of {pages} pages {there} are on node {}, {elsewhere} elsewhere, {absent} not in memory{unknown}",
            wanted.0
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::memory::{Protection, map, unmap};

    #[test]
    fn pages_are_found_where_they_were_written() {
        let m = map(5 * PAGE, Protection::ReadWrite).unwrap();
        for page in [0, 3] {
            // SAFETY: this test's mapping.
            unsafe { ((m.start + page * PAGE) as *mut u8).write_volatile(1) };
        }
        let mut places = Vec::new();
        each(m, |p| places.push(p)).unwrap();
        let there: Vec<bool> = places.iter().map(|p| matches!(p, PageWhereabouts::On(_))).collect();
        assert_eq!(there, [true, false, false, true, false]);
        let PageWhereabouts::On(node) = places[0] else { unreachable!() };
        let (found, judged) = count(m, node.0.into());
        assert_eq!((found.pages, found.absent, judged.unwrap_err().code), (5, 3, HN_PARTIAL));
        let first = Span::new(m.start, PAGE);
        assert_eq!(
            count(first, node.0.into()),
            (PageTotals { pages: 1, there: 1, ..PageTotals::default() }, Ok(()))
        );
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
    }

    #[test]
    fn without_the_call_the_only_node_has_what_is_in_memory() {
        let m = map(3 * PAGE, Protection::ReadWrite).unwrap();
        // SAFETY: this test's mapping.
        unsafe { ((m.start + PAGE) as *mut u8).write_volatile(1) };
        let mut places = Vec::new();
        present(m, PageWhereabouts::On(NodeId(4)), &mut |p| places.push(p));
        assert_eq!(
            places,
            [PageWhereabouts::Absent, PageWhereabouts::On(NodeId(4)), PageWhereabouts::Absent]
        );
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
    }

    #[test]
    fn every_page_is_counted_once() {
        let mut found = PageTotals::default();
        for place in [
            PageWhereabouts::On(NodeId(1)),
            PageWhereabouts::On(NodeId(0)),
            PageWhereabouts::Absent,
            PageWhereabouts::Unknown,
        ] {
            found.note(place, NodeId(1));
        }
        assert_eq!(found, PageTotals { pages: 4, there: 1, elsewhere: 1, absent: 1, unknown: 1 });
        let f = judge(&found, NodeId(1)).unwrap_err();
        assert_eq!(f.text, "of 4 pages 1 are on node 1, 1 elsewhere, 1 not in memory, 1 not known");
    }
}
