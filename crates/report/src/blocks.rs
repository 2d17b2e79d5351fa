//! What the best static home of each block would save.
//!
//! A block's time is the latency of its accesses, each with the home that the page had then. The
//! block's best time is that of the same accesses with the one home that is best for them. What
//! lies between is *avoidable*.
//!
//! A block is a page as long as the recording's objects have few pages. Above, a block is the
//! smallest power of two pages with which memory stays bounded; the answer says how many.

use homenode_dataset::tables::Object;
use homenode_model::{NodeId, Ps};

use crate::machine::MachineSummary;

/// Most numbers that are kept: blocks times nodes.
const MOST_NUMBERS: u64 = 1 << 24;

/// Accesses of a block by node, and the time that they took.
#[derive(Clone, Debug, Default)]
struct Block {
    /// By node, ascending.
    by: Vec<(NodeId, u64)>,
    time: Ps,
}

/// The blocks of one object.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    blocks: Vec<Block>,
    /// How many the object may have.
    most: u64,
}

/// How pages become blocks: the same for all objects of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    shift: u32,
}

impl Grain {
    /// The finest one for these objects on a machine of `nodes` nodes.
    pub fn of<'a>(objects: impl Iterator<Item = &'a Object> + Clone, page_bytes: u64, nodes: usize) -> Self {
        let most = MOST_NUMBERS / (nodes as u64).max(8);
        let blocks = |shift: u32| -> u64 {
            let of = |o: &Object| (pages(o, page_bytes) >> shift).max(1) - 1;
            objects.clone().map(of).fold(0, u64::saturating_add)
        };
        let shift = (0..63).find(|s| blocks(*s) <= most).unwrap_or(63);
        Self { shift }
    }

    /// Pages of a block.
    pub const fn pages(self) -> u64 {
        1 << self.shift
    }

    /// No blocks yet, for `object`, whose pages have `page_bytes` bytes.
    pub fn blocks(self, object: &Object, page_bytes: u64) -> Blocks {
        Blocks { blocks: Vec::new(), most: (pages(object, page_bytes) >> self.shift).saturating_add(1) }
    }
}

/// Pages of an object; at least one. An object that begins within a page may have one more.
pub fn pages(object: &Object, page_bytes: u64) -> u64 {
    let page = page_bytes.max(1);
    object.bytes.0.saturating_add(object.address % page).div_ceil(page).max(1)
}

impl Blocks {
    /// Adds accesses of `node` to the block of `page`, which took `time`.
    pub fn add(&mut self, grain: Grain, page: u64, node: NodeId, accesses: u64, time: Ps) {
        // A page behind the object's end counts for its last block: memory stays bounded.
        let at = (page >> grain.shift).min(self.most.saturating_sub(1)) as usize;
        if at >= self.blocks.len() {
            self.blocks.resize_with(at + 1, Block::default);
        }
        let block = &mut self.blocks[at];
        block.time += time;
        match block.by.binary_search_by_key(&node, |(n, _)| *n) {
            Ok(at) => block.by[at].1 = block.by[at].1.saturating_add(accesses),
            Err(at) => block.by.insert(at, (node, accesses)),
        }
    }

    /// Latency that the best static home of each block would save.
    pub fn avoidable(&self, machine: &MachineSummary) -> Ps {
        let used = self.blocks.iter().filter(|b| !b.by.is_empty());
        used.filter_map(|b| Some(b.time - machine.best(&b.by)?)).sum()
    }
}
