//! A range of addresses.

use std::fmt;

use homenode_model::Bytes;

/// Bytes of a base page on the supported machines (x86-64; arm64 with 4 KiB pages).
pub const PAGE: usize = 4096;
/// Bytes of a huge page there.
pub const HUGE: usize = 2 << 20;

/// Addresses `start .. end`. The addresses are numbers: holding a span gives no right to the
/// memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First address.
    pub start: usize,
    /// One past the last.
    pub end: usize,
}

impl Span {
    /// Nothing.
    pub const EMPTY: Self = Self { start: 0, end: 0 };

    /// `bytes` from `start` on; cut off at the end of the address space.
    pub const fn new(start: usize, bytes: usize) -> Self {
        Self { start, end: start.saturating_add(bytes) }
    }
    /// Number of bytes.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }
    /// Number of bytes, with the unit.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.len() as u64)
    }
    /// Number of whole pages.
    pub const fn pages(self) -> usize {
        self.len() / PAGE
    }
    /// No bytes.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }
    /// Whether the span contains `address`.
    pub const fn contains(self, address: usize) -> bool {
        address >= self.start && address < self.end
    }
    /// Whether the spans share a byte.
    pub const fn overlaps(self, other: Self) -> bool {
        !self.cut(other).is_empty()
    }
    /// The common part.
    pub const fn cut(self, other: Self) -> Self {
        let start = if self.start > other.start { self.start } else { other.start };
        let end = if self.end < other.end { self.end } else { other.end };
        if end <= start { Self::EMPTY } else { Self { start, end } }
    }
    /// The units of `unit` bytes (a power of two) that lie wholly inside it.
    pub const fn inner(self, unit: usize) -> Self {
        let start = match self.start.checked_next_multiple_of(unit) {
            Some(start) => start,
            None => return Self::EMPTY,
        };
        let end = self.end & !(unit - 1);
        if end <= start { Self::EMPTY } else { Self { start, end } }
    }
    /// The units of `unit` bytes (a power of two) that it touches.
    #[inline]
    pub const fn outer(self, unit: usize) -> Self {
        if self.is_empty() {
            return Self::EMPTY;
        }
        let end = match self.end.checked_next_multiple_of(unit) {
            Some(end) => end,
            None => usize::MAX & !(unit - 1),
        };
        Self { start: self.start & !(unit - 1), end }
    }
    /// Its pieces, cut at multiples of `unit` (a power of two).
    pub fn pieces(self, unit: usize) -> impl Iterator<Item = Self> {
        let mut at = self.start;
        std::iter::from_fn(move || {
            (at < self.end).then(|| {
                let next = (at & !(unit - 1)).saturating_add(unit).min(self.end);
                let piece = Self { start: at, end: next };
                at = next;
                piece
            })
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}-{:#x}", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_inside_and_around() {
        let s = Span { start: 0x1001, end: 0x3fff };
        assert_eq!(s.inner(PAGE), Span { start: 0x2000, end: 0x3000 });
        assert_eq!(s.outer(PAGE), Span { start: 0x1000, end: 0x4000 });
        assert!(Span { start: 0x1001, end: 0x1fff }.inner(PAGE).is_empty());
        assert!(Span { start: usize::MAX - 2, end: usize::MAX }.inner(PAGE).is_empty());
    }

    #[test]
    fn pieces_end_at_multiples() {
        let pieces: Vec<Span> = Span { start: 3, end: 9 }.pieces(4).collect();
        assert_eq!(pieces, [Span { start: 3, end: 4 }, Span { start: 4, end: 8 }, Span { start: 8, end: 9 }]);
    }
}
