//! A ring of pointers through a block: what measures latency, for no load can start before the one before it has ended.

use std::ops::Range;

use crate::block::Block;

/// A block whose slots, `stride` bytes apart, hold pointers to each other. The walk's position stays with it, so that pieces
/// of a walk continue each other and no address is met twice in a lap.
#[derive(Debug)]
pub struct Ring {
    block: Block,
    stride: usize,
    /// Address of the slot that is read next; 0 while there is no cycle.
    at: usize,
    /// Steps until the cycle closes.
    left: u64,
}

impl Ring {
    /// A ring without a cycle. A stride below 8 bytes is taken as 8; it is rounded down to a multiple of 8.
    pub const fn new(block: Block, stride: usize) -> Self {
        let stride = if stride < 8 { 8 } else { stride & !7 };
        Self { block, stride, at: 0, left: 0 }
    }

    /// How many slots there are.
    pub const fn slots(&self) -> usize {
        self.block.span().len() / self.stride
    }

    /// The memory.
    pub const fn block(&self) -> &Block {
        &self.block
    }

    /// Steps until the cycle closes: then it is time for another one.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Makes the cycle that visits the slots in this order. Slots are written in that order, too, so what of them stays in
    /// caches is the cycle's end, and is gone before the walk comes there if the block is larger than the caches.
    ///
    /// # Panics
    /// When `order` names a slot that does not exist.
    pub fn link(&mut self, order: &[u32]) {
        let slots = self.slots();
        assert!(order.iter().all(|s| (*s as usize) < slots), "a slot outside of the ring");
        let (start, step) = (self.block.span().start, self.stride / 8);
        let address = |slot: u32| start + slot as usize * step * 8;
        let words = self.block.words();
        for (i, slot) in order.iter().enumerate() {
            let next = order[(i + 1) % order.len()];
            words[*slot as usize * step].store(address(next) as u64, std::sync::atomic::Ordering::Relaxed);
        }
        self.at = order.first().map_or(0, |s| address(*s));
        self.left = order.len() as u64;
    }

    /// Goes `steps` on, at most to the end of the cycle; how many it were.
    #[inline(never)]
    pub fn walk(&mut self, steps: u64) -> u64 {
        if self.at == 0 {
            return 0;
        }
        let steps = steps.min(self.left);
        let mut at = self.at as *const usize;
        let Range { start, mut end } = 0..steps;
        while end > start {
            // SAFETY: `at` is a slot of `order` in the last `link`, and each of these holds the address of another of
            // them: nobody else can write the block, which this has exclusively.
            at = unsafe { at.read() as *const usize };
            end -= 1;
        }
        self.at = std::hint::black_box(at) as usize;
        self.left -= steps;
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HUGE;

    #[test]
    fn a_walk_visits_every_slot_once_and_comes_back() {
        let mut ring = Ring::new(Block::new(HUGE).unwrap(), 4096);
        assert_eq!((ring.slots(), ring.walk(5)), (512, 0), "no cycle yet");
        // 205 and 512 have no common divisor.
        let order: Vec<u32> = (0..512).map(|i| i * 205 % 512).collect();
        ring.link(&order);
        let start = ring.block().span().start;
        let mut seen = Vec::new();
        while ring.left() > 0 {
            seen.push(((ring.at - start) / 4096) as u32);
            assert_eq!(ring.walk(1), 1);
        }
        assert_eq!((seen, ring.at), (order, start));
        assert_eq!(ring.walk(1), 0, "a cycle is walked once");
    }

    #[test]
    #[should_panic(expected = "a slot outside of the ring")]
    fn a_slot_that_does_not_exist_is_refused() {
        Ring::new(Block::new(HUGE).unwrap(), 4096).link(&[0, 512]);
    }
}
