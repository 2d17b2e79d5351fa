//! False sharing: lines that one thread writes and another one uses between two barriers.
//!
//! The filter of a thread does not see other threads, and would hide coherence misses. So such
//! lines bypass every filter once they are found. A table of the last 65 536 lines that passed any
//! filter finds them: it says who wrote and who read each line in this barrier interval. Entries
//! are replaced without locks; an unlucky race delays finding a line. Nothing here runs while the
//! program has one thread.

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
pub const MAX_LINES: u64 = homenode_log::sharing::MOST_LINES;
const _: () = assert!(MAX_LINES <= KNOWN as u64 * 3 / 4, "the table keeps free places");

static RECENT_USE: [AtomicU64; RECENT] = [const { AtomicU64::new(0) }; RECENT];
static LINES: [AtomicU64; KNOWN] = [const { AtomicU64::new(0) }; KNOWN];
static COUNT: AtomicU64 = AtomicU64::new(0);
/// One bit for each of 1024 classes of lines. Most lines are of a class without a bit, and these
/// bits stay in the first cache.
static CLASSES: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

// An entry: line / RECENT (25 bits), interval (21), writer + 1 (9), reader + 1 (9). SEVERAL stands
// for more than one.
const SEVERAL: u64 = 511;
const WHO: u64 = 511;

/// Number of lines that bypass the filter now.
pub fn lines() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// A thread in a barrier interval, in the form of the table's entries.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntervalThread {
    thread: u64,
    interval: u64,
}

impl IntervalThread {
    /// Thread number `index` in this interval.
    pub const fn new(index: u32, interval: u64) -> Self {
        let hash = interval.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 43;
        Self { thread: index as u64 % (SEVERAL - 1) + 1, interval: hash << 18 }
    }

    /// The beginning of an entry of this line and interval.
    #[inline(always)]
    const fn key(self, line: u64) -> u64 {
        (line / RECENT as u64 % (1 << 25)) << 39 | self.interval
    }
}

/// Notes an access in the usual case: the line does not bypass the filter, and either nobody else
/// has used it in this interval or nobody writes it. Returns whether this is the usual case; if
/// not, nothing is noted, and [`look`] decides.
#[inline(always)]
pub fn usual(line: u64, write: bool, who: IntervalThread) -> bool {
    let (word, bit) = class(line);
    let entry = &RECENT_USE[line as usize % RECENT];
    let (key, old) = (who.key(line), entry.load(Ordering::Relaxed));
    let same = old & !(WHO << 9 | WHO) == key;
    let Some(new) = noted(if same { old } else { key }, write, who.thread) else { return false };
    if word.load(Ordering::Relaxed) & bit != 0 {
        return false;
    }
    if new != old {
        entry.store(new, Ordering::Relaxed);
    }
    true
}

/// An entry of this line and interval after one more use; `None` if the line should bypass the
/// filter.
#[inline(always)]
const fn noted(entry: u64, write: bool, me: u64) -> Option<u64> {
    let (writer, reader) = (entry >> 9 & WHO, entry & WHO);
    if writer != 0 && writer != me || write && reader != 0 && reader != me {
        return None;
    }
    Some(if write {
        entry | me << 9
    } else if reader == 0 || reader == me {
        entry | me
    } else {
        entry | SEVERAL
    })
}

/// Notes an access and returns what to do with the line.
pub fn look(line: u64, write: bool, who: IntervalThread) -> Bypass {
    if known(line) {
        return Bypass::Yes;
    }
    let entry = &RECENT_USE[line as usize % RECENT];
    let (key, old) = (who.key(line), entry.load(Ordering::Relaxed));
    let same = old & !(WHO << 9 | WHO) == key;
    match noted(if same { old } else { key }, write, who.thread) {
        None if add(line) => return Bypass::New,
        Some(new) if new != old => entry.store(new, Ordering::Relaxed),
        _ => {}
    }
    Bypass::No
}

/// The word and the bit of a line's class.
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

/// Adds a line. Returns whether there was room.
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
        assert_eq!(look(1000, true, IntervalThread::new(0, 7)), Bypass::No);
        assert_eq!(look(1000, true, IntervalThread::new(0, 7)), Bypass::No);
        assert_eq!(look(1000, true, IntervalThread::new(1, 7)), Bypass::New);
        assert_eq!(look(1000, false, IntervalThread::new(0, 8)), Bypass::Yes);
    }

    #[test]
    fn a_reader_beside_a_writer_is_found_either_way_round() {
        assert_eq!(look(2000, true, IntervalThread::new(0, 7)), Bypass::No);
        assert_eq!(look(2000, false, IntervalThread::new(1, 7)), Bypass::New);
        assert_eq!(look(2001, false, IntervalThread::new(0, 7)), Bypass::No);
        assert_eq!(look(2001, false, IntervalThread::new(1, 7)), Bypass::No);
        assert_eq!(look(2001, true, IntervalThread::new(0, 7)), Bypass::New);
    }

    #[test]
    fn a_barrier_between_them_makes_it_true_sharing() {
        assert_eq!(look(3000, true, IntervalThread::new(0, 7)), Bypass::No);
        assert_eq!(look(3000, true, IntervalThread::new(1, 8)), Bypass::No);
        assert_eq!(look(3000, false, IntervalThread::new(1, 8)), Bypass::No);
    }

    #[test]
    fn the_usual_case_is_noted_as_the_others_are() {
        let [one, two] = [0, 1].map(|index| IntervalThread::new(index, 7));
        assert!(usual(4000, true, one) && usual(4000, false, one));
        assert!(!usual(4000, false, two), "another thread has written it");
        assert_eq!(look(4000, false, two), Bypass::New);
        assert!(!usual(4000, true, one), "it bypasses the filter");
        assert!(usual(4001, false, one) && usual(4001, false, two));
        assert!(!usual(4001, true, one), "another thread has read it");
        assert!(usual(4000 + RECENT as u64, true, two) && usual(4000 + RECENT as u64, true, two));
    }
}
