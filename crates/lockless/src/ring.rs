//! A ring of touches: many threads write an entry each, one thread reads them.

use super::sync::{AtomicU64, Ordering};

/// Each entry has this bit, so that no entry is 0.
pub const VALID: u64 = 1 << 63;

/// The last `LENGTH` entries. The reader looks `PATIENCE` times for an entry whose writer has its
/// place and has not written it yet; then it goes on without the entry.
pub struct TouchRing<const LENGTH: usize, const PATIENCE: usize> {
    /// 0: there is no entry, or the reader has taken it.
    pub(super) places: [AtomicU64; LENGTH],
    pub(super) written: AtomicU64,
    pub(super) read: AtomicU64,
}

impl<const LENGTH: usize, const PATIENCE: usize> TouchRing<LENGTH, PATIENCE> {
    /// Writes an entry, which has the bit [`VALID`]. `false`: the ring is full, and the entry is
    /// lost.
    pub fn write(&self, entry: u64) -> bool {
        let at = self.written.fetch_add(1, Ordering::Relaxed);
        if at - self.read.load(Ordering::Relaxed).min(at) >= LENGTH as u64 {
            return false;
        }
        self.places[at as usize % LENGTH].store(entry, Ordering::Release);
        true
    }

    /// Takes an entry. Its writer may be about to write it, so this waits a little.
    fn next(place: &AtomicU64, pause: &impl Fn()) -> Option<u64> {
        for _ in 0..PATIENCE {
            let entry = place.swap(0, Ordering::Acquire);
            if entry & VALID != 0 {
                return Some(entry);
            }
            pause();
        }
        None
    }

    /// Tells the entries since the last call, in order. One caller at a time. Calls `pause` between
    /// two looks for an entry.
    pub fn drain(&self, pause: impl Fn(), mut tell: impl FnMut(u64)) {
        let end = self.written.load(Ordering::Acquire);
        let begin = self.read.load(Ordering::Relaxed);
        let last = end.min(begin + LENGTH as u64);
        for at in begin..last {
            if let Some(entry) = Self::next(&self.places[at as usize % LENGTH], &pause) {
                tell(entry);
            }
        }
        self.read.store(end, Ordering::Release);
    }
}
