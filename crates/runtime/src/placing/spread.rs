//! Puts the pages of one array on several nodes, and tells whether they are there.

use std::sync::OnceLock;
use std::time::Duration;

use homenode_model::code::{HN_ENOMEM, HN_PARTIAL};
use homenode_model::{MoveResult, NodeId, Ns};
use homenode_sys::memory::{self, Protection};
use homenode_sys::numa::{self, MemoryPolicy};
use homenode_sys::{PAGE, Span};

use super::find::{self, PageTotals, PageWhereabouts};
use super::machine::UsableNodes;
use super::{Failure, Result};
use crate::moving::{self, PageTarget};
use crate::nodes::Nodes;

/// Latency cap of one call that moves pages.
const CHUNK: Ns = Ns(10_000_000);
/// Pages moved between two looks at the clock.
const PART: usize = 1 << 14;
/// Waits before pages that were busy are tried again.
const AGAIN: [Duration; 5] = [
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(16),
];
/// Memory policies that one array may have. Each needs a mapping of its own, and the kernel allows
/// a process 65 530 mappings. An array with more pieces is brought into memory instead, and then
/// moved.
const POLICIES: usize = 1 << 10;

/// Neighbouring pages of an array and the node that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesToPlace {
    /// The pages.
    pub span: Span,
    /// Their node.
    pub node: NodeId,
}

/// Nodes that arrays are distributed over: those with memory and CPUs, and all of pretended ones. A
/// thread that is bound finds the same nodes as one that is not. The nodes stay the same while the
/// process lives.
pub fn nodes() -> Vec<NodeId> {
    static REAL: OnceLock<Vec<NodeId>> = OnceLock::new();
    match moving::pretended() {
        0 => REAL.get_or_init(Nodes::for_arrays).clone(),
        n => (0..n).map(NodeId).collect(),
    }
}

/// Future pages of each span come from its node, and existing pages move there. Spans ascend and
/// do not overlap. Pages that are not in memory are no failure.
///
/// # Errors
/// The memory is not mapped, a node has no room, or the system forbids it.
/// [`homenode_model::code::HN_PARTIAL`]: some pages are elsewhere.
pub fn spread(wanted: &[PagesToPlace]) -> Result<()> {
    let Some(whole) = hull(wanted) else { return Ok(()) };
    if !memory::is_mapped(whole) {
        return Err(Failure::invalid(format!("cannot distribute {whole}: not all of it is mapped")));
    }
    let machine = UsableNodes::here();
    for w in wanted {
        if machine.only() != Some(w.node) {
            machine.node_with_memory(w.node.0.into())?;
        }
    }
    if machine.only().is_some() {
        return Ok(());
    }
    place(wanted, whole)?;
    move_existing(wanted, whole)?;
    let found = count(wanted)?;
    match found.elsewhere + found.unknown {
        0 => Ok(()),
        _ => Err(partial(&found)),
    }
}

/// Counts the pages of all spans by whether they are on their node.
///
/// # Errors
/// The memory is not mapped, or the system forbids the query.
pub fn count(wanted: &[PagesToPlace]) -> Result<PageTotals> {
    let mut found = PageTotals::default();
    let Some(whole) = hull(wanted) else { return Ok(found) };
    if !memory::is_mapped(whole) {
        return Err(Failure::invalid(format!("cannot look at {whole}: not all of it is mapped")));
    }
    let mut spans = wanted.iter();
    let mut at = spans.next();
    let mut page = whole.start;
    find::each(whole, |place| {
        while at.is_some_and(|w| w.span.end <= page) {
            at = spans.next();
        }
        if let Some(w) = at.filter(|w| w.span.start <= page) {
            found.note(place, w.node);
        }
        page += PAGE;
    })?;
    Ok(found)
}

/// The answer where pages are not where they belong.
pub fn partial(found: &PageTotals) -> Failure {
    let PageTotals { pages, there, elsewhere, absent, unknown } = found;
    let unknown = if *unknown > 0 { format!(", {unknown} not known") } else { String::new() };
    Failure::new(
        HN_PARTIAL,
        format!(
            "of {pages} pages {there} are on their node, {elsewhere} elsewhere, {absent} not in memory{unknown}"
        ),
    )
}

/// Fresh memory that begins at a page border and is zero.
///
/// # Errors
/// There is not so much memory.
pub fn allocate(bytes: usize) -> Result<Span> {
    memory::map(bytes, Protection::ReadWrite).map_err(|e| {
        let mut f = Failure::system(format_args!("cannot allocate {bytes} bytes for an array"), e);
        f.code = HN_ENOMEM;
        f
    })
}

/// Gives the memory of [`allocate`] back.
///
/// # Safety
/// The span is one that [`allocate`] returned, and nobody uses the memory any more.
///
/// # Errors
/// The kernel's answer.
pub unsafe fn free(span: Span) -> Result<()> {
    let held = moving::before_free(span);
    // SAFETY: the caller's promise.
    let freed = unsafe { memory::unmap(span) };
    moving::retire(held);
    freed.map_err(|e| Failure::system(format_args!("cannot free the array at {span}"), e))
}

fn hull(wanted: &[PagesToPlace]) -> Option<Span> {
    Some(Span { start: wanted.first()?.span.start, end: wanted.last()?.span.end })
}

fn place(wanted: &[PagesToPlace], whole: Span) -> Result<()> {
    if moving::pretended() != 0 {
        let mut spans = wanted.iter();
        let mut at = spans.next();
        let mut page = whole.start;
        return find::each(whole, |place| {
            while at.is_some_and(|w| w.span.end <= page) {
                at = spans.next();
            }
            if let Some(w) = at.filter(|w| w.span.start <= page && place == PageWhereabouts::Absent) {
                moving::pretend_home(Span::new(page, PAGE), w.node);
            }
            page += PAGE;
        });
    }
    let held = moving::before_change(whole);
    let set = if wanted.len() > POLICIES {
        memory::populate(whole)
            .map_err(|e| Failure::system("cannot bring the array into memory before it is distributed", e))
    } else {
        wanted.iter().try_for_each(|w| {
            numa::set_policy(w.span, &MemoryPolicy::prefer(w.node))
                .map_err(|e| Failure::system(format_args!("cannot place {} on node {}", w.span, w.node.0), e))
        })
    };
    moving::retire(held);
    set
}

/// The first node that had no room for a page.
fn no_room(moves: &[PageTarget]) -> Option<NodeId> {
    moves.iter().find(|m| m.result == MoveResult::NoMemory).map(|m| m.to)
}

fn move_existing(wanted: &[PagesToPlace], whole: Span) -> Result<()> {
    let held = (moving::pretended() == 0).then(|| moving::before_change(whole));
    let mut pages = wanted.iter().flat_map(|w| {
        let node = w.node;
        (w.span.start..w.span.end).step_by(PAGE).map(move |page| PageTarget::new(page, node))
    });
    let mut outcome = Ok(());
    loop {
        let mut moves: Vec<PageTarget> = pages.by_ref().take(PART).collect();
        if moves.is_empty() {
            break;
        }
        let mut report = moving::move_pages(&mut moves, CHUNK);
        let full = no_room(&moves);
        for wait in AGAIN {
            let mut busy: Vec<PageTarget> =
                moves.iter().filter(|m| m.result == MoveResult::Busy).copied().collect();
            if busy.is_empty() || report.error.is_some() {
                break;
            }
            std::thread::sleep(wait);
            report = moving::move_pages(&mut busy, CHUNK);
            moves = busy;
        }
        if let Some(e) = report.error {
            outcome = Err(Failure::system(format_args!("cannot move all of {whole} to its nodes"), e));
            break;
        }
        if let Some(full) = full.or_else(|| no_room(&moves)) {
            outcome = Err(Failure::new(
                HN_ENOMEM,
                format!("cannot move all of {whole}: node {} has not enough free memory", full.0),
            ));
            break;
        }
    }
    if let Some(held) = held {
        moving::retire(held);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::code::HN_EINVAL;
    use homenode_sys::memory::{map, unmap};

    #[test]
    fn an_array_goes_to_the_nodes_that_there_are() {
        let m = map(8 * PAGE, Protection::ReadWrite).unwrap();
        memory::populate(Span::new(m.start, 4 * PAGE)).unwrap();
        let nodes = nodes();
        assert!(!nodes.is_empty());
        let node = |i: usize| nodes[i % nodes.len()];
        let wanted: Vec<PagesToPlace> =
            m.pieces(PAGE).enumerate().map(|(i, span)| PagesToPlace { span, node: node(i) }).collect();
        spread(&wanted).unwrap();
        let found = count(&wanted).unwrap();
        assert_eq!((found.pages, found.there, found.elsewhere, found.absent), (8, 4, 0, 4));
        memory::populate(m).unwrap();
        assert_eq!(count(&wanted).unwrap().there, 8);
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
        assert_eq!(spread(&[]), Ok(()));
        // Far from where the kernel maps anything unasked.
        let nothing = [PagesToPlace { span: Span::new(1 << 40, 4 * PAGE), node: nodes[0] }];
        assert_eq!(spread(&nothing).unwrap_err().code, HN_EINVAL);
        assert_eq!(count(&nothing).unwrap_err().code, HN_EINVAL);
    }
}
