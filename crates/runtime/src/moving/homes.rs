//! Where pages are, and where future pages will be.
//!
//! On pretended nodes the table says where pages are: see [`super`], *Pretended nodes*.

use std::sync::atomic::Ordering;

use homenode_model::NodeId;
use homenode_sys::maps::PageEntry;
use homenode_sys::numa::{self, MemoryPolicy, PageStatus};
use homenode_sys::{PAGE, Span, maps};

use super::mechanism::Mechanism;
use super::state;
use super::table::{self, Block};

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
    if state::chosen() == Mechanism::UserFault && armed() { table::shadow(page) } else { page }
}
