//! One set-associative cache: tags, no data.
//!
//! # Approach
//! All ways lie in one `Vec<u32>`, set after set, each set ordered from the most to the least
//! recently used, empty ways last. A word is a tag (the line number without its set) and three
//! state bits: a set of 16 ways is one cache line of the host. A hit on the most recently used way,
//! by far the most frequent one, is one load and one compare. For the usual numbers of ways the
//! search and the reordering are loops of constant length without branches, which the compiler
//! turns into vector code.
//!
//! # Properties
//! * `a_set_is_an_lru_list`: contents and order equal a list per set (see the tests below).

use alloc::vec;
use alloc::vec::Vec;

use crate::Line;

/// A way of a set: a tag and its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct CacheWay(u32);

impl CacheWay {
    const VALID: u32 = 1;
    /// Differs from memory.
    pub const DIRTY: u32 = 2;
    /// Hint: no other agent knows the line and the directory knows that it has been written: a
    /// store needs nobody.
    pub const EXCLUSIVE: u32 = 4;
    /// Bits of state.
    const STATE: u32 = 3;

    #[inline]
    const fn is(self, key: Self) -> bool {
        self.0 & !(Self::DIRTY | Self::EXCLUSIVE) == key.0
    }
    /// Whether it differs from memory.
    #[inline]
    pub const fn dirty(self) -> bool {
        self.0 & Self::DIRTY != 0
    }
    /// Whether a store needs nobody's permission, see [`CacheWay::EXCLUSIVE`].
    #[inline]
    pub const fn exclusive(self) -> bool {
        self.0 & Self::EXCLUSIVE != 0
    }
    /// Whether a load, or a store, needs nothing else; a store leaves its mark.
    #[inline]
    pub(crate) const fn serves(&mut self, write: bool) -> bool {
        if write && self.exclusive() {
            self.set(Self::DIRTY);
        }
        !write || self.exclusive()
    }
    /// Sets state bits ([`CacheWay::DIRTY`], [`CacheWay::EXCLUSIVE`]).
    #[inline]
    pub const fn set(&mut self, bits: u32) {
        self.0 |= bits;
    }
    /// Clears state bits.
    #[inline]
    pub const fn clear(&mut self, bits: u32) {
        self.0 &= !bits;
    }
}

/// A line that is or was in a cache, with its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldLine {
    /// Which.
    pub line: Line,
    /// Its state; the tag in it means nothing elsewhere.
    pub way: CacheWay,
}

/// What a look-up with allocation found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookUp {
    /// The line was there.
    Hit,
    /// It was not and is now; this fell out, if the set was full.
    Miss(Option<HeldLine>),
}

/// A cache.
#[derive(Clone, Debug)]
pub struct Tags {
    words: Vec<CacheWay>,
    ways: usize,
    set_bits: u32,
}

impl Tags {
    /// An empty cache of `sets` (a power of two) × `ways` lines.
    ///
    /// # Panics
    /// When `sets` is not a power of two or `ways` is 0; [`crate::CacheShape`] guarantees both.
    pub fn new(sets: u64, ways: u32) -> Self {
        assert!(sets.is_power_of_two() && ways > 0);
        let ways = ways as usize;
        Self { words: vec![CacheWay(0); sets as usize * ways], ways, set_bits: sets.ilog2() }
    }

    /// Lines from this one on are taken for others: they do not fit a tag. At least 2^29 lines, 32
    /// GiB.
    pub const fn end(&self) -> Line {
        Line(1 << (u32::BITS - CacheWay::STATE + self.set_bits))
    }

    #[inline]
    const fn key(&self, line: Line) -> CacheWay {
        CacheWay(((line.0 >> self.set_bits) as u32) << CacheWay::STATE | CacheWay::VALID)
    }
    #[inline]
    const fn set_of(&self, line: Line) -> usize {
        (line.0 & ((1 << self.set_bits) - 1)) as usize
    }
    #[inline]
    fn ways_of(&self, line: Line) -> &[CacheWay] {
        let start = self.set_of(line) * self.ways;
        &self.words[start..start + self.ways]
    }
    #[inline]
    fn ways_of_mut(&mut self, line: Line) -> &mut [CacheWay] {
        let start = self.set_of(line) * self.ways;
        &mut self.words[start..start + self.ways]
    }
    #[inline]
    const fn held(&self, way: CacheWay, set: usize) -> HeldLine {
        HeldLine { line: Line(((way.0 >> CacheWay::STATE) as u64) << self.set_bits | set as u64), way }
    }

    /// The line's way if it is the most recently used one of its set.
    #[inline]
    pub fn front(&mut self, line: Line) -> Option<&mut CacheWay> {
        let key = self.key(line);
        let start = self.set_of(line) * self.ways;
        let way = &mut self.words[start];
        way.is(key).then_some(way)
    }

    /// The line's way, if present; it is the most recently used of its set afterwards.
    #[inline]
    pub fn touch(&mut self, line: Line) -> Option<&mut CacheWay> {
        let key = self.key(line);
        let set = self.ways_of_mut(line);
        let at = find(set, key);
        let way = *set.get(at)?;
        for i in (1..=at).rev() {
            set[i] = set[i - 1];
        }
        set[0] = way;
        set.first_mut()
    }

    /// Looks `line` up; it is the most recently used of its set afterwards, clean and shared if it
    /// was not there.
    #[inline]
    pub fn touch_or_insert(&mut self, line: Line) -> LookUp {
        match self.touch(line) {
            Some(_) => LookUp::Hit,
            None => LookUp::Miss(self.insert(line)),
        }
    }

    /// Puts a line that is not there in front of its set, clean and shared; what fell out, if the
    /// set was full.
    #[inline]
    pub fn insert(&mut self, line: Line) -> Option<HeldLine> {
        let key = self.key(line);
        match push_front(self.ways_of_mut(line), key) {
            CacheWay(0) => None,
            way => Some(self.held(way, self.set_of(line))),
        }
    }

    /// Makes a line the next of its set to fall out, the others in their order; for a cache whose
    /// order somebody else keeps. A set that is not full keeps it so until it is.
    #[inline]
    pub fn make_last(&mut self, line: Line) {
        let key = self.key(line);
        let set = self.ways_of_mut(line);
        let at = position(set, key);
        let Some(way) = set.get(at).copied() else { return };
        let mut end = set.len();
        while set[end - 1] == CacheWay(0) {
            end -= 1;
        }
        set.copy_within(at + 1..end, at);
        set[end - 1] = way;
    }

    /// The line's way, if present, without a change of order.
    #[inline]
    pub fn peek(&self, line: Line) -> Option<CacheWay> {
        let set = self.ways_of(line);
        set.get(position(set, self.key(line))).copied()
    }

    /// As [`Tags::peek`], to change its state.
    #[inline]
    pub fn peek_mut(&mut self, line: Line) -> Option<&mut CacheWay> {
        let key = self.key(line);
        let set = self.ways_of_mut(line);
        let at = position(set, key);
        set.get_mut(at)
    }

    /// Takes the line out, if present.
    #[inline]
    pub fn remove(&mut self, line: Line) -> Option<CacheWay> {
        let key = self.key(line);
        let set = self.ways_of_mut(line);
        let at = position(set, key);
        let way = *set.get(at)?;
        set.copy_within(at + 1.., at);
        set[set.len() - 1] = CacheWay(0);
        Some(way)
    }

    /// All lines present, set by set, most recently used first.
    pub fn iter(&self) -> impl Iterator<Item = HeldLine> + '_ {
        let sets = self.words.chunks_exact(self.ways).enumerate();
        sets.flat_map(move |(set, ways)| ways.iter().filter(|w| w.0 != 0).map(move |w| self.held(*w, set)))
    }
}

/// Runs `$fixed::<W>` for the usual numbers of ways and `$any` for others.
macro_rules! by_ways {
    ($set:expr, $fixed:ident($($arg:expr),*), $any:expr) => {
        by_ways!(@ $set, $fixed($($arg),*), $any, 1 2 4 8 10 11 12 15 16 20)
    };
    (@ $set:expr, $fixed:ident $args:tt, $any:expr, $($w:literal)*) => {
        match $set.len() {
            $($w => match $set.try_into() {
                Ok(set) => by_ways!(call $fixed, $w, set, $args),
                Err(_) => $any,
            },)*
            _ => $any,
        }
    };
    (call $fixed:ident, $w:literal, $set:ident, ($($arg:expr),*)) => { $fixed::<$w>($set, $($arg),*) };
}

/// Index of `key`, or something not below the length.
fn position(set: &[CacheWay], key: CacheWay) -> usize {
    find(set, key)
}

/// As [`position`], in place.
#[inline(always)]
fn find(set: &[CacheWay], key: CacheWay) -> usize {
    #[inline(always)]
    fn fixed<const W: usize>(set: &[CacheWay; W], key: CacheWay) -> usize {
        // At most one way matches, so that "or" picks its number: vector code without a minimum or
        // a move of masks.
        let mut number = 0;
        for (i, way) in set.iter().enumerate() {
            number |= if way.is(key) { i as u32 + 1 } else { 0 };
        }
        (number as usize).wrapping_sub(1)
    }
    by_ways!(set, fixed(key), set.iter().position(|w| w.is(key)).unwrap_or(set.len()))
}

/// Puts `key` in front, where it is not yet. What fell out is returned: zero if the last way was
/// empty.
#[inline(always)]
fn push_front(set: &mut [CacheWay], key: CacheWay) -> CacheWay {
    #[inline(always)]
    fn fixed<const W: usize>(set: &mut [CacheWay; W], key: CacheWay) -> CacheWay {
        let last = set[W - 1];
        set.copy_within(..W - 1, 1);
        set[0] = key;
        last
    }
    fn any(set: &mut [CacheWay], key: CacheWay) -> CacheWay {
        set.iter_mut().fold(key, |carry, way| core::mem::replace(way, carry))
    }
    by_ways!(set, fixed(key), any(set, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_equal_index_evict_each_other() {
        let mut c = Tags::new(4, 2);
        for line in [0, 4, 1, 8] {
            c.touch_or_insert(Line(line));
        }
        assert_eq!(c.peek(Line(0)), None);
        assert_eq!(c.iter().map(|w| w.line.0).collect::<Vec<_>>(), [8, 4, 1]);
    }

    #[test]
    fn state_stays_with_its_line() {
        let mut c = Tags::new(1, 3);
        for line in [1, 2, 3] {
            c.touch_or_insert(Line(line));
        }
        c.peek_mut(Line(1)).unwrap().set(CacheWay::DIRTY);
        assert_eq!(c.touch_or_insert(Line(1)), LookUp::Hit);
        assert!(c.front(Line(1)).unwrap().dirty());
        let LookUp::Miss(Some(victim)) = c.touch_or_insert(Line(4)) else { panic!("the set was full") };
        assert_eq!((victim.line, victim.way.dirty()), (Line(2), false));
        assert!(c.remove(Line(1)).unwrap().dirty());
        assert_eq!(c.touch_or_insert(Line(5)), LookUp::Miss(None));
    }

    #[test]
    fn the_order_can_be_kept_elsewhere() {
        let mut c = Tags::new(1, 3);
        c.touch_or_insert(Line(1));
        c.make_last(Line(1));
        c.touch_or_insert(Line(2));
        c.make_last(Line(2));
        assert_eq!(c.touch_or_insert(Line(3)), LookUp::Miss(None), "the set was not full");
        c.make_last(Line(3));
        c.make_last(Line(7));
        let LookUp::Miss(Some(victim)) = c.touch_or_insert(Line(4)) else { panic!("the set was full") };
        assert_eq!(victim.line, Line(3));
        assert_eq!(c.iter().count(), 3);
        c.remove(Line(4));
        c.make_last(Line(1));
        assert_eq!(c.touch_or_insert(Line(5)), LookUp::Miss(None), "there was room");
        let LookUp::Miss(Some(victim)) = c.touch_or_insert(Line(6)) else { panic!("the set was full") };
        assert_eq!(victim.line, Line(1), "it is the next all the same");
    }

    proptest! {
        #[test]
        fn a_set_is_an_lru_list(
            sets in (0u32..4).prop_map(|s| 1u64 << s),
            ways in 1u32..=20,
            ops in prop::collection::vec((0u64..100, 0u8..8), 0..400),
        ) {
            let mut cache = Tags::new(sets, ways);
            let mut lists: Vec<Vec<u64>> = vec![Vec::new(); sets as usize];
            for (line, op) in ops {
                let list = &mut lists[(line % sets) as usize];
                let at = list.iter().position(|l| *l == line);
                if op == 0 {
                    prop_assert_eq!(cache.remove(Line(line)).is_some(), at.is_some());
                    if let Some(at) = at { list.remove(at); }
                } else if let Some(at) = at {
                    prop_assert_eq!(cache.touch_or_insert(Line(line)), LookUp::Hit);
                    list.remove(at);
                    list.insert(0, line);
                } else {
                    let out = if list.len() == ways as usize { list.pop() } else { None };
                    let LookUp::Miss(victim) = cache.touch_or_insert(Line(line)) else {
                        return Err(TestCaseError::fail("hit on an absent line"));
                    };
                    prop_assert_eq!(victim.map(|w| w.line.0), out);
                    list.insert(0, line);
                }
            }
            let all: Vec<u64> = cache.iter().map(|w| w.line.0).collect();
            prop_assert_eq!(all, lists.concat());
        }
    }
}
