//! One set-associative cache: tags, no data.
//!
//! # Approach
//! All ways lie in one `Vec<u64>`, set after set, each set ordered from the most to the least recently used, empty ways
//! last. A word is the line number and its state bits, so a hit on the most recently used way, by far the most frequent
//! one, is one load and one compare. A look-up that does not hit there moves the words down as it scans: when it finds
//! the line, or reaches the end, the set is in its new order already and what fell out is the victim.
//!
//! # Properties
//! * `a_set_is_an_lru_list`: contents and order equal a list per set (see the tests below).

use alloc::vec;
use alloc::vec::Vec;

use crate::Line;

/// A way of a set: a line and its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Way(u64);

impl Way {
    const VALID: u64 = 1;
    /// Differs from memory.
    pub const DIRTY: u64 = 2;
    /// Hint: no other agent knows the line and the directory knows that it has been written: a store needs nobody.
    pub const EXCLUSIVE: u64 = 4;
    const STATE: u32 = 3;

    #[inline]
    const fn key(line: Line) -> u64 {
        line.0 << Self::STATE | Self::VALID
    }
    #[inline]
    const fn is(word: u64, key: u64) -> bool {
        word & !(Self::DIRTY | Self::EXCLUSIVE) == key
    }
    /// Which line.
    #[inline]
    pub const fn line(self) -> Line {
        Line(self.0 >> Self::STATE)
    }
    /// Whether it differs from memory.
    #[inline]
    pub const fn dirty(self) -> bool {
        self.0 & Self::DIRTY != 0
    }
    /// Whether a store needs nobody's permission, see [`Way::EXCLUSIVE`].
    #[inline]
    pub const fn exclusive(self) -> bool {
        self.0 & Self::EXCLUSIVE != 0
    }
    /// Sets state bits ([`Way::DIRTY`], [`Way::EXCLUSIVE`]).
    #[inline]
    pub const fn set(&mut self, bits: u64) {
        self.0 |= bits;
    }
    /// Clears state bits.
    #[inline]
    pub const fn clear(&mut self, bits: u64) {
        self.0 &= !bits;
    }
}

/// What a look-up with allocation found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The line was there.
    Hit,
    /// It was not and is now; this fell out, if the set was full.
    Miss(Option<Way>),
}

/// A cache.
#[derive(Clone, Debug)]
pub struct Tags {
    words: Vec<Way>,
    ways: usize,
    set_mask: u64,
}

impl Tags {
    /// An empty cache of `sets` (a power of two) × `ways` lines.
    ///
    /// # Panics
    /// When `sets` is not a power of two or `ways` is 0; [`crate::Shape`] guarantees both.
    pub fn new(sets: u64, ways: u32) -> Self {
        assert!(sets.is_power_of_two() && ways > 0);
        let ways = ways as usize;
        Self { words: vec![Way(0); sets as usize * ways], ways, set_mask: sets - 1 }
    }

    #[inline]
    fn start(&self, line: Line) -> usize {
        (line.0 & self.set_mask) as usize * self.ways
    }
    #[inline]
    fn set_of(&self, line: Line) -> &[Way] {
        let start = self.start(line);
        &self.words[start..start + self.ways]
    }
    #[inline]
    fn set_of_mut(&mut self, line: Line) -> &mut [Way] {
        let start = self.start(line);
        &mut self.words[start..start + self.ways]
    }

    /// The line's way if it is the most recently used one of its set.
    #[inline]
    pub fn front(&mut self, line: Line) -> Option<&mut Way> {
        let start = self.start(line);
        let way = &mut self.words[start];
        Way::is(way.0, Way::key(line)).then_some(way)
    }

    /// Looks `line` up; it is the most recently used of its set afterwards, clean and shared if it was not there.
    #[inline]
    pub fn touch_or_insert(&mut self, line: Line) -> Found {
        let key = Way::key(line);
        let set = self.set_of_mut(line);
        let mut carry = set[0];
        if Way::is(carry.0, key) {
            return Found::Hit;
        }
        for i in 1..set.len() {
            let way = set[i];
            set[i] = carry;
            if Way::is(way.0, key) {
                set[0] = way;
                return Found::Hit;
            }
            carry = way;
        }
        set[0] = Way(key);
        Found::Miss((carry.0 != 0).then_some(carry))
    }

    /// The line's way, if present, without a change of order.
    #[inline]
    pub fn peek(&self, line: Line) -> Option<Way> {
        let key = Way::key(line);
        self.set_of(line).iter().find(|w| Way::is(w.0, key)).copied()
    }

    /// As [`Tags::peek`], to change its state.
    #[inline]
    pub fn peek_mut(&mut self, line: Line) -> Option<&mut Way> {
        let key = Way::key(line);
        self.set_of_mut(line).iter_mut().find(|w| Way::is(w.0, key))
    }

    /// Takes the line out, if present.
    #[inline]
    pub fn remove(&mut self, line: Line) -> Option<Way> {
        let key = Way::key(line);
        let set = self.set_of_mut(line);
        let at = set.iter().position(|w| Way::is(w.0, key))?;
        let way = set[at];
        set.copy_within(at + 1.., at);
        set[set.len() - 1] = Way(0);
        Some(way)
    }

    /// All lines present, set by set, most recently used first.
    pub fn iter(&self) -> impl Iterator<Item = Way> + '_ {
        self.words.iter().copied().filter(|w| w.0 != 0)
    }
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
        assert_eq!(c.iter().map(|w| w.line().0).collect::<Vec<_>>(), [8, 4, 1]);
    }

    #[test]
    fn state_stays_with_its_line() {
        let mut c = Tags::new(1, 3);
        for line in [1, 2, 3] {
            c.touch_or_insert(Line(line));
        }
        c.peek_mut(Line(1)).unwrap().set(Way::DIRTY);
        assert_eq!(c.touch_or_insert(Line(1)), Found::Hit);
        assert!(c.front(Line(1)).unwrap().dirty());
        let Found::Miss(Some(victim)) = c.touch_or_insert(Line(4)) else { panic!("the set was full") };
        assert_eq!((victim.line(), victim.dirty()), (Line(2), false));
        assert!(c.remove(Line(1)).unwrap().dirty());
        assert_eq!(c.touch_or_insert(Line(5)), Found::Miss(None));
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
                    prop_assert_eq!(cache.touch_or_insert(Line(line)), Found::Hit);
                    list.remove(at);
                    list.insert(0, line);
                } else {
                    let out = if list.len() == ways as usize { list.pop() } else { None };
                    let Found::Miss(victim) = cache.touch_or_insert(Line(line)) else {
                        return Err(TestCaseError::fail("hit on an absent line"));
                    };
                    prop_assert_eq!(victim.map(|w| w.line().0), out);
                    list.insert(0, line);
                }
            }
            let all: Vec<u64> = cache.iter().map(|w| w.line().0).collect();
            prop_assert_eq!(all, lists.concat());
        }
    }
}
