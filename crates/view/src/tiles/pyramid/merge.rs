//! Reads sorted runs again, in the order of their keys.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;

use super::SumKind;
use super::block;
use super::out::Out;
use super::sums::{Sum, SumKey};

/// Most runs that are merged at once: each has a block of [`block::MOST`] sums in memory.
const MOST_RUNS: usize = 256;

/// Where a run is read.
struct Cursor {
    /// Places in the index of its blocks that are not read yet.
    blocks: Range<usize>,
    sums: Vec<Sum>,
    at: usize,
}

/// Some runs, merged.
pub struct Merge {
    kind: SumKind,
    cursors: Vec<Cursor>,
    /// The next key of each cursor but the one that is read.
    waiting: BinaryHeap<Reverse<(SumKey, usize)>>,
    /// The cursor that is read, and the key up to which it is the first.
    current: Option<(usize, Option<SumKey>)>,
    bytes: Vec<u8>,
    read: usize,
}

impl Merge {
    /// Runs that are merged together, in parts of about the same size.
    pub fn parts(runs: &[Range<usize>]) -> impl Iterator<Item = &[Range<usize>]> {
        let parts = runs.len().div_ceil(MOST_RUNS).max(1);
        runs.chunks(runs.len().div_ceil(parts).max(1))
    }

    /// A failure to read is left in `out`.
    pub fn new(kind: SumKind, runs: &[Range<usize>], out: &mut Out) -> Self {
        let cursor = |blocks: &Range<usize>| Cursor { blocks: blocks.clone(), sums: Vec::new(), at: 0 };
        let mut merge = Self {
            kind,
            cursors: runs.iter().map(cursor).collect(),
            waiting: BinaryHeap::new(),
            current: None,
            bytes: Vec::new(),
            read: 0,
        };
        out.flush();
        for n in 0..merge.cursors.len() {
            if let Some(key) = merge.key(n, out) {
                merge.waiting.push(Reverse((key, n)));
            }
        }
        merge
    }

    /// The next sum of all runs. None: there is no more, or a block cannot be read.
    #[inline]
    pub fn next(&mut self, out: &mut Out) -> Option<&Sum> {
        let n = self.choose(out)?;
        let cursor = &mut self.cursors[n];
        cursor.at += 1;
        cursor.sums.get(cursor.at - 1)
    }

    /// Blocks that were read since the last call.
    pub const fn blocks_read(&mut self) -> usize {
        std::mem::replace(&mut self.read, 0)
    }

    /// The cursor whose next sum is the first of all.
    #[inline]
    fn choose(&mut self, out: &mut Out) -> Option<usize> {
        if let Some((n, until)) = self.current {
            match self.key(n, out) {
                Some(key) if until.is_none_or(|until| key <= until) => return Some(n),
                Some(key) => self.waiting.push(Reverse((key, n))),
                None => {}
            }
        }
        let Reverse((_, n)) = self.waiting.pop()?;
        self.current = Some((n, self.waiting.peek().map(|Reverse((key, _))| *key)));
        Some(n)
    }

    /// The key of a cursor's next sum.
    #[inline]
    fn key(&mut self, n: usize, out: &mut Out) -> Option<SumKey> {
        if self.cursors[n].at >= self.cursors[n].sums.len() {
            self.read_block(n, out)?;
        }
        let cursor = &self.cursors[n];
        cursor.sums.get(cursor.at).map(|s| s.key)
    }

    fn read_block(&mut self, n: usize, out: &mut Out) -> Option<()> {
        let cursor = &mut self.cursors[n];
        (cursor.sums, cursor.at) = (std::mem::take(&mut cursor.sums), 0);
        cursor.sums.clear();
        let Some(entry) = cursor.blocks.next().and_then(|at| out.index.get(at)) else {
            cursor.sums = Vec::new();
            return None;
        };
        self.read += 1;
        let sums = &mut cursor.sums;
        let whole = out.read(entry, &mut self.bytes).map(|()| {
            block::decode(&self.bytes, entry.object, self.kind, |cell, first, second| {
                sums.push(Sum { key: SumKey::of(cell), first, second });
            })
        });
        match whole {
            Ok(true) => Some(()),
            Ok(false) => {
                out.failed = Some(io::Error::new(io::ErrorKind::InvalidData, "a block came back damaged"));
                None
            }
            Err(e) => {
                out.failed = Some(e);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sums::SumCell;
    use super::*;

    #[test]
    fn runs_come_back_in_the_order_of_their_keys() {
        let mut out = Out::memory();
        let sum = |n: u64| {
            let cell = SumCell { object: (n >> 14) as u32, page: n, column: 1, node: 0, pages: 1 };
            Sum { key: SumKey::of(&cell), first: n, second: 0 }
        };
        // The first run ends early, the last one is longer than a block.
        let runs: Vec<Range<usize>> = [(0, 7, 100), (1, 7, 300), (2, 7, 7000)]
            .map(|(first, step, count)| {
                let sums: Vec<Sum> = (0..count).map(|n| sum(first + n * step)).collect();
                out.run(SumKind::Touches, 0, &sums)
            })
            .to_vec();
        let mut merge = Merge::new(SumKind::Touches, &runs, &mut out);
        let mut all = Vec::new();
        while let Some(sum) = merge.next(&mut out) {
            all.push(sum.first);
        }
        assert!(out.failed.is_none());
        assert_eq!(all.len(), 7400);
        assert!(all.is_sorted());
    }

    #[test]
    fn many_runs_are_merged_in_parts() {
        let runs: Vec<Range<usize>> = (0..MOST_RUNS + 2).map(|n| n..n + 1).collect();
        let parts: Vec<usize> = Merge::parts(&runs).map(<[_]>::len).collect();
        assert_eq!(parts, [129, 129]);
        assert_eq!(Merge::parts(&runs[..3]).count(), 1);
        assert_eq!(Merge::parts(&[]).count(), 0);
    }
}
