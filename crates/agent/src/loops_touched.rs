//! The pages that the chunks of one execution of a loop touch, as far as faults tell.
//!
//! Threads write in their fault handlers; the last thread that leaves the loop reads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use homenode_runtime::placing::PAGE;

/// Touches of one execution that are kept: the first ones.
const MOST: usize = 1 << 11;

/// Touches, with their chunks.
pub struct Touched {
    next: AtomicU32,
    kept: Box<[[AtomicU64; 3]]>,
}

impl Touched {
    /// None yet.
    pub fn new() -> Self {
        let none = || [const { AtomicU64::new(0) }; 3];
        Self { next: AtomicU32::new(0), kept: (0..MOST).map(|_| none()).collect() }
    }

    /// A thread that executes a chunk touches an address. In a handler.
    pub fn note(&self, chunk: (u64, u64), address: usize) {
        // Threads touch few pages beyond the bound: each is armed once.
        if self.next.load(Ordering::Relaxed) as usize >= self.kept.len() {
            return;
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed) as usize;
        if let Some([begin, end, page]) = self.kept.get(at) {
            begin.store(chunk.0, Ordering::Relaxed);
            end.store(chunk.1, Ordering::Relaxed);
            page.store((address & !(PAGE - 1)) as u64, Ordering::Release);
        }
    }

    /// What was noted: chunks and pages.
    pub fn all(&self) -> impl Iterator<Item = ((u64, u64), usize)> {
        let kept = (self.next.load(Ordering::Acquire) as usize).min(self.kept.len());
        self.kept[..kept].iter().filter_map(|[begin, end, page]| {
            let page = page.load(Ordering::Acquire) as usize;
            let chunk = (begin.load(Ordering::Relaxed), end.load(Ordering::Relaxed));
            (page != 0).then_some((chunk, page))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_touches_are_kept_with_their_chunks() {
        let touched = Touched::new();
        assert_eq!(touched.all().count(), 0);
        touched.note((3, 5), 0x1234);
        touched.note((5, 6), 0x5000);
        assert_eq!(touched.all().collect::<Vec<_>>(), [((3, 5), 0x1000), ((5, 6), 0x5000)]);
        for page in 1..5000 {
            touched.note((0, 1), page * PAGE);
        }
        assert_eq!(touched.all().count(), MOST);
    }
}
