//! Claims of blocks.
//!
//! A thread that has claimed a block owns it, with the memory that the block stands for. The owner
//! alone writes the block's state. Claims and states are stored apart, so that one store claims 64
//! blocks, and the owner need not use read-modify-write operations on the state.

use core::ops::Range;

use super::sync::{AtomicU64, Ordering};

/// Blocks whose claims share a word.
pub const GROUP: usize = u64::BITS as usize;

/// The claims and states of `BLOCKS` blocks, in `GROUPS` groups of [`GROUP`]. All zeros: nobody
/// owns a block, and each state is 0.
pub struct Claims<const GROUPS: usize, const BLOCKS: usize> {
    pub(super) owned: [AtomicU64; GROUPS],
    pub(super) states: [AtomicU64; BLOCKS],
}

/// The bit of a block in its group's word.
#[inline]
const fn bit(block: usize) -> u64 {
    1 << (block % GROUP)
}

/// The bits of these blocks, all of one group.
#[inline]
const fn bits(first: usize, end: usize) -> u64 {
    u64::MAX >> (GROUP - (end - first)) << (first % GROUP)
}

impl<const GROUPS: usize, const BLOCKS: usize> Claims<GROUPS, BLOCKS> {
    /// Whether somebody owns the block. To read the state of a block that nobody owns, ask this
    /// first: its last owner wrote the state before it released the block.
    #[inline]
    pub fn is_owned(&self, block: usize) -> bool {
        self.owned[block / GROUP].load(Ordering::SeqCst) & bit(block) != 0
    }

    /// The block's state. If the caller does not own the block, it may change at any time.
    #[inline]
    pub fn state(&self, block: usize) -> u64 {
        self.states[block].load(Ordering::SeqCst)
    }

    /// Claims the block, unless somebody owns it. Returns whether the caller owns it now.
    #[inline]
    pub fn try_claim(&self, block: usize) -> bool {
        let bit = bit(block);
        self.owned[block / GROUP].fetch_or(bit, Ordering::SeqCst) & bit == 0
    }

    /// Claims the block. Calls `pause` while somebody owns it.
    pub fn claim<W: Default>(&self, block: usize, pause: impl Fn(&mut W)) {
        let mut wait = W::default();
        while !self.try_claim(block) {
            pause(&mut wait);
        }
    }

    /// Sets the state. For the block's owner, who goes on owning it.
    #[inline]
    pub fn keep(&self, block: usize, state: u64) {
        self.states[block].store(state, Ordering::Release);
    }

    /// Releases the block with this state. For its owner.
    #[inline]
    pub fn release(&self, block: usize, state: u64) {
        self.keep(block, state);
        self.owned[block / GROUP].fetch_and(!bit(block), Ordering::SeqCst);
    }

    /// Claims all these blocks, in ascending order. Calls `pause` while others own some of a group.
    pub fn claim_all<W: Default>(&self, blocks: Range<usize>, pause: impl Fn(&mut W)) {
        self.each_group(blocks, |owned, wanted| {
            let (mut left, mut wait) = (wanted, W::default());
            loop {
                left &= owned.fetch_or(left, Ordering::SeqCst);
                if left == 0 {
                    return;
                }
                pause(&mut wait);
            }
        });
    }

    /// Releases all these blocks. For the owner of each.
    pub fn release_all(&self, blocks: Range<usize>) {
        self.each_group(blocks, |owned, mine| _ = owned.fetch_and(!mine, Ordering::SeqCst));
    }

    /// Runs `f` as owner of all these blocks of one group, if nobody else owns one of them. For the
    /// owner of `mine`, which is one of them.
    pub fn with_others<R>(&self, mine: usize, blocks: Range<usize>, f: impl FnOnce() -> R) -> Option<R> {
        let owned = &self.owned[mine / GROUP];
        let wanted = bits(blocks.start, blocks.end) & !bit(mine);
        let new = wanted & !owned.fetch_or(wanted, Ordering::SeqCst);
        let result = (new == wanted).then(f);
        owned.fetch_and(!new, Ordering::SeqCst);
        result
    }

    fn each_group(&self, blocks: Range<usize>, mut f: impl FnMut(&AtomicU64, u64)) {
        for (i, owned) in self.owned.iter().enumerate().skip(blocks.start / GROUP) {
            let (low, high) = (blocks.start.max(i * GROUP), blocks.end.min((i + 1) * GROUP));
            if low >= high {
                return;
            }
            f(owned, bits(low, high));
        }
    }
}
