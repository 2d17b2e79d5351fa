//! Known targets: the kernel moves pages to known nodes, in chunks ([`super::chunks`]).
//!
//! On pretended nodes the kernel has no node to move to. Pages are then copied as by next touch,
//! and their homes noted.

use std::sync::atomic::Ordering;

use homenode_model::{Bytes, MoveResult, NodeId, Ns};
use homenode_sys::maps::PageEntry;
use homenode_sys::numa::{self, MemoryPolicy, PageStatus};
use homenode_sys::{PAGE, Span, call, maps};

use super::chunks::MoveUnderWay;
use super::state::{self, count};
use super::table::{self, Block};
use super::{arm, chunks, disarm, fault};

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

/// The outcome of several moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveReport {
    /// Moved.
    pub moved: Bytes,
    /// Were there already.
    pub already: Bytes,
    /// In use or pinned, or parts of huge pages that go elsewhere.
    pub busy: Bytes,
    /// Of these, the parts of huge pages.
    pub with_others: Bytes,
    /// The target has no memory.
    pub no_memory: Bytes,
    /// Have no home: never touched, or gone.
    pub no_page: Bytes,
    /// The last system call that failed as a whole, if one did.
    pub error: Option<homenode_sys::Error>,
    /// How long it took this thread.
    pub took: Ns,
}

impl MoveReport {
    pub(super) fn note(&mut self, result: MoveResult) {
        let sum = match result {
            MoveResult::Moved => &mut self.moved,
            MoveResult::AlreadyThere => &mut self.already,
            MoveResult::Busy => &mut self.busy,
            MoveResult::NoMemory => &mut self.no_memory,
            MoveResult::NoPage => &mut self.no_page,
            // The kernel's moves never answer this: the kernel keeps no copies of pages.
            MoveResult::Replicated | MoveResult::Unsupported => return,
        };
        *sum += Bytes(PAGE as u64);
    }
}

/// Future pages of `span` come from `node` while it has memory, or (`None`) from the toucher's
/// node. `false`: not possible, because nodes are pretended or memory policies cannot be set.
///
/// # Errors
/// The system's answer.
pub fn prefer(span: Span, node: Option<NodeId>) -> homenode_sys::Result<bool> {
    let possible = state::pretended() == 0 && state::POLICIES.load(Ordering::Relaxed);
    if possible {
        numa::set_policy(span, &node.map_or(MemoryPolicy::DEFAULT, MemoryPolicy::prefer))?;
    }
    Ok(possible)
}

/// Writes the home of the page at each address; `None` for pages that do not exist. Handles as many
/// as both slices have. Returns the system call that failed, if one did: some pages are then
/// unknown, and `None`, too.
pub fn homes(pages: &[usize], out: &mut [Option<NodeId>]) -> Option<homenode_sys::Error> {
    /// Pages a call.
    const CHUNK: usize = 256;
    let mut failed = None;
    for (pages, out) in pages.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
        // Armed pages are in the shadow, where the kernel knows them, or inaccessible in place.
        let mut at = [0; CHUNK];
        at.iter_mut().zip(pages).for_each(|(at, page)| *at = where_it_is(*page));
        let mut status = [PageStatus::UNKNOWN; CHUNK];
        let mut error = numa::query(&at[..pages.len()], &mut status).err();
        if error.is_some() && !state::KERNEL_MOVES.load(Ordering::Relaxed) {
            error = ask_mappings(&at[..pages.len()], &mut status).err();
        }
        let known = error.is_none();
        failed = error.or(failed);
        for ((out, page), status) in out.iter_mut().zip(pages).zip(status) {
            *out = match (state::pretended(), status.node()) {
                (0, node) if known => node,
                (0, _) => None,
                (_, Some(_)) => Some(pretended_home(*page)),
                (_, None) if !known => table::home(*page).map(|n| NodeId(u16::from(n))),
                (_, None) => None,
            };
        }
    }
    failed
}

/// As [`homes`], if the kernel answers no question about pages. It still says which pages exist.
/// The home of a copied page was noted then; for others, the node with most pages of the mapping
/// counts.
fn ask_mappings(pages: &[usize], status: &mut [PageStatus]) -> homenode_sys::Result<()> {
    let mut open = Vec::with_capacity(pages.len());
    for (i, page) in pages.iter().enumerate() {
        let mut entry = [PageEntry(0)];
        maps::page_entries(*page, &mut entry)?;
        let there = entry[0].present() || entry[0].swapped();
        status[i] = match (there, table::home(*page)) {
            (true, Some(home)) => PageStatus(i32::from(home)),
            _ => PageStatus(-libc::ENOENT),
        };
        if status[i].node().is_none() && there {
            open.push(i);
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    // The last mapping that begins before a page is the page's.
    maps::each_node(|start, node, _| {
        let node = node.map_or(PageStatus(-libc::ENOENT), |n| PageStatus(i32::from(n.0)));
        open.iter().filter(|i| pages[**i] >= start).for_each(|i| status[*i] = node);
    })
}

/// On pretended nodes: the home of an existing page. A page without a noted home gets the assumed
/// one, which is noted now. So it stays the same when the thread that starts teams changes nodes.
/// See [`super`], *Pretended nodes*.
pub fn pretended_home(page: usize) -> NodeId {
    let page = page & !(PAGE - 1);
    if let Some(home) = table::home(page) {
        return NodeId(home.into());
    }
    let assumed = state::serial_node();
    if Block::make(page).is_ok() {
        table::set_homes(Span::new(page, PAGE), assumed.0 as u8);
    }
    assumed
}

/// On pretended nodes: future pages of `span` count as `node`'s.
pub fn pretend_home(span: Span, node: NodeId) {
    for piece in span.inner(PAGE).pieces(table::BLOCK) {
        // Without a table their home stays unknown.
        if Block::make(piece.start).is_ok() {
            table::set_homes(piece, node.0 as u8);
        }
    }
}

fn where_it_is(page: usize) -> usize {
    let armed =
        || Block::of(page).is_some_and(|b| b.word().armed() & b.pages_touched(Span::new(page, 1)) != 0);
    if state::chosen() == super::Mechanism::UserFault && armed() { table::shadow(page) } else { page }
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
    if super::pinning::found().is_some() || super::pinning::has_peers() {
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
