//! Puts memory on nodes: future pages by policy, and existing pages by moving them.

use homenode_model::code::HN_FIRST_TOUCH;
use homenode_model::{MoveResult, NodeId, Ns};
use homenode_sys::numa::{self, MemoryPolicy};
use homenode_sys::{PAGE, Span};

use super::find::{self, PageTotals, PageWhereabouts};
use super::machine::UsableNodes;
use super::{Failure, Result};
use crate::moving::{self, PageTarget};

/// Latency cap of one call that moves pages.
const CHUNK: Ns = Ns(10_000_000);
/// Pages moved between two looks at the clock.
const PART: usize = 1 << 14;

/// Future pages of `span` come from `node` while it has room, whoever touches them. With
/// [`HN_FIRST_TOUCH`] they come from the toucher's node, as without homenode. Existing pages stay.
///
/// # Errors
/// There is no such node, or it has no memory; the memory is not mapped; the system forbids it.
pub fn place(span: Span, node: i32) -> Result<()> {
    let machine = UsableNodes::here();
    let target = if node == HN_FIRST_TOUCH { None } else { Some(machine.node_with_memory(node)?) };
    if !homenode_sys::memory::is_mapped(span) {
        return Err(Failure::invalid(format!("cannot place {span}: not all of it is mapped")));
    }
    if moving::pretended() != 0 {
        return target.map_or(Ok(()), |node| note_pretended(span, node));
    }
    let policy = target.map_or(MemoryPolicy::DEFAULT, MemoryPolicy::prefer);
    let held = moving::before_change(span);
    let set = numa::set_policy(span, &policy);
    moving::retire(held);
    match set {
        Ok(()) => Ok(()),
        // There is no other node for the pages.
        Err(_) if target.is_none_or(|t| machine.only() == Some(t)) => Ok(()),
        Err(e) => Err(Failure::system(format_args!("cannot place memory on node {node}"), e)),
    }
}

/// On pretended nodes: future pages of `span` count as this node's.
fn note_pretended(span: Span, node: NodeId) -> Result<()> {
    let mut at = span.start;
    find::each(span, |place| {
        if place == PageWhereabouts::Absent {
            moving::pretend_home(Span::new(at, PAGE), node);
        }
        at += PAGE;
    })
}

/// Moves the existing pages of `span` to `node`. Returns where they are afterwards, and whether all
/// are on the node.
///
/// # Errors
/// As [`place`]; and [`homenode_model::code::HN_PARTIAL`] if some pages are not on `node`
/// afterwards.
pub fn move_to(span: Span, node: i32) -> (PageTotals, Result<()>) {
    let unknown =
        PageTotals { pages: span.pages() as u64, unknown: span.pages() as u64, ..PageTotals::default() };
    let machine = UsableNodes::here();
    let target = match machine.node_with_memory(node) {
        Ok(target) => target,
        Err(f) => return (unknown, Err(f)),
    };
    // With one node only, the pages are there already.
    let moved = if machine.only() == Some(target) { Ok(()) } else { make_moves(span, target) };
    let (found, judged) = find::count(span, node);
    (found, moved.and(judged))
}

fn make_moves(span: Span, to: NodeId) -> Result<()> {
    // For the kernel, armed pages are elsewhere. Pretended moves arm what they copy, so they hold
    // nothing.
    let held = (moving::pretended() == 0).then(|| moving::before_change(span));
    let mut outcome = Ok(());
    for part in span.pieces(PART * PAGE) {
        let mut moves: Vec<PageTarget> =
            (part.start..part.end).step_by(PAGE).map(|p| PageTarget::new(p, to)).collect();
        let report = moving::move_pages(&mut moves, CHUNK);
        if let Some(e) = report.error {
            outcome = Err(Failure::system(format_args!("cannot move {part} to node {}", to.0), e));
            break;
        }
        if moves.iter().any(|m| m.result == MoveResult::NoMemory) {
            outcome = Err(Failure::new(
                homenode_model::code::HN_ENOMEM,
                format!("cannot move all of {part} to node {}: it has not enough free memory", to.0),
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
    use homenode_model::code::{HN_EINVAL, HN_ENODE, HN_OK};
    use homenode_sys::memory::{Protection, map, unmap};

    fn here() -> i32 {
        UsableNodes::here()
            .nodes()
            .iter()
            .find(|n| UsableNodes::here().memory(**n).0.0 > 0)
            .map_or(0, |n| n.0.into())
    }

    #[test]
    fn memory_is_placed_before_it_is_touched() {
        let m = map(4 * PAGE, Protection::ReadWrite).unwrap();
        place(m, here()).unwrap();
        homenode_sys::memory::populate(m).unwrap();
        assert_eq!(find::count(m, here()).1, Ok(()));
        place(m, HN_FIRST_TOUCH).unwrap();
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
        // Far from where the kernel maps anything unasked.
        let nothing = Span::new(1 << 40, 4 * PAGE);
        assert_eq!(place(nothing, here()).unwrap_err().code, HN_EINVAL);
    }

    #[test]
    fn what_is_there_already_need_not_move() {
        let m = map(4 * PAGE, Protection::ReadWrite).unwrap();
        homenode_sys::memory::populate(m).unwrap();
        let (_, here) = {
            let mut at = None;
            find::each(m, |p| at = Some(p)).unwrap();
            (at, at.unwrap().number())
        };
        let (found, done) = move_to(m, here);
        assert_eq!((found.there, done.map_or_else(|f| f.code, |()| HN_OK)), (4, HN_OK));
        let (found, done) = move_to(m, 777);
        assert_eq!((found.unknown, done.unwrap_err().code), (4, HN_ENODE));
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
    }
}
