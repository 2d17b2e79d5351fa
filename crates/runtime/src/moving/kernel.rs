//! Known targets: the kernel moves pages to known nodes, in chunks ([`super::chunks`]).
//!
//! On pretended nodes the kernel has no node to move to. Pages are then copied as by next touch,
//! and their homes noted.

use homenode_model::{MoveResult, NodeId, Ns};
use homenode_sys::{PAGE, Span, call};

use super::chunks::MoveUnderWay;
use super::homes::homes;
use super::reports::MoveReport;
use super::state::{self, count};
use super::{arm, chunks, disarm, fault, pinning, table};

/// A page and its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTarget {
    /// The page's address.
    pub page: usize,
    /// Where to.
    pub to: NodeId,
    /// The outcome. Any value before the move.
    pub result: MoveResult,
}

impl PageTarget {
    /// Not yet made.
    pub const fn new(page: usize, to: NodeId) -> Self {
        Self { page, to, result: MoveResult::Busy }
    }
}

/// Moves pages in the calling thread and sets each outcome. Asks first, sorts by target (the slice,
/// too), moves huge pages whole, and makes calls of about `cap` each. A huge page goes to the node
/// that most of its pages among the moves should be on.
pub fn move_pages(moves: &mut [PageTarget], cap: Ns) -> MoveReport {
    let begin = call::now();
    let mut report = MoveReport::default();
    moves.sort_unstable_by_key(|m| (m.to, m.page));
    let mut work: Vec<MoveUnderWay> = moves.iter().map(|m| MoveUnderWay::new(m.page, m.to)).collect();
    if state::pretended() != 0 {
        copy_as_if_moved(&mut work, &mut report);
    } else {
        chunks::move_all(&mut chunks::KernelCalls, &mut work, cap, &mut report);
    }
    work.sort_unstable_by_key(|m| (m.to, m.page));
    moves.iter_mut().zip(&work).for_each(|(m, w)| m.result = w.result.unwrap_or(MoveResult::Busy));
    if state::pretended() == 0 {
        count(&state::MOVED, report.moved.0);
    }
    report.took = call::now() - begin;
    report
}

/// Pages between two others that are armed with them. Fewer mappings are worth more than the pages
/// armed in vain.
const GAP: usize = 16;

/// Copies pages to fresh ones and notes the homes. One call arms all of them and looks at the
/// mappings once.
fn copy_as_if_moved(moves: &mut [MoveUnderWay], report: &mut MoveReport) {
    moves.sort_unstable_by_key(|m| m.page);
    let pages: Vec<usize> = moves.iter().map(|m| m.page).collect();
    let mut at = vec![None; pages.len()];
    report.error = homes(&pages, &mut at).or(report.error);
    for (m, home) in moves.iter_mut().zip(at) {
        match home {
            None => m.finish(MoveResult::NoPage, report),
            Some(node) if node == m.to => m.finish(MoveResult::AlreadyThere, report),
            Some(_) => {}
        }
    }
    let mut spans: Vec<Span> = Vec::new();
    for m in moves.iter().filter(|m| m.result.is_none()) {
        match spans.last_mut() {
            Some(s) if m.page <= s.end + GAP * PAGE => s.end = m.page + PAGE,
            _ => spans.push(Span::new(m.page, PAGE)),
        }
    }
    if spans.is_empty() {
        return;
    }
    if pinning::found().is_some() || pinning::has_peers() {
        // Nothing may be away from its place here. On real nodes the kernel would move these pages
        // in place: only that is noted.
        for m in moves.iter_mut().filter(|m| m.result.is_none()) {
            table::set_homes(Span::new(m.page, PAGE), m.to.0.min(254) as u8);
            m.finish(MoveResult::Moved, report);
        }
        return;
    }
    let before: Vec<(usize, Option<u8>)> =
        spans.iter().flat_map(|s| s.pieces(PAGE)).map(|p| (p.start, table::home(p.start))).collect();
    let armed = arm::arm(&spans);
    report.error = armed.error.or(report.error);
    let open: Vec<bool> = moves.iter().map(|m| m.result.is_none() && fault::is_armed(m.page)).collect();
    moves.iter().zip(&open).filter(|(_, open)| **open).for_each(|(m, _)| fault::bring_page(m.page, m.to));
    spans.into_iter().for_each(disarm::disarm);
    // Protected blocks come 2 MiB at a time, to the first toucher. The homes are the requested
    // ones.
    for (page, home) in before {
        match home {
            Some(node) => table::set_homes(Span::new(page, PAGE), node),
            None => table::forget_homes(Span::new(page, PAGE)),
        }
    }
    for (m, open) in moves.iter_mut().zip(open).filter(|(m, _)| m.result.is_none()) {
        let there = open && !fault::is_armed(m.page);
        if there {
            table::set_homes(Span::new(m.page, PAGE), m.to.0.min(254) as u8);
        }
        m.finish(if there { MoveResult::Moved } else { MoveResult::Busy }, report);
    }
}
