//! The touches since arming. Fault handlers write them, and [`drain`] reads them.

use std::sync::atomic::{AtomicU64, Ordering};

use homenode_model::NodeId;
use homenode_sys::Span;

use super::reports::Touch;
use super::state::{self, TOUCHES_LOST};
use super::table::{BLOCK, Block, PageMask};

/// Blocks kept until the next [`drain`]: 16 GiB.
const LENGTH: u64 = 1 << 18;
static RING: [AtomicU64; LENGTH as usize] = [const { AtomicU64::new(0) }; LENGTH as usize];
static WRITTEN: AtomicU64 = AtomicU64::new(0);
static READ: AtomicU64 = AtomicU64::new(0);

/// Block number (32 bits), pages (16 bits), node (14 bits), stayed, valid.
const VALID: u64 = 1 << 63;
const STAYED: u64 = 1 << 62;
/// More nodes than Linux can have.
const NODES: u16 = (1 << 14) - 1;

/// Notes that `pages` of a block came to `node`, or were touched by it and `stayed`. In handlers.
pub fn note(block: Span, pages: PageMask, node: NodeId, stayed: bool) {
    let at = WRITTEN.fetch_add(1, Ordering::Relaxed);
    if at - READ.load(Ordering::Relaxed).min(at) >= LENGTH {
        state::count(&TOUCHES_LOST, 1);
        return;
    }
    let flags = VALID | if stayed { STAYED } else { 0 };
    let entry = flags
        | u64::from(node.0 & NODES) << 48
        | u64::from(pages) << 32
        | u64::from((block.start / BLOCK) as u32);
    RING[(at % LENGTH) as usize].store(entry, Ordering::Release);
}

/// Takes an entry. Its handler may be about to write it, so this waits a little.
fn next(place: &AtomicU64) -> u64 {
    const PATIENCE: usize = 100;
    for _ in 0..PATIENCE {
        let entry = place.swap(0, Ordering::Acquire);
        if entry & VALID != 0 {
            return entry;
        }
        homenode_sys::call::yield_now();
    }
    0
}

/// Reports the touches since the last call, in order. One caller at a time.
pub fn drain(mut tell: impl FnMut(Touch)) {
    let end = WRITTEN.load(Ordering::Acquire);
    let mut at = READ.load(Ordering::Relaxed);
    let last = end.min(at + LENGTH);
    while at < last {
        let entry = next(&RING[(at % LENGTH) as usize]);
        at += 1;
        if entry & VALID == 0 {
            continue;
        }
        let start = (entry as u32) as usize * BLOCK;
        let Some(block) = Block::of(start) else { continue };
        let (node, stayed) = (NodeId((entry >> 48) as u16 & NODES), entry & STAYED != 0);
        block.runs((entry >> 32) as PageMask).for_each(|span| tell(Touch { span, node, stayed }));
    }
    READ.store(end, Ordering::Release);
}
