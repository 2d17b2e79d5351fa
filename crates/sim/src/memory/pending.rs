//! What a thread has still to do: a queue of items, most of it in a file where it is long.

use std::collections::VecDeque;
use std::sync::Arc;

use homenode_model::Bytes;

use super::spill::{BLOCK, Block, Spill};
use crate::stream::MemItem;

/// Accesses of threads that others hold up stay in memory up to this size, all threads of a
/// simulation together. More of them wait in a file.
pub const HELD: Bytes = Bytes::mib(64);

/// Items of a thread that stay in memory, in a simulation of `threads` threads.
pub(super) fn held(threads: usize) -> usize {
    (HELD.0 as usize / size_of::<MemItem>() / threads.max(1)).max(BLOCK)
}

/// The queue. In order: `items` from `at` on, the blocks in the file, `tail`.
#[derive(Debug)]
pub(super) struct Pending {
    items: Vec<MemItem>,
    at: usize,
    blocks: VecDeque<Block>,
    tail: Vec<MemItem>,
    spill: Arc<Spill>,
    /// How long `items` may become.
    held: usize,
}

impl Pending {
    pub(super) const fn new(spill: Arc<Spill>, held: usize) -> Self {
        Self { items: Vec::new(), at: 0, blocks: VecDeque::new(), tail: Vec::new(), spill, held }
    }

    /// Adds items behind the others. What is done goes when it is the greater half: each item is
    /// moved at most once more, on average.
    pub(super) fn extend(&mut self, items: &[MemItem]) {
        if self.at * 2 >= self.items.len() {
            self.items.drain(..self.at);
            self.at = 0;
        }
        if !self.is_long() && self.items.len() + items.len() <= self.held {
            self.items.extend_from_slice(items);
        } else {
            self.store(items);
        }
    }

    /// Whether there are items behind those in `items`.
    #[inline]
    fn is_long(&self) -> bool {
        !self.tail.is_empty() || !self.blocks.is_empty()
    }

    /// Adds items behind a queue that has become long.
    #[cold]
    fn store(&mut self, items: &[MemItem]) {
        self.tail.extend_from_slice(items);
        let mut written = 0;
        for block in self.tail.chunks_exact(BLOCK) {
            let Some(block) = self.spill.write(block) else { break };
            self.blocks.push_back(block);
            written += BLOCK;
        }
        self.tail.drain(..written);
    }

    /// The item at hand.
    #[inline]
    pub(super) fn first(&mut self) -> Option<MemItem> {
        if self.at == self.items.len() && self.is_long() {
            self.bring_back();
        }
        self.items.get(self.at).copied()
    }

    /// Reads the next block; without one, takes what is behind the blocks.
    #[cold]
    fn bring_back(&mut self) {
        self.items.clear();
        self.at = 0;
        match self.blocks.pop_front() {
            Some(block) => self.spill.read(&block, &mut self.items),
            None => self.items.append(&mut self.tail),
        }
    }

    /// The item at hand, which [`Pending::first`] has found.
    #[inline]
    pub(super) fn at_hand(&self) -> &MemItem {
        &self.items[self.at]
    }

    /// The item at hand is done.
    #[inline]
    pub(super) const fn pass(&mut self) {
        self.at += 1;
    }

    #[cfg(test)]
    pub(super) fn items_in_memory(&self) -> usize {
        self.items.len() + self.tail.len()
    }

    /// Nothing more is to be done.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.spill.clone(), self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::MemWhat;
    use homenode_model::{Ps, Ticks};

    fn item(tick: u64) -> MemItem {
        MemItem { tick: Ticks(tick), what: MemWhat::CacheTime(Ps(1)) }
    }

    fn pending(held: usize) -> Pending {
        Pending::new(Arc::default(), held)
    }

    #[test]
    fn items_that_are_done_go_when_they_are_the_greater_half() {
        let mut pending = pending(100);
        pending.extend(&[item(1), item(2), item(3)]);
        pending.pass();
        pending.extend(&[item(4)]);
        assert_eq!((pending.items.len(), pending.at), (4, 1), "one of three is the smaller half");
        pending.pass();
        pending.extend(&[item(5)]);
        assert_eq!((pending.items.len(), pending.at), (3, 0));
        assert_eq!(pending.first().map(|i| i.tick), Some(Ticks(3)));
        (0..3).for_each(|_| pending.pass());
        assert!(pending.first().is_none());
    }

    #[test]
    fn a_long_queue_keeps_its_order_and_little_memory() {
        let (mut pending, pieces, piece) = (pending(BLOCK), 100u64, 1000u64);
        let (mut next, mut most) = (0, 0);
        for p in 0..pieces {
            let items: Vec<MemItem> = (p * piece..(p + 1) * piece).map(item).collect();
            pending.extend(&items);
            most = most.max(pending.items_in_memory());
            // Half of what comes is done at once.
            for _ in 0..piece / 2 {
                assert_eq!(pending.first(), Some(item(next)));
                pending.pass();
                next += 1;
            }
        }
        assert!(!pending.blocks.is_empty());
        assert!(most <= 4 * BLOCK, "{most} items in memory");
        while let Some(found) = pending.first() {
            assert_eq!(found, item(next));
            pending.pass();
            next += 1;
        }
        assert_eq!(next, pieces * piece);
        assert!(pending.blocks.is_empty() && pending.tail.is_empty());
        pending.extend(&[item(1)]);
        assert_eq!(pending.first(), Some(item(1)), "it is short again");
    }
}
