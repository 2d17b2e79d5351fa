//! Frees the shadow of pages that were copied.
//!
//! Runs in signal handlers and in the reader of events: takes no lock and allocates nothing.

use std::sync::atomic::{AtomicU32, Ordering};

use homenode_sys::{HUGE, Span, memory};

use super::table::{self, BLOCK, Block, PageMask, Word};

/// Copied pages that shadows still have, in all blocks.
static STALE: AtomicU32 = AtomicU32::new(0);
/// Most such pages, not counting one a thread: 4 MiB.
const MOST_STALE: u32 = 1024;

/// Bytes freed by one call, if possible: 256 KiB. Freeing memory interrupts the other CPUs, for 16
/// pages as for 64.
const TOGETHER: usize = 4 * BLOCK;

/// Frees the shadow of a claimed block's `copied` pages. They wait for other pages of the block or
/// of its neighbours that are still armed.
#[inline]
pub fn free_shadow(block: Block, word: Word, copied: PageMask) -> Word {
    let (armed, copied) = (word.armed() & !copied, word.armed() & copied);
    let waits = armed != 0 || block.has_armed_neighbours(TOGETHER);
    if waits && STALE.load(Ordering::Relaxed) < MOST_STALE {
        STALE.fetch_add(copied.count_ones(), Ordering::Relaxed);
        return word.with_stale(word.stale() + copied.count_ones());
    }
    free_all_but(block, word, armed)
}

/// Frees the pages in a claimed block's shadow that were copied.
#[inline]
pub fn free_stale(block: Block, word: Word) -> Word {
    if word.stale() == 0 { word } else { free_all_but(block, word, word.armed()) }
}

/// Frees the shadow's pages that are not armed. With the last block of 2 MiB it frees the whole
/// shadow of the 2 MiB in one call. The kernel then frees the page table, too (since 6.14), which
/// it would otherwise look through when memory is next moved to the shadow.
fn free_all_but(block: Block, word: Word, armed: PageMask) -> Word {
    let together = |bytes| if armed == 0 { block.with_idle(bytes, discard_shadow) } else { None };
    let others = together(HUGE).or_else(|| together(TOGETHER)).unwrap_or_else(|| {
        block.runs(word.marked() & !armed).for_each(discard_shadow);
        0
    });
    STALE.fetch_sub(word.stale() + others, Ordering::Relaxed);
    word.with_stale(0)
}

/// Frees the shadow of a run of a claimed block. Nobody needs its contents.
#[inline]
pub fn discard_shadow(run: Span) {
    // SAFETY: nobody else uses the shadow of a claimed block.
    let _ = unsafe { memory::discard(Span::new(table::shadow(run.start), run.len())) };
}
