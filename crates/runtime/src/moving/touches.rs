//! The touches since arming. Fault handlers write them, and [`drain`] reads them.

use homenode_lockless::TouchRing;
use homenode_lockless::ring::VALID;
use homenode_model::NodeId;
use homenode_sys::Span;

use super::reports::Touch;
use super::state::{self, TOUCHES_LOST};
use super::table::{BLOCK, Block, PageMask};

/// Blocks kept until the next [`drain`]: 16 GiB.
const LENGTH: usize = 1 << 18;
/// Looks for an entry that a handler is about to write.
const PATIENCE: usize = 100;
static RING: TouchRing<LENGTH, PATIENCE> = TouchRing::new();

/// Block number (32 bits), pages (16 bits), node (14 bits), stayed, valid.
const STAYED: u64 = 1 << 62;
/// More nodes than Linux can have.
const NODES: u16 = (1 << 14) - 1;

/// Notes that `pages` of a block came to `node`, or were touched by it and `stayed`. In handlers.
pub fn note(block: Span, pages: PageMask, node: NodeId, stayed: bool) {
    let flags = VALID | if stayed { STAYED } else { 0 };
    let entry = flags
        | u64::from(node.0 & NODES) << 48
        | u64::from(pages) << 32
        | u64::from((block.start / BLOCK) as u32);
    if !RING.write(entry) {
        state::count(&TOUCHES_LOST, 1);
    }
}

/// Reports the touches since the last call, in order. One caller at a time.
pub fn drain(mut tell: impl FnMut(Touch)) {
    RING.drain(homenode_sys::call::yield_now, |entry| {
        let start = (entry as u32) as usize * BLOCK;
        let Some(block) = Block::of(start) else { return };
        let (node, stayed) = (NodeId((entry >> 48) as u16 & NODES), entry & STAYED != 0);
        block.runs((entry >> 32) as PageMask).for_each(|span| tell(Touch { span, node, stayed }));
    });
}
