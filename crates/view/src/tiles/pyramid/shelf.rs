//! The buffers of one kind: from the finest sums to the coarser ones.

use std::ops::Range;

use super::SumKind;
use super::merge::Merge;
use super::out::Out;
use super::sums::Sum;

/// Fewest sums of a buffer.
const FEWEST: usize = 1 << 10;

/// The buffers of one kind.
///
/// First come rows, in the order of time: they fill the finest buffer, which is written as runs.
/// Then the runs are merged, page after page, and fill the coarser buffers. What belongs to one
/// coarse cell is near together then, however many rows an interval has.
pub struct Shelf {
    kind: SumKind,
    pages: Vec<u32>,
    times: Vec<u32>,
    finest: Vec<Sum>,
    /// Sums from which on the finest buffer is written.
    most_of_finest: usize,
    runs: Vec<Range<usize>>,
    /// By time shift, then by page shift. The first one stays empty.
    coarser: Vec<Vec<Sum>>,
    /// Sums from which on a coarser buffer is written.
    most: usize,
}

impl Shelf {
    /// `buffered`: sums in memory at most.
    pub fn new(kind: SumKind, pages: &[u32], times: &[u32], buffered: usize) -> Self {
        let number = pages.len() * times.len();
        Self {
            kind,
            pages: pages.to_vec(),
            times: times.to_vec(),
            finest: Vec::new(),
            most_of_finest: buffered.max(FEWEST),
            runs: Vec::new(),
            coarser: vec![Vec::new(); number],
            most: (buffered / number).max(FEWEST),
        }
    }

    /// Adds a row.
    #[inline]
    pub fn add(&mut self, sum: Sum, out: &mut Out) {
        put(&mut self.finest, sum, self.kind);
        if self.finest.len() >= self.most_of_finest {
            self.write_run(out);
        }
    }

    fn write_run(&mut self, out: &mut Out) {
        sort(&mut self.finest, self.kind);
        self.runs.push(out.run(self.kind, 0, &self.finest));
        self.finest.clear();
    }

    /// All rows were added: what is left becomes the last run.
    pub fn end_rows(&mut self, out: &mut Out) {
        if !self.finest.is_empty() {
            self.write_run(out);
        }
        self.finest = Vec::new();
    }

    /// Blocks that [`Shelf::coarsen`] reads.
    pub fn blocks(&self) -> usize {
        if self.coarser.len() > 1 { self.runs.iter().map(Range::len).sum() } else { 0 }
    }

    /// Makes the coarser sums of the runs. `more` gets the number of blocks that were read since
    /// its last call, and says whether to go on. Returns whether it always did.
    pub fn coarsen(&mut self, out: &mut Out, more: &mut dyn FnMut(usize) -> bool) -> bool {
        if self.blocks() == 0 {
            return true;
        }
        let runs = std::mem::take(&mut self.runs);
        for runs in Merge::parts(&runs) {
            let mut merge = Merge::new(self.kind, runs, out);
            while let Some(sum) = merge.next(out) {
                self.pass_on(0, 0, sum, out);
                let read = merge.blocks_read();
                if read > 0 && !more(read) {
                    return false;
                }
            }
        }
        for time in 0..self.times.len() {
            for page in 0..self.pages.len() {
                self.flush(time, page, out);
                self.coarser[time * self.pages.len() + page] = Vec::new();
            }
        }
        true
    }

    #[inline]
    fn pass_on(&mut self, time: usize, page: usize, sum: &Sum, out: &mut Out) {
        if let Some(shift) = self.pages.get(page + 1).copied() {
            self.add_coarser(time, page + 1, sum.wider(shift), out);
        }
        if let Some(to) = self.times.get(time + 1).copied().filter(|_| page == 0) {
            self.add_coarser(time + 1, 0, sum.longer(self.times[time], to, self.kind), out);
        }
    }

    #[inline]
    fn add_coarser(&mut self, time: usize, page: usize, sum: Sum, out: &mut Out) {
        let buffer = &mut self.coarser[time * self.pages.len() + page];
        put(buffer, sum, self.kind);
        if buffer.len() >= self.most {
            self.flush(time, page, out);
        }
    }

    /// Writes a buffer, and passes its sums on.
    fn flush(&mut self, time: usize, page: usize, out: &mut Out) {
        let number = time * self.pages.len() + page;
        let mut sums = std::mem::take(&mut self.coarser[number]);
        sort(&mut sums, self.kind);
        sums.iter().for_each(|sum| self.pass_on(time, page, sum, out));
        out.tiles(self.kind, number as u32, self.pages[page], &mut sums);
        sums.clear();
        self.coarser[number] = sums;
    }
}

/// Adds a sum to a buffer: to the last one, if it is of the same cell.
#[inline]
fn put(buffer: &mut Vec<Sum>, sum: Sum, kind: SumKind) {
    match buffer.last_mut() {
        Some(last) if last.key == sum.key => last.add(&sum, kind),
        _ => buffer.push(sum),
    }
}

/// Sorts sums by their keys, and adds up those of the same cell.
fn sort(sums: &mut Vec<Sum>, kind: SumKind) {
    // Stable, because rows come in stretches that are sorted already.
    sums.sort_by_key(|s| s.key);
    sums.dedup_by(|next, sum| {
        let same = next.key == sum.key;
        if same {
            sum.add(next, kind);
        }
        same
    });
}
