//! The stack that a thread runs on: it is never armed while homenode works on it.
//!
//! A front end or a handler may run on any memory of the program's, and claims blocks there. So it
//! first excludes the part of the stack that it will use.

use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_sys::{PAGE, Span, call, maps};

use super::stacks::{in_use, own};
use super::table::{BLOCK, Block};

/// Bytes that homenode's own work may need below the stack pointer.
const DEPTH: usize = 64 << 10;

/// The caller is about to claim blocks, and runs on any stack. Makes sure that the part of the
/// stack that it will use is not armed, now or later. A thread would wait for ever for a block that
/// it has claimed itself.
#[inline]
pub fn stand() {
    let here = 0_u8;
    let here = &raw const here as usize;
    if on_initial_stack(here) || own().is_empty() {
        return;
    }
    let below = Span { start: here.saturating_sub(DEPTH), end: here + PAGE }.outer(PAGE);
    for unit in below.pieces(BLOCK) {
        let Ok(block) = Block::make(unit.start) else { continue };
        let pages = block.pages_touched(unit);
        let word = block.word();
        if word.excluded() & pages == pages && !word.busy() && word.armed() & pages == 0 {
            continue;
        }
        block.exclude(pages);
        // The block's owner may have looked before that.
        let mut wait = call::Wait::default();
        while block.word().busy() {
            wait.a_moment();
        }
        for run in block.runs(block.word().armed() & pages) {
            for page in run.pieces(PAGE) {
                // SAFETY: armed memory is readable once it is touched.
                unsafe { (page.start as *const u8).read_volatile() };
            }
        }
    }
}

/// The initial thread's first stack is never armed, and nothing else lies so close below its end
/// (`MIN_GAP`, arch/x86/mm/mmap.c).
fn on_initial_stack(address: usize) -> bool {
    const GAP: usize = 128 << 20;
    static END: AtomicUsize = AtomicUsize::new(0);
    let mut end = END.load(Ordering::Relaxed);
    if end == 0 {
        // SAFETY: asks for an address; these bytes lie above all that is ever pushed.
        end = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        END.store(end, Ordering::Relaxed);
    }
    address < end && end - address < GAP
}

/// Whether the calling thread runs on its first stack, and both addresses lie there. Reads the
/// process's mappings, so call it on suspicion only.
pub fn on_first_stack(one: usize, other: usize) -> bool {
    // A handler may have another stack, which may lie within this one, in an array of the
    // program's.
    if in_use().ss_flags & (libc::SS_ONSTACK | libc::SS_DISABLE) != 0 {
        return false;
    }
    if on_initial_stack(one) || on_initial_stack(other) {
        return on_initial_stack(one) && on_initial_stack(other);
    }
    // Threads have their thread-local storage above it, in the same mapping, and a guard below.
    // SAFETY: asks for an address.
    let end = unsafe { libc::pthread_self() } as usize;
    let mut found = false;
    let read = maps::each(|m| {
        found = m.span.contains(end) && m.span.contains(one) && m.span.contains(other);
        m.span.end <= end
    });
    read.is_ok() && found && one < end && other < end
}

/// A thread has touched a page near its stack pointer, so the page is part of a stack, and so are
/// the pages that it will push to. For handlers: claims no block.
pub fn note_stack(address: usize, pointer: usize) {
    /// Bytes below the stack pointer that leaf functions use.
    const RED_ZONE: usize = 128;
    let page = |a: usize| a / PAGE;
    if page(address) != page(pointer) && page(address) != page(pointer.saturating_sub(RED_ZONE)) {
        return;
    }
    let below = Span { start: address.saturating_sub(DEPTH), end: address + 1 }.outer(PAGE);
    for block in Block::all(below) {
        block.exclude(block.pages_touched(below));
    }
}
