//! Accesses of one CPU that the model has not heard of yet, in their order.
//!
//! The CPU alone adds; whoever holds the model's lock takes, the CPU itself when it is full or
//! synchronises, another one when an interval or everything ends.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use homenode_cache::Line;

/// Accesses that are kept: few enough to stay in the host's first cache.
const MOST: usize = 256;

/// An access that the front did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingAccess {
    /// In the guest's memory, in lines.
    pub line: u64,
    /// A store.
    pub write: bool,
    /// The virtual page.
    pub page: u64,
    /// Number of the process; 0: the kernel.
    pub process: u16,
    /// The line that it pushes out of the first level, as far as its CPU knows.
    pub room: Option<Line>,
}

/// No line.
const NONE: u64 = u64::MAX;

/// log2 of what a virtual page number is below: addresses of programs have 56 bits at most.
const PAGE_BITS: u32 = 48;

/// The accesses of one CPU.
#[derive(Debug)]
pub struct Pending {
    words: Box<[[AtomicU64; 3]]>,
    added: AtomicUsize,
    /// How many of them have been taken; under the model's lock.
    taken: AtomicUsize,
    /// Those before the first of them.
    before: AtomicU64,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            words: (0..MOST).map(|_| Default::default()).collect(),
            added: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            before: AtomicU64::new(0),
        }
    }
}

impl Pending {
    /// Adds one; by the CPU alone, and not when it is full. Says whether it is full now.
    #[inline]
    pub fn add(&self, access: PendingAccess) -> bool {
        let at = self.added.load(Ordering::Relaxed);
        let Some([line, page, room]) = self.words.get(at) else { return true };
        line.store(access.line << 1 | u64::from(access.write), Ordering::Relaxed);
        let process = u64::from(access.process) << PAGE_BITS;
        page.store(access.page & ((1 << PAGE_BITS) - 1) | process, Ordering::Relaxed);
        room.store(access.room.map_or(NONE, |l| l.0), Ordering::Relaxed);
        // Whoever sees the number sees the access.
        self.added.store(at + 1, Ordering::Release);
        at + 1 == self.words.len()
    }

    /// The number of the access that is added next; for the CPU alone.
    #[inline]
    pub fn next(&self) -> u64 {
        self.before.load(Ordering::Relaxed) + self.added.load(Ordering::Relaxed) as u64
    }

    /// How many have been taken since the start; under the model's lock.
    pub fn heard(&self) -> u64 {
        self.before.load(Ordering::Relaxed) + self.taken.load(Ordering::Relaxed) as u64
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.added.load(Ordering::Relaxed) == 0
    }

    /// Takes what was added since the last time; under the model's lock.
    pub fn take(&self, mut each: impl FnMut(PendingAccess)) {
        let added = self.added.load(Ordering::Acquire);
        let taken = self.taken.load(Ordering::Relaxed);
        for [line, page, room] in self.words.get(taken..added).unwrap_or_default() {
            let (line, page) = (line.load(Ordering::Relaxed), page.load(Ordering::Relaxed));
            each(PendingAccess {
                line: line >> 1,
                write: line & 1 != 0,
                page: page & ((1 << PAGE_BITS) - 1),
                process: (page >> PAGE_BITS) as u16,
                room: Some(room.load(Ordering::Relaxed)).filter(|l| *l != NONE).map(Line),
            });
        }
        self.taken.store(added, Ordering::Relaxed);
    }

    /// Begins anew; by the CPU alone, under the model's lock.
    pub fn clear(&self) {
        self.before.store(self.next(), Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
        self.added.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_access_is_taken_once_and_in_order() {
        let pending = Pending::default();
        let access = |n: u64| PendingAccess {
            line: n << 20,
            write: n.is_multiple_of(2),
            page: (1 << PAGE_BITS) - 1 - n,
            process: u16::MAX - n as u16,
            room: (!n.is_multiple_of(3)).then_some(Line(n << 30)),
        };
        let mut seen = Vec::new();
        let mut full = false;
        for n in 0..MOST as u64 {
            assert!(!full);
            full = pending.add(access(n));
            if n == 10 {
                pending.take(|a| seen.push(a));
            }
        }
        assert!(full && !pending.is_empty());
        pending.take(|a| seen.push(a));
        pending.take(|a| seen.push(a));
        assert_eq!(seen, (0..MOST as u64).map(access).collect::<Vec<_>>());
        assert_eq!((pending.next(), pending.heard()), (MOST as u64, MOST as u64));
        pending.clear();
        assert!(pending.is_empty());
        pending.add(access(0));
        assert_eq!((pending.next(), pending.heard()), (MOST as u64 + 1, MOST as u64));
        pending.take(|_| {});
        pending.take(|_| panic!("nothing is left"));
    }
}
