//! The next touch of 4 KiB units: which of them somebody waits for.
//!
//! A program asks for next touch of a range once; a policy may want to know of the first touch of
//! every unit after every region's start. The one is a set of units, the other would be all units
//! again and again: each unit remembers the number of the region in which it was touched last, so
//! that a region's start costs nothing.

use homenode_model::LineNo;

use crate::stream::MemWhat;
use homenode_order::step::ByteRange;

/// Lines of a unit.
const LINES: u64 = 4096 >> LineNo::SHIFT;
/// Most units: 4 TiB.
const MOST: u64 = 1 << 30;

/// See the module.
#[derive(Default)]
pub(super) struct Touches {
    /// Units for which the program asked and that nobody has touched since.
    asked: Vec<u64>,
    /// How many.
    count: u64,
    /// Regions are told.
    regions: bool,
    /// Number of regions begun, from 1; 0 before the first and while nobody wants to know.
    region: u32,
    /// By unit: the region in which it was touched last.
    last: Vec<u32>,
}

impl Touches {
    pub(super) fn ask(&mut self, range: ByteRange) {
        let end = range.first.saturating_add(range.bytes).div_ceil(4096).min(MOST);
        for unit in range.first / 4096..end {
            let (word, bit) = ((unit / 64) as usize, 1 << (unit % 64));
            if word >= self.asked.len() {
                self.asked.resize(word + 1, 0);
            }
            self.count += u64::from(self.asked[word] & bit == 0);
            self.asked[word] |= bit;
        }
    }

    pub(super) const fn tell_regions(&mut self) {
        self.regions = true;
    }

    pub(super) fn begin_region(&mut self) {
        if self.regions {
            self.region = self.region.checked_add(1).unwrap_or_else(|| {
                self.last.fill(0);
                1
            });
        }
    }

    /// Whether an access may be a touch that somebody waits for.
    #[inline]
    pub(super) const fn awaited(&self) -> bool {
        self.count > 0 || self.region > 0
    }

    /// What the access to `line` is to those who wait for touches; they no longer do.
    #[inline]
    pub(super) fn take(&mut self, line: LineNo) -> Option<MemWhat> {
        let unit = line.0 / LINES;
        let first = self.region > 0 && self.is_first(unit);
        if self.count > 0 && self.was_asked(unit) {
            return Some(MemWhat::Touch { line });
        }
        first.then_some(MemWhat::RegionTouch { line })
    }

    #[inline]
    fn was_asked(&mut self, unit: u64) -> bool {
        let Some(word) = self.asked.get_mut((unit / 64) as usize) else { return false };
        let bit = 1 << (unit % 64);
        let asked = *word & bit != 0;
        *word &= !bit;
        self.count -= u64::from(asked);
        asked
    }

    /// Whether this is the unit's first touch in the region.
    #[inline]
    fn is_first(&mut self, unit: u64) -> bool {
        match self.last.get_mut(unit as usize) {
            Some(last) => std::mem::replace(last, self.region) != self.region,
            None => self.grow(unit),
        }
    }

    #[cold]
    fn grow(&mut self, unit: u64) -> bool {
        if unit < MOST {
            let room = (unit as usize + 1).next_power_of_two();
            self.last.resize(room, 0);
            self.last[unit as usize] = self.region;
        }
        unit < MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(unit: u64) -> LineNo {
        LineNo(unit * LINES + 3)
    }

    #[test]
    fn a_unit_is_told_once_a_region() {
        let mut t = Touches::default();
        assert!(!t.awaited());
        t.begin_region();
        assert!(!t.awaited(), "nobody wants to know");
        t.tell_regions();
        assert!(!t.awaited(), "no region has begun");
        for _ in 0..3 {
            t.begin_region();
            for unit in [7, 0, 900] {
                assert_eq!(t.take(line(unit)), Some(MemWhat::RegionTouch { line: line(unit) }));
                assert_eq!(t.take(line(unit)), None);
            }
        }
    }

    #[test]
    fn what_was_asked_for_is_told_as_that_and_not_twice() {
        let mut t = Touches::default();
        t.tell_regions();
        t.ask(ByteRange { first: 4096, bytes: 1 });
        assert_eq!((t.take(line(0)), t.take(line(1))), (None, Some(MemWhat::Touch { line: line(1) })));
        t.ask(ByteRange { first: 4096, bytes: 1 });
        t.begin_region();
        assert_eq!(t.take(line(1)), Some(MemWhat::Touch { line: line(1) }));
        assert_eq!(t.take(line(1)), None);
    }

    #[test]
    fn when_the_regions_numbers_run_out_they_begin_again() {
        let mut t = Touches::default();
        t.tell_regions();
        t.region = u32::MAX;
        assert!(t.take(line(1)).is_some());
        t.last[0] = 1;
        t.begin_region();
        assert!(t.take(line(0)).is_some() && t.take(line(1)).is_some());
    }

    #[test]
    fn far_addresses_cost_nothing() {
        let mut t = Touches::default();
        t.tell_regions();
        t.begin_region();
        assert_eq!(t.take(LineNo(u64::MAX)), None);
        assert!(t.last.is_empty());
    }
}
