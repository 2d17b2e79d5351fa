//! The table of blocks: for each 64 KiB block a word, an owner's bit and a mask of excluded pages;
//! for each page a byte with its home.
//!
//! The table has two levels: a static array by GiB, and a leaf for each GiB in which something was
//! ever armed. Leaves are never freed. So a handler finds a block with two loads and without locks.
//! A leaf also reserves a GiB of address space, the *shadow*, for armed pages. The shadow is
//! congruent modulo 1 GiB, so the kernel moves whole page tables, and a whole GiB in one step.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};

use homenode_lockless::Claims;
use homenode_lockless::claims::GROUP;
use homenode_sys::memory::{Protection, map, map_aligned};
use homenode_sys::{HUGE, PAGE, Result, Span, call};

use super::mechanism::Manner;

/// Bytes of a block: the memory that one fault brings over.
pub const BLOCK: usize = 64 << 10;
/// Bytes that a leaf covers.
pub const LEAF: usize = 1 << 30;
/// Addresses beyond 2^48 (five-level page tables, asked for by hint alone) are never armed.
const LEAVES: usize = (1 << 48) / LEAF;

/// Pages of a block: bit n is page n.
pub type PageMask = u16;

/// The state of a block. The thread that has set `BUSY` owns the block; nobody else changes
/// anything but `EXCLUDED`. Both are stored apart from the rest. So one store claims many blocks,
/// and their owner need not use atomic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    const EXCLUDED: u32 = 16;
    const MARKED: u32 = 32;
    const BUSY: u64 = 1 << 48;
    const EVER: u64 = 1 << 50;
    const ALONE: u64 = 1 << 51;
    const STAYS: u64 = 1 << 52;
    const STALE: u32 = 53;
    /// The bits that only the owner changes.
    const OWNED: u64 = !(Self::BUSY | (PageMask::MAX as u64) << Self::EXCLUDED);
    const ANY_STALE: u64 = ((Self::MOST_STALE << 1) as u64 - 1) << Self::STALE;
    /// All pages of a block.
    const MOST_STALE: u32 = (BLOCK / PAGE) as u32;

    /// The word of a block without armed pages.
    pub const NOTHING: Self = Self(0);

    /// Armed pages: their next toucher gets them.
    pub const fn armed(self) -> PageMask {
        self.0 as PageMask
    }
    /// Pages that must never be armed.
    pub const fn excluded(self) -> PageMask {
        (self.0 >> Self::EXCLUDED) as PageMask
    }
    /// With userfaultfd: registered pages. With protected blocks: pages that the program only
    /// reads.
    pub const fn marked(self) -> PageMask {
        (self.0 >> Self::MARKED) as PageMask
    }
    /// Whether somebody owns the block.
    pub const fn busy(self) -> bool {
        self.0 & Self::BUSY != 0
    }
    /// Whether some of the block was ever armed.
    pub const fn ever(self) -> bool {
        self.0 & Self::EVER != 0
    }
    /// Whether a touch brings its page alone, not the rest of the block.
    pub const fn alone(self) -> bool {
        self.0 & Self::ALONE != 0
    }
    /// Whether the pages stay on their node, and touches of them are reported.
    pub const fn stays(self) -> bool {
        self.0 & Self::STAYS != 0
    }
    /// With userfaultfd: number of copied pages that the shadow still has.
    pub const fn stale(self) -> u32 {
        ((self.0 & Self::ANY_STALE) >> Self::STALE) as u32
    }
    /// The word with this number of copied pages in the shadow.
    pub const fn with_stale(self, pages: u32) -> Self {
        Self(self.0 & !Self::ANY_STALE | (pages as u64) << Self::STALE)
    }
    /// The word with this manner.
    pub const fn with_manner(self, manner: Manner) -> Self {
        let rest = self.0 & !(Self::ALONE | Self::STAYS);
        Self(match manner {
            Manner::Around => rest,
            Manner::Alone => rest | Self::ALONE,
            Manner::Stays => rest | Self::ALONE | Self::STAYS,
        })
    }
    /// The word with these armed pages.
    pub const fn with_armed(self, pages: PageMask) -> Self {
        Self(self.0 & !(PageMask::MAX as u64) | pages as u64 | Self::EVER)
    }
    /// The word with these marked pages.
    pub const fn with_marked(self, pages: PageMask) -> Self {
        Self(self.0 & !((PageMask::MAX as u64) << Self::MARKED) | (pages as u64) << Self::MARKED)
    }
}

/// Blocks of a leaf.
pub const BLOCKS: usize = LEAF / BLOCK;
/// Units of 2 MiB of a leaf.
const UNITS: usize = LEAF / HUGE;

/// The data of a GiB.
pub struct Leaf {
    /// Who owns a block; its state is `Word::OWNED` of its word.
    claims: Claims<{ BLOCKS / GROUP }, BLOCKS>,
    excluded: [AtomicU16; BLOCKS],
    /// One bit a unit: it was a huge page before some of it was armed.
    split: [AtomicU64; UNITS / GROUP],
    /// 0: not known. Otherwise the node's number plus one.
    homes: [AtomicU8; LEAF / PAGE],
    /// The start of the shadow.
    shadow: AtomicU64,
}

static TABLE: [AtomicPtr<Leaf>; LEAVES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; LEAVES];

/// The leaf of an address, if anything there was ever armed or excluded.
#[inline]
fn leaf(address: usize) -> Option<&'static Leaf> {
    let p = TABLE.get(address / LEAF)?.load(Ordering::Acquire);
    // SAFETY: null, or a leaf that is never freed; all of it is atomics.
    unsafe { p.as_ref() }
}

/// The leaf of an address, made if there is none.
///
/// # Errors
/// No memory, no address space for the shadow.
fn make_leaf(address: usize) -> Result<&'static Leaf> {
    if let Some(leaf) = leaf(address) {
        return Ok(leaf);
    }
    let Some(slot) = TABLE.get(address / LEAF) else {
        return Err(homenode_sys::Error {
            call: "arming beyond 2^48",
            on: Span::new(address, PAGE),
            errno: homenode_sys::Errno(libc::E2BIG),
        });
    };
    let memory = map(size_of::<Leaf>().next_multiple_of(PAGE), Protection::ReadWrite)?;
    let shadow = match map_aligned(LEAF, LEAF, Protection::None) {
        Ok(shadow) => shadow,
        Err(e) => {
            // SAFETY: just made, known to nobody.
            let _ = unsafe { homenode_sys::memory::unmap(memory) };
            return Err(e);
        }
    };
    let new = memory.start as *mut Leaf;
    // SAFETY: zeroed memory of the leaf's size is a leaf.
    unsafe { (*new).shadow.store(shadow.start as u64, Ordering::Relaxed) };
    let first = slot.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    if let Err(other) = first {
        // SAFETY: lost a race: ours was never seen; the other one is never freed.
        unsafe {
            let _ = homenode_sys::memory::unmap(memory);
            let _ = homenode_sys::memory::unmap(shadow);
            return Ok(&*other);
        }
    }
    note_own(memory);
    note_own(shadow);
    if let Some(place) = MADE.get(MADE_COUNT.fetch_add(1, Ordering::AcqRel)) {
        place.store(address / LEAF, Ordering::Release);
    }
    // SAFETY: now in the table, never freed.
    Ok(unsafe { &*new })
}

/// Numbers of the GiBs that have a leaf, in the order of their making; 0: not written yet.
static MADE: [AtomicUsize; MOST_OWN / 2] = [const { AtomicUsize::new(0) }; MOST_OWN / 2];
static MADE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The mover's own memory, never freed, in the order of its making: first address and length.
static OWN: [[AtomicUsize; 2]; MOST_OWN] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MOST_OWN];
static OWNED: AtomicUsize = AtomicUsize::new(0);
/// Two for each GiB of the program's memory, one for each of its threads, and some spare.
const MOST_OWN: usize = 4096 + 1024;

/// Notes memory of the mover's own.
pub fn note_own(span: Span) {
    if let Some([start, bytes]) = OWN.get(OWNED.fetch_add(1, Ordering::AcqRel)) {
        start.store(span.start, Ordering::Relaxed);
        bytes.store(span.len(), Ordering::Release);
    }
}

/// Whether some of `span` is the mover's own memory. If the program has given memory up past the C
/// library, the mover's may lie where an object still seems to be. A thread that armed it would
/// wait for itself.
pub fn is_own(span: Span) -> bool {
    let all = OWN.iter().take(OWNED.load(Ordering::Acquire));
    all.map(|[start, bytes]| (start, bytes.load(Ordering::Acquire)))
        .any(|(start, bytes)| Span::new(start.load(Ordering::Relaxed), bytes).overlaps(span))
}

/// The shadow of an address in a GiB that has a leaf; otherwise the address itself.
#[inline]
pub fn shadow(address: usize) -> usize {
    leaf(address).map_or(address, |l| l.shadow.load(Ordering::Relaxed) as usize + address % LEAF)
}

/// One block of 64 KiB.
#[derive(Clone, Copy)]
pub struct Block {
    leaf: &'static Leaf,
    start: usize,
}

impl Block {
    /// The block of an address, if anything around there was ever armed or excluded.
    #[inline]
    pub fn of(address: usize) -> Option<Self> {
        leaf(address).map(|l| Self::within(l, address))
    }

    /// The block of an address.
    ///
    /// # Errors
    /// No memory for the table.
    pub fn make(address: usize) -> Result<Self> {
        make_leaf(address).map(|l| Self::within(l, address))
    }

    #[inline]
    const fn within(leaf: &'static Leaf, address: usize) -> Self {
        Self { leaf, start: address & !(BLOCK - 1) }
    }

    /// The block's number in its leaf.
    #[inline]
    const fn number(self) -> usize {
        self.start % LEAF / BLOCK
    }

    /// The blocks that `span` touches, ascending; only those that [`Block::of`] finds.
    pub fn all(span: Span) -> impl Iterator<Item = Self> {
        let mut at = span.start & !(BLOCK - 1);
        let mut here = leaf(at);
        std::iter::from_fn(move || {
            while at < span.end {
                if let Some(leaf) = here {
                    let block = Self::within(leaf, at);
                    at = at.saturating_add(BLOCK);
                    if at.is_multiple_of(LEAF) {
                        here = self::leaf(at);
                    }
                    return Some(block);
                }
                // This GiB has no leaf.
                at = (at / LEAF + 1).saturating_mul(LEAF);
                here = self::leaf(at);
            }
            None
        })
    }

    /// This block and the next ones that `span` touches, within one leaf, ascending. The loop is
    /// tighter than [`Block::all`]'s.
    #[inline]
    pub fn and_next(self, span: Span) -> impl Iterator<Item = Self> {
        let count = span.end.div_ceil(BLOCK).saturating_sub(self.start / BLOCK);
        (0..count).map(move |n| Self { leaf: self.leaf, start: self.start + n * BLOCK })
    }

    /// The block's addresses.
    #[inline]
    pub const fn span(self) -> Span {
        Span { start: self.start, end: self.start + BLOCK }
    }

    /// The block's pages that lie wholly in `span`.
    #[inline]
    pub fn pages_in(self, span: Span) -> PageMask {
        self.bits(span.inner(PAGE))
    }

    /// The block's pages that `span` touches.
    #[inline]
    pub fn pages_touched(self, span: Span) -> PageMask {
        self.bits(span.outer(PAGE))
    }

    #[inline]
    fn bits(self, pages: Span) -> PageMask {
        if pages.start <= self.start && self.span().end <= pages.end {
            return PageMask::MAX;
        }
        let cut = pages.cut(self.span());
        if cut.is_empty() {
            return 0;
        }
        let (first, count) = ((cut.start - self.start) / PAGE, cut.pages());
        (((1_u32 << count) - 1) << first) as PageMask
    }

    /// The stretches of the block whose pages are in `pages`, ascending.
    pub fn runs(self, pages: PageMask) -> impl Iterator<Item = Span> {
        let mut left = pages;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            left &= !((((1_u32 << count) - 1) << first) as PageMask);
            Some(Span::new(self.start + first as usize * PAGE, count as usize * PAGE))
        })
    }

    /// The block's state now.
    #[inline]
    pub fn word(self) -> Word {
        // In this order: a former owner wrote the rest before it released the block, and a later
        // owner sees what the caller did before.
        let busy = if self.leaf.claims.is_owned(self.number()) { Word::BUSY } else { 0 };
        Word(self.owned().0 | u64::from(self.excluded()) << Word::EXCLUDED | busy)
    }

    /// As [`Block::word`], without the bits that others than the owner change.
    #[inline]
    pub fn owned(self) -> Word {
        Word(self.leaf.claims.state(self.number()))
    }

    /// Pages that must never be armed.
    #[inline]
    pub fn excluded(self) -> PageMask {
        self.leaf.excluded[self.number()].load(Ordering::SeqCst)
    }

    /// Claims the block, unless somebody owns it. The caller has signals held back, so that no
    /// handler of its own thread waits for the block.
    #[inline]
    pub fn try_claim(self) -> Option<Word> {
        self.leaf.claims.try_claim(self.number()).then(|| self.word())
    }

    /// Claims the block. Waits while somebody owns it.
    pub fn claim(self) -> Word {
        self.leaf.claims.claim(self.number(), call::Wait::a_moment);
        self.word()
    }

    /// Releases the block with this state. For its owner only.
    #[inline]
    pub fn release(self, word: Word) {
        self.leaf.claims.release(self.number(), word.0 & Word::OWNED);
    }

    /// Sets the block's state. For its owner only, who keeps the block. Excluded pages may be added
    /// meanwhile by anybody.
    #[inline]
    pub fn keep(self, word: Word) {
        self.leaf.claims.keep(self.number(), word.0 & Word::OWNED);
    }

    /// Excludes these pages: they must never be armed again.
    pub fn exclude(self, pages: PageMask) {
        self.leaf.excluded[self.number()].fetch_or(pages, Ordering::SeqCst);
    }

    /// Forgets that pages were excluded: the memory has a new owner.
    pub fn include(self, pages: PageMask) {
        self.leaf.excluded[self.number()].fetch_and(!pages, Ordering::SeqCst);
    }
}

impl Block {
    /// Runs `f` with the aligned `bytes` around the block, 2 MiB or less, as owner of all their
    /// blocks, if nobody else owns another of them and none of the others has armed pages.
    /// Afterwards the others have no stale pages. Returns how many they had. For the owner of this
    /// block, which may have armed pages.
    pub fn with_idle(self, bytes: usize, f: impl FnOnce(Span)) -> Option<u32> {
        let all = Span::new(self.start & !(bytes - 1), bytes);
        let first = Self { start: all.start, ..self };
        let others = || first.and_next(all).filter(|b| b.start != self.start);
        let idle = || others().all(|b| b.owned().armed() == 0);
        if !idle() {
            return None;
        }
        let numbers = first.number()..first.number() + bytes / BLOCK;
        let as_owner = || {
            idle().then(|| {
                f(all);
                others().map(Self::forget_stale).sum()
            })
        };
        self.leaf.claims.with_others(self.number(), numbers, as_owner).flatten()
    }

    /// Notes that the block's shadow has no copied pages any more. Returns how many it had. For its
    /// owner.
    fn forget_stale(self) -> u32 {
        let word = self.owned();
        if word.stale() > 0 {
            self.keep(word.with_stale(0));
        }
        word.stale()
    }

    /// Whether another block of the aligned `bytes` around has armed pages.
    pub fn has_armed_neighbours(self, bytes: usize) -> bool {
        let all = Span::new(self.start & !(bytes - 1), bytes);
        let mut blocks = Self { start: all.start, ..self }.and_next(all);
        blocks.any(|b| b.start != self.start && b.owned().armed() != 0)
    }
}

const _: () = assert!(GROUP.is_multiple_of(HUGE / BLOCK));

/// Claims all blocks that `span` touches, within one existing leaf. Waits for blocks that others
/// own.
pub fn claim_all(span: Span) {
    if let Some(leaf) = leaf(span.start) {
        leaf.claims.claim_all(numbers(span), call::Wait::a_moment);
    }
}

/// Releases all blocks that `span` touches, within one leaf. For the owner of each.
pub fn release_all(span: Span) {
    if let Some(leaf) = leaf(span.start) {
        leaf.claims.release_all(numbers(span));
    }
}

/// The numbers of the blocks that `span` touches, within one leaf.
fn numbers(span: Span) -> Range<usize> {
    let first = span.start % LEAF;
    first / BLOCK..(first + span.len()).div_ceil(BLOCK).min(BLOCKS)
}

/// Units that were huge pages before arming split them.
static SPLIT: AtomicUsize = AtomicUsize::new(0);

/// Whether arming has split a huge page that is not restored.
#[inline]
pub fn any_split() -> bool {
    SPLIT.load(Ordering::Relaxed) != 0
}

/// Notes that a huge page of 2 MiB, in a GiB with a leaf, is about to be split.
pub fn note_split(unit: Span) {
    let Some(leaf) = leaf(unit.start) else { return };
    let number = unit.start % LEAF / HUGE;
    let bit = 1 << (number % GROUP);
    if leaf.split[number / GROUP].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        SPLIT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether the unit around an address was a huge page before arming split it.
pub fn is_split(address: usize) -> bool {
    let number = address % LEAF / HUGE;
    any_split()
        && leaf(address)
            .is_some_and(|l| l.split[number / GROUP].load(Ordering::Relaxed) >> (number % GROUP) & 1 == 1)
}

/// Forgets the split units that `span` touches: they are no huge pages any more, or restored.
pub fn forget_split(span: Span) {
    if !any_split() {
        return;
    }
    for unit in span.outer(HUGE).pieces(HUGE) {
        let Some(leaf) = leaf(unit.start) else { continue };
        let number = unit.start % LEAF / HUGE;
        let bit = 1 << (number % GROUP);
        if leaf.split[number / GROUP].fetch_and(!bit, Ordering::Relaxed) & bit != 0 {
            SPLIT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Units of 2 MiB that were huge pages before arming split them.
pub fn split_units() -> impl Iterator<Item = Span> {
    let made = MADE.iter().take(MADE_COUNT.load(Ordering::Acquire)).map(|n| n.load(Ordering::Acquire) * LEAF);
    made.filter_map(|start| Some((start, leaf(start)?))).flat_map(|(start, leaf)| {
        leaf.split.iter().enumerate().flat_map(move |(i, word)| {
            let word = word.load(Ordering::Relaxed);
            (0..GROUP)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| Span::new(start + (i * GROUP + bit) * HUGE, HUGE))
        })
    })
}

/// The noted home of the page at `address`.
pub fn home(address: usize) -> Option<u8> {
    leaf(address)?.homes[address % LEAF / PAGE].load(Ordering::Relaxed).checked_sub(1)
}

/// Notes the home of the pages of `span`, all of one leaf.
pub fn set_homes(span: Span, node: u8) {
    let Some(leaf) = leaf(span.start) else { return };
    let first = span.start % LEAF / PAGE;
    for home in leaf.homes.iter().skip(first).take(span.pages()) {
        home.store(node.saturating_add(1), Ordering::Relaxed);
    }
}

/// Forgets the homes of pages that do not exist any more.
pub fn forget_homes(span: Span) {
    for piece in span.pieces(LEAF) {
        let Some(leaf) = leaf(piece.start) else { continue };
        let first = piece.start % LEAF / PAGE;
        leaf.homes.iter().skip(first).take(piece.pages()).for_each(|h| h.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_masks_agree() {
        let start = 7 * LEAF;
        let block = Block::make(start).unwrap();
        let runs: Vec<Span> = block.runs(0b1000_0000_0000_0110).collect();
        let page = |n: usize, count: usize| Span::new(start + n * PAGE, count * PAGE);
        assert_eq!(runs, [page(1, 2), page(15, 1)]);
        assert_eq!(block.runs(PageMask::MAX).collect::<Vec<_>>(), [page(0, 16)]);
        assert_eq!(block.pages_in(Span::new(start + 1, 2 * PAGE)), 0b10);
        assert_eq!(block.pages_touched(Span::new(start + 1, 2 * PAGE)), 0b111);
        assert_eq!(block.pages_in(Span::new(0, PAGE)), 0);
    }

    #[test]
    fn only_one_owns_a_block_and_exclusion_survives_release() {
        let block = Block::make(9 * LEAF + 3 * BLOCK).unwrap();
        let word = block.try_claim().unwrap();
        assert!(block.try_claim().is_none() && block.word().busy());
        block.exclude(0b100);
        block.release(word.with_armed(0b11).with_marked(0b111));
        let word = block.word();
        assert_eq!((word.armed(), word.marked(), word.excluded()), (0b11, 0b111, 0b100));
        assert!(word.ever() && !word.busy());
        let word = word.with_stale(16);
        assert_eq!((word.stale(), word.with_stale(1).stale(), word.with_stale(0)), (16, 1, block.word()));
    }

    #[test]
    fn many_are_claimed_at_once() {
        let start = 16 * LEAF;
        let block = |n: usize| Block::make(start + n * BLOCK).unwrap();
        block(0);
        for (from, to) in [(3, 4), (60, 70), (0, 64), (64, 128), (1, 300), (BLOCKS - 65, BLOCKS)] {
            // Parts of the first and the last block are enough.
            let span = Span { start: start + from * BLOCK + 1, end: start + to * BLOCK - 1 };
            claim_all(span);
            assert!((from..to).all(|n| block(n).word().busy() && block(n).try_claim().is_none()));
            assert!(from == 0 || !block(from - 1).word().busy());
            assert!(to == BLOCKS || !block(to).word().busy());
            release_all(span);
            assert!((0..BLOCKS).all(|n| !block(n).word().busy()));
        }
    }

    #[test]
    fn the_blocks_around_are_had_when_none_of_them_is_armed_or_owned() {
        for (leaf, bytes) in [(20, HUGE), (24, 4 * BLOCK)] {
            let start = leaf * LEAF + 3 * HUGE;
            let count = bytes / BLOCK;
            let block = |n: usize| Block::make(start + n * BLOCK).unwrap();
            let mine = block(2);
            let had = || {
                let stale = mine.with_idle(bytes, |all| {
                    assert_eq!(all, Span::new(start, bytes));
                    assert!(Block::all(all).all(|b| b.word().busy()));
                });
                let busy = Block::all(Span::new(start, HUGE)).filter(|b| b.word().busy()).count();
                assert_eq!(
                    mine.has_armed_neighbours(bytes),
                    (0..count).any(|n| n != 2 && block(n).word().armed() != 0)
                );
                (stale, busy)
            };
            let word = mine.claim().with_armed(0b1);
            mine.keep(word);
            assert_eq!(had(), (Some(0), 1));
            for other in [0, 1, 3, count - 1].map(block) {
                let word = other.claim();
                assert_eq!(had(), (None, 2));
                other.release(word.with_armed(0b100));
                assert_eq!(had(), (None, 1));
                other.release(other.claim().with_armed(0).with_stale(16));
                assert_eq!(had(), (Some(16), 1));
                assert_eq!(other.word().stale(), 0);
            }
            // What comes next is another matter.
            let next = block(count);
            next.release(next.claim().with_armed(1));
            assert_eq!(had(), (Some(0), 1));
            mine.release(word);
        }
    }

    #[test]
    fn who_claims_many_waits_for_the_owner_of_one() {
        let span = Span::new(18 * LEAF, 200 * BLOCK);
        let block = |n: usize| Block::make(span.start + n * BLOCK).unwrap();
        let (one, owned) = (block(77), AtomicU64::new(0));
        let word = one.claim();
        std::thread::scope(|s| {
            s.spawn(|| {
                claim_all(span);
                owned.store(1 + u64::from(one.word().armed()), Ordering::SeqCst);
            });
            while !block(76).word().busy() {
                std::thread::yield_now();
            }
            assert_eq!(owned.load(Ordering::SeqCst), 0);
            one.release(word.with_armed(0b11));
        });
        assert_eq!(owned.load(Ordering::SeqCst), 1 + 0b11);
    }

    #[test]
    fn what_was_never_armed_has_no_block() {
        assert!(Block::of(11 * LEAF).is_none() && Block::of(usize::MAX).is_none());
        Block::make(12 * LEAF).unwrap();
        assert_eq!(Block::all(Span { start: 11 * LEAF, end: 12 * LEAF + 2 * BLOCK }).count(), 2);
        assert!(Block::make(1 << 50).is_err());
    }

    #[test]
    fn split_units_are_known_until_they_are_forgotten() {
        let start = 22 * LEAF;
        let unit = |n: usize| Span::new(start + n * HUGE, HUGE);
        let known = || split_units().filter(|u| (start..start + LEAF).contains(&u.start)).collect::<Vec<_>>();
        note_split(unit(3));
        assert!(known().is_empty(), "nothing of that GiB was ever armed");
        Block::make(start).unwrap();
        [0, 63, 64, 511, 64].map(unit).into_iter().for_each(note_split);
        assert_eq!(known(), [0, 63, 64, 511].map(unit));
        assert!(any_split() && is_split(start + HUGE - 1) && !is_split(start + HUGE));
        forget_split(Span::new(start + 64 * HUGE - 1, 2));
        assert_eq!(known(), [0, 511].map(unit));
        forget_split(Span::new(start, LEAF));
        assert!(known().is_empty());
    }

    #[test]
    fn homes_are_kept_by_page() {
        Block::make(14 * LEAF).unwrap();
        set_homes(Span::new(14 * LEAF, 2 * PAGE), 1);
        let at = |n: usize| home(14 * LEAF + n * PAGE);
        assert_eq!((at(0), at(1), at(2)), (Some(1), Some(1), None));
        forget_homes(Span::new(14 * LEAF, PAGE));
        assert_eq!((at(0), at(1)), (None, Some(1)));
    }
}
