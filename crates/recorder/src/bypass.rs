//! False sharing: lines that one thread writes and another uses between two barriers.
//!
//! A filter that is deaf to other threads would hide their coherence misses, so such lines bypass every filter from
//! the moment they are found. They are found by a table of the last 65 536 lines that passed any filter: who wrote
//! and who read the line in this barrier interval. Entries are replaced without locking; an unlucky race costs the
//! finding of a line once. Nothing here runs while the program has one thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// What to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// The filter may remember it.
    No,
    /// It bypasses the filter.
    Yes,
    /// It bypasses the filter from now on; other filters must forget it.
    New,
}

const RECENT: usize = 1 << 16;
const KNOWN: usize = 1 << 12;
/// Most lines that bypass the filter.
pub const MAX_LINES: u64 = KNOWN as u64 * 3 / 4;

static RECENT_USE: [AtomicU64; RECENT] = [const { AtomicU64::new(0) }; RECENT];
static LINES: [AtomicU64; KNOWN] = [const { AtomicU64::new(0) }; KNOWN];
static COUNT: AtomicU64 = AtomicU64::new(0);
/// A bit for the lines of each of 1024 classes: most lines are of a class without one, and these bits stay in the first cache.
static CLASSES: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

// An entry: line / RECENT (25 bits), interval (21), writer + 1 (9), reader + 1 (9). SEVERAL stands for more than one.
const SEVERAL: u64 = 511;
const WHO: u64 = 511;

/// Lines that bypass the filter now.
pub fn lines() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// Notes an access of thread `index` in barrier interval `interval` and says what to do with the line.
#[inline]
pub fn look(line: u64, write: bool, index: u32, interval: u64) -> Bypass {
    if known(line) {
        return Bypass::Yes;
    }
    let me = u64::from(index) % (SEVERAL - 1) + 1;
    let entry = &RECENT_USE[line as usize % RECENT];
    let key =
        (line / RECENT as u64 % (1 << 25)) << 39 | (interval.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 43) << 18;
    let old = entry.load(Ordering::Relaxed);
    let (mut writer, mut reader) =
        if old & !(WHO << 9 | WHO) == key { (old >> 9 & WHO, old & WHO) } else { (0, 0) };
    let others = |who: u64| who != 0 && who != me;
    if others(writer) || write && others(reader) {
        return if add(line) { Bypass::New } else { Bypass::No };
    }
    if write {
        writer = me;
    } else if reader == 0 {
        reader = me;
    } else if reader != me {
        reader = SEVERAL;
    }
    let new = key | writer << 9 | reader;
    if new != old {
        entry.store(new, Ordering::Relaxed);
    }
    Bypass::No
}

/// Where the bit of a line's class is.
fn class(line: u64) -> (&'static AtomicU64, u64) {
    let hash = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (&CLASSES[(hash >> 60) as usize], 1 << (hash >> 54 & 63))
}

fn slots(line: u64) -> impl Iterator<Item = &'static AtomicU64> {
    let first = (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
    (0..16).map(move |i| &LINES[(first + i) % KNOWN])
}

#[inline]
fn known(line: u64) -> bool {
    let (word, bit) = class(line);
    word.load(Ordering::Relaxed) & bit != 0 && is_there(line)
}

fn is_there(line: u64) -> bool {
    for slot in slots(line) {
        match slot.load(Ordering::Relaxed) {
            0 => return false,
            l if l == line => return true,
            _ => {}
        }
    }
    false
}

/// Whether there was room for the line.
#[cold]
fn add(line: u64) -> bool {
    if COUNT.load(Ordering::Relaxed) >= MAX_LINES {
        return false;
    }
    let (word, bit) = class(line);
    word.fetch_or(bit, Ordering::Relaxed);
    for slot in slots(line) {
        match slot.compare_exchange(0, line, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                COUNT.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Err(l) if l == line => return true,
            Err(_) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    // The tables are the process's; every test takes lines of its own.

    #[test]
    fn two_writers_of_a_line_in_one_interval_are_found() {
        assert_eq!(look(1000, true, 0, 7), Bypass::No);
        assert_eq!(look(1000, true, 0, 7), Bypass::No);
        assert_eq!(look(1000, true, 1, 7), Bypass::New);
        assert_eq!(look(1000, false, 0, 8), Bypass::Yes);
    }

    #[test]
    fn a_reader_beside_a_writer_is_found_either_way_round() {
        assert_eq!(look(2000, true, 0, 7), Bypass::No);
        assert_eq!(look(2000, false, 1, 7), Bypass::New);
        assert_eq!(look(2001, false, 0, 7), Bypass::No);
        assert_eq!(look(2001, false, 1, 7), Bypass::No);
        assert_eq!(look(2001, true, 0, 7), Bypass::New);
    }

    #[test]
    fn a_barrier_between_them_makes_it_true_sharing() {
        assert_eq!(look(3000, true, 0, 7), Bypass::No);
        assert_eq!(look(3000, true, 1, 8), Bypass::No);
        assert_eq!(look(3000, false, 1, 8), Bypass::No);
    }
}
