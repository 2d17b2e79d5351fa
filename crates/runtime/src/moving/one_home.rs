//! The home of a large object, found without asking for each page. Most objects are on one node,
//! because one thread initialised them alone. The kernel's answers about whole mappings, and about
//! which pages exist, take a tenth of the time.

use homenode_model::NodeId;
use homenode_sys::maps::{self, PageEntry};
use homenode_sys::{PAGE, Span};

use super::homes;
use super::state;
use super::table::Block;

/// Smallest object for this. The mover asks for a smaller one page by page.
const LEAST: usize = 1 << 20;
/// A query about mappings makes the kernel look at all memory of the process. It is worthwhile if
/// that is at most this many times the object's size.
const SHARE: u64 = 8;

/// The node that has all existing pages of `span`, if this can be found so. Not on pretended nodes,
/// whose homes are noted by page.
pub fn one_home(span: Span) -> Option<NodeId> {
    if span.len() < LEAST {
        return None;
    }
    if state::pretended() != 0 {
        return Some(NodeId(0));
    }
    if maps::resident().ok()?.0 > SHARE * span.len() as u64 {
        return None;
    }
    let (mut all, mut last) = (Seen::default(), None);
    maps::each_node(|start, node, nodes| {
        if let Some((begin, node, nodes)) = last.replace((start, node, nodes)) {
            all.see(span, Span { start: begin, end: start }, node, nodes);
        }
    })
    .ok()?;
    if let Some((begin, node, nodes)) = last {
        all.see(span, Span { start: begin, end: usize::MAX }, node, nodes);
    }
    all.node.filter(|_| !all.several)
}

/// What the mappings of a span have said.
#[derive(Default)]
struct Seen {
    node: Option<NodeId>,
    several: bool,
}

impl Seen {
    fn see(&mut self, span: Span, mapping: Span, node: Option<NodeId>, nodes: usize) {
        if let Some(node) = node.filter(|_| mapping.overlaps(span)) {
            self.several |= nodes > 1 || *self.node.get_or_insert(node) != node;
        }
    }
}

/// The home of each page of `span`, for which [`one_home`] returned `node`: as many as `out` has.
/// As [`homes::homes`].
pub fn homes_on(span: Span, node: NodeId, out: &mut [Option<NodeId>]) -> Option<homenode_sys::Error> {
    let mut entries = vec![PageEntry(0); out.len()];
    let armed = || Block::all(span).any(|b| b.word().armed() != 0);
    let known = !armed() && maps::page_entries(span.start, &mut entries).is_ok_and(|n| n == entries.len());
    let mut rest = Vec::new();
    for (i, (home, entry)) in out.iter_mut().zip(&entries).enumerate() {
        let page = span.start + i * PAGE;
        *home = match state::pretended() {
            0 => Some(node),
            // Handled below, for existing pages only.
            _ => None,
        };
        if known && !entry.present() {
            *home = None;
        } else if known && entry.exclusive() && state::pretended() != 0 {
            *home = Some(homes::pretended_home(page));
        } else if !known || !entry.exclusive() {
            rest.push(page);
        }
    }
    // The page is shared with a child, the page of zeros, or away.
    let mut homes = vec![None; rest.len()];
    let failed = homes::homes(&rest, &mut homes);
    for (page, home) in rest.iter().zip(homes) {
        out[(page - span.start) / PAGE] = home;
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::memory::{Protection, map, unmap};

    #[test]
    fn what_mappings_say_is_what_pages_say() {
        let all = map(4 << 20, Protection::ReadWrite).unwrap();
        // A third is written, a third is read, which has the page of zeros there, and a third is
        // not touched.
        for (i, page) in all.pieces(PAGE).enumerate() {
            // SAFETY: memory of this test's own.
            unsafe {
                match i % 3 {
                    0 => (page.start as *mut u8).write_volatile(1),
                    1 => assert_eq!((page.start as *const u8).read_volatile(), 0),
                    _ => {}
                }
            }
        }
        let pages: Vec<usize> = all.pieces(PAGE).map(|p| p.start).collect();
        let (mut asked, mut told) = (vec![None; pages.len()], vec![None; pages.len()]);
        if homes::homes(&pages, &mut asked).is_some() || asked[0].is_none() {
            return println!("skipped: this kernel does not say where pages are");
        }
        assert_eq!(homes_on(all, asked[0].unwrap(), &mut told), None);
        assert_eq!(told, asked);
        assert_eq!(told.iter().filter(|h| h.is_some()).count(), pages.len().div_ceil(3));
        // SAFETY: as above.
        unsafe { unmap(all).unwrap() };
    }

    #[test]
    fn several_nodes_are_not_one() {
        let span = Span::new(10, 20);
        let of = |list: &[(usize, usize, u16, usize)]| {
            let mut seen = Seen::default();
            for (start, end, node, nodes) in list {
                let node = (*nodes > 0).then_some(NodeId(*node));
                seen.see(span, Span { start: *start, end: *end }, node, *nodes);
            }
            seen.node.filter(|_| !seen.several)
        };
        assert_eq!(of(&[(0, 10, 3, 1), (10, 15, 2, 1), (15, 40, 0, 0), (40, 50, 1, 2)]), Some(NodeId(2)));
        assert_eq!(of(&[(0, 12, 1, 1), (12, 40, 2, 1)]), None);
        assert_eq!(of(&[(0, 40, 1, 2)]), None);
        assert_eq!(of(&[(0, 40, 0, 0)]), None);
    }
}
