//! Who touched what first, in canonical order.

use homenode_model::{LineNo, Rows, ThreadId, Ticks};

/// Bytes of a unit: the smallest page.
pub const UNIT: u64 = 4096;
/// Units from here on are not kept: 4 TiB. Canonical addresses are compact, so only damaged
/// recordings get there.
const MOST: u64 = 1 << 30;

/// The first touch of a unit of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitFirstTouch {
    /// Who.
    pub thread: ThreadId,
    /// The thread's clock.
    pub tick: Ticks,
    /// Return address of the instrumentation call; 0 where it is unknown.
    pub pc: u64,
}

const NOBODY: UnitFirstTouch = UnitFirstTouch { thread: ThreadId(u32::MAX), tick: Ticks::ZERO, pc: 0 };

/// First touches by unit: 24 bytes each.
#[derive(Clone, Debug)]
pub struct UnitFirstTouches {
    rows: Rows<UnitFirstTouch>,
}

impl Default for UnitFirstTouches {
    fn default() -> Self {
        Self { rows: Rows::new(1, NOBODY) }
    }
}

impl UnitFirstTouches {
    /// The first touch of the unit at a canonical address.
    pub fn at(&self, address: u64) -> Option<UnitFirstTouch> {
        let first = self.rows.row((address / UNIT) as usize)?[0];
        (first != NOBODY).then_some(first)
    }

    /// A line that nobody had touched is touched.
    #[cold]
    pub(super) fn note(&mut self, line: LineNo, thread: usize, tick: Ticks, pc: u64) {
        let unit = (line.0 << LineNo::SHIFT) / UNIT;
        if unit < MOST {
            let first = &mut self.rows.row_mut(unit as usize)[0];
            if *first == NOBODY {
                *first = UnitFirstTouch { thread: ThreadId(thread as u32), tick, pc };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stays_the_first() {
        let mut all = UnitFirstTouches::default();
        all.note(LineNo(64 + 3), 2, Ticks(5), 77);
        all.note(LineNo(64), 1, Ticks(1), 78);
        all.note(LineNo(u64::MAX >> 6), 1, Ticks(1), 78);
        assert_eq!(all.at(4096), Some(UnitFirstTouch { thread: ThreadId(2), tick: Ticks(5), pc: 77 }));
        assert_eq!(all.at(8191), all.at(4096));
        assert_eq!((all.at(0), all.at(8192), all.at(u64::MAX)), (None, None, None));
    }
}
