//! Changes of memory, for a thread that arms and has already looked at the mappings.
//!
//! A front end publishes the memory, disarms it, changes it, notes the change, and then gives the
//! memory up ([`super::Flights::retire`]). The thread that arms reads the number of changes, looks
//! at the mappings, claims the blocks, and then looks at the published memory, and after that at
//! the changes since. A change between its look at the mappings and its claim is then published
//! still, or it is noted.
//!
//! A change is also noted before it is made. A list of live memory that was made before then does
//! not count, even if the mappings are looked at later.

use super::sync::{AtomicUsize, Ordering};

/// First address and end of changed memory.
pub(super) struct Change {
    pub(super) start: AtomicUsize,
    pub(super) end: AtomicUsize,
}

/// The last `LENGTH` changes.
pub struct Changes<const LENGTH: usize> {
    pub(super) changes: [Change; LENGTH],
    /// Changes so far, counted before each is written down.
    pub(super) begun: AtomicUsize,
    /// Changes so far, counted after each is written down. The two are equal when none is in
    /// between.
    pub(super) written: AtomicUsize,
}

impl<const LENGTH: usize> Changes<LENGTH> {
    /// Notes a change of the memory from `start` to `end`.
    pub fn note(&self, start: usize, end: usize) {
        let at = self.begun.fetch_add(1, Ordering::SeqCst) % LENGTH;
        self.changes[at].start.store(start, Ordering::SeqCst);
        self.changes[at].end.store(end, Ordering::SeqCst);
        self.written.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of changes so far.
    pub fn count(&self) -> usize {
        self.written.load(Ordering::SeqCst)
    }

    /// Whether one of the changes after the first `since` is one that `is_it` is `true` for, given
    /// the memory's first address and end. `true` also if that is not known.
    pub fn any_since(&self, since: usize, mut is_it: impl FnMut(usize, usize) -> bool) -> bool {
        let now = self.begun.load(Ordering::SeqCst);
        if now != self.written.load(Ordering::SeqCst) || now - since.min(now) >= LENGTH {
            return now != since;
        }
        (since..now).any(|i| {
            let change = &self.changes[i % LENGTH];
            is_it(change.start.load(Ordering::SeqCst), change.end.load(Ordering::SeqCst))
        })
    }
}
