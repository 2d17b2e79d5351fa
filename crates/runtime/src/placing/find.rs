//! Where pages are, and whether they are on the right node.

use homenode_model::NodeId;
use homenode_model::code::{HN_ABSENT, HN_PARTIAL, HN_UNKNOWN};
use homenode_sys::maps::{self, PageEntry};
use homenode_sys::{Error, PAGE, Span};

use super::machine::Machine;
use super::{Failure, Result};
use crate::moving;

/// Pages asked for in one call.
const ASK: usize = 1024;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a node.
    On(NodeId),
    /// Not in memory: never written, swapped out, or not mapped.
    Absent,
    /// The system does not say.
    Unknown,
}

impl Place {
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
pub struct Found {
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

impl Found {
    /// Counts one page, which should be on `wanted`.
    pub(super) fn note(&mut self, place: Place, wanted: NodeId) {
        self.pages += 1;
        *match place {
            Place::On(node) if node == wanted => &mut self.there,
            Place::On(_) => &mut self.elsewhere,
            Place::Absent => &mut self.absent,
            Place::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// Calls `tell` with the place of each page of `span`, in order.
///
/// # Errors
/// The system forbids the query, and there is more than one node. Every page was then reported as
/// [`Place::Unknown`] or [`Place::Absent`].
pub fn each(span: Span, mut tell: impl FnMut(Place)) -> Result<()> {
    let mut failed: Option<Error> = None;
    let mut only: Option<Option<NodeId>> = None;
    let (mut pages, mut homes) = (Vec::with_capacity(ASK), [None; ASK]);
    for piece in chunks(span) {
        pages.clear();
        pages.extend((piece.start..piece.end).step_by(PAGE));
        let homes = &mut homes[..pages.len()];
        match moving::homes(&pages, homes) {
            None => homes.iter().for_each(|h| tell(h.map_or(Place::Absent, Place::On))),
            Some(error) => {
                let only = *only.get_or_insert_with(|| Machine::here().only());
                if only.is_none() {
                    failed = Some(error);
                }
                present(piece, only.map_or(Place::Unknown, Place::On), &mut tell);
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
fn present(span: Span, place: Place, tell: &mut impl FnMut(Place)) {
    let mut entries = [PageEntry(0); ASK];
    let entries = &mut entries[..span.pages().min(ASK)];
    match maps::page_entries(span.start, entries) {
        Ok(n) => {
            let known = entries.iter().take(n).map(|e| if e.present() { place } else { Place::Absent });
            known.chain(std::iter::repeat(Place::Absent)).take(span.pages()).for_each(tell);
        }
        Err(_) => (0..span.pages()).for_each(|_| tell(Place::Unknown)),
    }
}

/// Counts the pages of a range by place. The result says whether all are on `node`.
///
/// # Errors
/// There is no such node, or the system forbids the query; most pages are then unknown.
pub fn count(span: Span, node: i32) -> (Found, Result<()>) {
    let wanted = match Machine::here().node(node) {
        Ok(wanted) => wanted,
        Err(f) => {
            return (
                Found { pages: span.pages() as u64, unknown: span.pages() as u64, ..Found::default() },
                Err(f),
            );
        }
    };
    let mut found = Found::default();
    let asked = each(span, |place| found.note(place, wanted));
    let judged = asked.and_then(|()| judge(&found, wanted));
    (found, judged)
}

fn judge(found: &Found, wanted: NodeId) -> Result<()> {
    if found.there == found.pages {
        return Ok(());
    }
    let Found { pages, there, elsewhere, absent, unknown } = found;
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
    use homenode_sys::memory::{Access, map, unmap};

    #[test]
    fn pages_are_found_where_they_were_written() {
        let m = map(5 * PAGE, Access::ReadWrite).unwrap();
        for page in [0, 3] {
            // SAFETY: this test's mapping.
            unsafe { ((m.start + page * PAGE) as *mut u8).write_volatile(1) };
        }
        let mut places = Vec::new();
        each(m, |p| places.push(p)).unwrap();
        let there: Vec<bool> = places.iter().map(|p| matches!(p, Place::On(_))).collect();
        assert_eq!(there, [true, false, false, true, false]);
        let Place::On(node) = places[0] else { unreachable!() };
        let (found, judged) = count(m, node.0.into());
        assert_eq!((found.pages, found.absent, judged.unwrap_err().code), (5, 3, HN_PARTIAL));
        let first = Span::new(m.start, PAGE);
        assert_eq!(count(first, node.0.into()), (Found { pages: 1, there: 1, ..Found::default() }, Ok(())));
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
    }

    #[test]
    fn without_the_call_the_only_node_has_what_is_in_memory() {
        let m = map(3 * PAGE, Access::ReadWrite).unwrap();
        // SAFETY: this test's mapping.
        unsafe { ((m.start + PAGE) as *mut u8).write_volatile(1) };
        let mut places = Vec::new();
        present(m, Place::On(NodeId(4)), &mut |p| places.push(p));
        assert_eq!(places, [Place::Absent, Place::On(NodeId(4)), Place::Absent]);
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
    }

    #[test]
    fn every_page_is_counted_once() {
        let mut found = Found::default();
        for place in [Place::On(NodeId(1)), Place::On(NodeId(0)), Place::Absent, Place::Unknown] {
            found.note(place, NodeId(1));
        }
        assert_eq!(found, Found { pages: 4, there: 1, elsewhere: 1, absent: 1, unknown: 1 });
        let f = judge(&found, NodeId(1)).unwrap_err();
        assert_eq!(f.text, "of 4 pages 1 are on node 1, 1 elsewhere, 1 not in memory, 1 not known");
    }
}
