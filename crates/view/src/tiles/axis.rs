//! How intervals become columns and pages become bands.
//!
//! Both become groups of equal size, a power of two, so that neighbours of one level make one cell
//! of the next.

/// Some of the intervals of a recording as columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Position of the first interval.
    pub first: usize,
    /// How many intervals.
    pub intervals: usize,
    /// A column holds `1 << shift` intervals; the last one may hold fewer.
    pub shift: u32,
}

impl Columns {
    /// The finest columns of these intervals, at most `most`.
    pub fn of(first: usize, intervals: usize, most: usize) -> Self {
        let (intervals, most) = (intervals.max(1), most.max(1));
        let shift = (0..usize::BITS - 1).find(|s| intervals.div_ceil(1 << s) <= most);
        Self { first, intervals, shift: shift.unwrap_or(usize::BITS - 1) }
    }

    /// How many columns.
    pub const fn count(&self) -> usize {
        self.intervals.div_ceil(1 << self.shift)
    }

    /// Intervals of a full column.
    pub const fn width(&self) -> u64 {
        1 << self.shift
    }

    /// The column of the interval at a position; none outside.
    pub fn column(&self, position: usize) -> Option<usize> {
        let inside = position.checked_sub(self.first).filter(|p| *p < self.intervals)?;
        Some(inside >> self.shift)
    }

    /// Positions of a column's intervals: the first, and the one behind the last.
    pub fn range(&self, column: usize) -> (usize, usize) {
        let from = (column << self.shift).min(self.intervals);
        let to = ((column + 1) << self.shift).min(self.intervals);
        (self.first + from, self.first + to)
    }

    /// The part of a stretch of positions (both ends included) that lies inside.
    pub fn inside(&self, first: usize, last: usize) -> Option<(usize, usize)> {
        let from = first.max(self.first);
        let to = last.min(self.first + self.intervals - 1);
        (from <= to).then(|| (from - self.first, to - self.first))
    }
}

/// Some of the pages of an object as bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands {
    /// The first page.
    pub first: u64,
    /// How many pages.
    pub pages: u64,
    /// A band holds `1 << shift` pages; the last one may hold fewer.
    pub shift: u32,
    /// Whether pages behind the last one belong to the last band. Otherwise they lie outside.
    pub open: bool,
}

impl Bands {
    /// The finest bands of these pages, at most `most`.
    pub fn of(first: u64, pages: u64, most: u64) -> Self {
        let (pages, most) = (pages.max(1), most.max(1));
        let shift = (0..63).find(|s| pages.div_ceil(1 << s) <= most).unwrap_or(63);
        Self { first, pages, shift, open: false }
    }

    /// How many bands.
    pub const fn count(&self) -> usize {
        self.pages.div_ceil(1 << self.shift) as usize
    }

    /// The bands that a run of pages touches, each with the number of its pages there.
    pub fn of_run(&self, page: u64, pages: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let this = *self;
        let last = this.count() - 1;
        let from = page.saturating_sub(this.first);
        let end = page.saturating_add(pages).saturating_sub(this.first);
        let limit = if this.open { u64::MAX } else { this.pages };
        let end = end.min(limit);
        let any = from < end;
        let band = move |p: u64| ((p >> this.shift) as usize).min(last);
        let range = if any { band(from)..band(end - 1) + 1 } else { 0..0 };
        range.map(move |b| {
            let start = (b as u64) << this.shift;
            let stop = if b == last { u64::MAX } else { (b as u64 + 1) << this.shift };
            (b, end.min(stop) - from.max(start))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_powers_of_two_and_cover_everything_once() {
        for (intervals, most) in [(1, 10), (10, 10), (11, 10), (1000, 384), (5, 1)] {
            let columns = Columns::of(7, intervals, most);
            assert!(columns.count() <= most, "{columns:?}");
            let mut next = 7;
            for c in 0..columns.count() {
                let (from, to) = columns.range(c);
                assert_eq!(from, next);
                assert!((from..to).all(|p| columns.column(p) == Some(c)), "{columns:?}");
                next = to;
            }
            assert_eq!(next, 7 + intervals);
            assert_eq!((columns.column(6), columns.column(next)), (None, None));
        }
    }

    #[test]
    fn a_run_of_pages_is_shared_out_over_bands() {
        let bands = Bands::of(0, 10, 4);
        assert_eq!((bands.shift, bands.count()), (2, 3));
        assert_eq!(bands.of_run(3, 6).collect::<Vec<_>>(), [(0, 1), (1, 4), (2, 1)]);
        assert_eq!(bands.of_run(9, 100).collect::<Vec<_>>(), [(2, 1)], "what lies behind is outside");
        let open = Bands { open: true, ..bands };
        assert_eq!(open.of_run(9, 100).collect::<Vec<_>>(), [(2, 100)], "or in the last band");
        assert_eq!(open.of_run(1 << 60, 1).collect::<Vec<_>>(), [(2, 1)]);
        assert_eq!(bands.of_run(3, 0).count() + bands.of_run(20, 5).count(), 0);
        let window = Bands::of(100, 8, 8);
        assert_eq!(window.of_run(98, 4).collect::<Vec<_>>(), [(0, 1), (1, 1)]);
    }
}
