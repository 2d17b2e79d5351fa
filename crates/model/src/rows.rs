//! A table by dense index that stays small when the index turns out sparse.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Rows of a piece of the table.
const PIECE: usize = 1 << 10;

/// Rows of `width` cells by index, in pieces of 1024 rows that come into being at the first write
/// to one of theirs.
///
/// Canonical addresses start at 0 and are compact, so nearly all pieces are full; but one far
/// address must not cost the memory of everything before it. Reading what was never written yields
/// nothing, and two tables with the same contents are equal however they grew.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    width: usize,
    empty: T,
    pieces: Vec<Option<Box<[T]>>>,
}

impl<T: Copy + PartialEq> Rows<T> {
    /// No rows; a row springs up as `width` times `empty`.
    pub const fn new(width: usize, empty: T) -> Self {
        Self { width, empty, pieces: Vec::new() }
    }
    /// Cells of a row.
    pub const fn width(&self) -> usize {
        self.width
    }
    /// Row `index`; `None` where nothing near it was written.
    #[inline]
    pub fn row(&self, index: usize) -> Option<&[T]> {
        let piece = self.pieces.get(index / PIECE)?.as_deref()?;
        let at = index % PIECE * self.width;
        piece.get(at..at + self.width)
    }
    /// Row `index`, for writing.
    #[inline]
    pub fn row_mut(&mut self, index: usize) -> &mut [T] {
        let (piece, at) = (index / PIECE, index % PIECE * self.width);
        if !matches!(self.pieces.get(piece), Some(Some(_))) {
            self.grow(piece);
        }
        match &mut self.pieces[piece] {
            Some(cells) => &mut cells[at..at + self.width],
            None => unreachable!("grow made it"),
        }
    }
    #[cold]
    fn grow(&mut self, piece: usize) {
        if piece >= self.pieces.len() {
            self.pieces.resize_with(piece + 1, || None);
        }
        self.pieces[piece] = Some(vec![self.empty; PIECE * self.width].into_boxed_slice());
    }
    /// Rows `range` that lie in a piece that exists, ascending.
    pub fn range(&self, range: Range<usize>) -> impl Iterator<Item = (usize, &[T])> + '_ {
        let first = (range.start / PIECE).min(self.pieces.len());
        let end = range.end.div_ceil(PIECE).clamp(first, self.pieces.len());
        let pieces = self.pieces[first..end].iter().enumerate();
        pieces
            .filter_map(move |(i, piece)| Some(((first + i) * PIECE, piece.as_deref()?)))
            .flat_map(|(base, cells)| {
                cells.chunks_exact(self.width.max(1)).enumerate().map(move |(r, c)| (base + r, c))
            })
            .filter(move |(index, _)| range.contains(index))
    }
    /// All rows of all pieces that exist, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[T])> + '_ {
        self.range(0..usize::MAX)
    }
    /// As [`Rows::range`], for writing.
    pub fn range_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (usize, &mut [T])> + '_ {
        let width = self.width.max(1);
        let first = (range.start / PIECE).min(self.pieces.len());
        let end = range.end.div_ceil(PIECE).clamp(first, self.pieces.len());
        let pieces = self.pieces[first..end].iter_mut().enumerate();
        pieces
            .filter_map(move |(i, piece)| Some(((first + i) * PIECE, piece.as_deref_mut()?)))
            .flat_map(move |(base, cells)| {
                cells.chunks_exact_mut(width).enumerate().map(move |(r, c)| (base + r, c))
            })
            .filter(move |(index, _)| range.contains(index))
    }
    /// Empties every row, keeps the memory.
    pub fn clear(&mut self) {
        for piece in self.pieces.iter_mut().flatten() {
            piece.fill(self.empty);
        }
    }
}

impl<T: Copy + PartialEq> PartialEq for Rows<T> {
    fn eq(&self, other: &Self) -> bool {
        let blank = |piece: &[T], empty: T| piece.iter().all(|c| *c == empty);
        let same = |i: usize| {
            let of = |t: &Self| t.pieces.get(i).is_some_and(Option::is_some);
            match (of(self), of(other)) {
                (false, false) => true,
                (true, true) => self.pieces[i] == other.pieces[i],
                (true, false) => self.pieces[i].as_deref().is_some_and(|p| blank(p, self.empty)),
                (false, true) => other.pieces[i].as_deref().is_some_and(|p| blank(p, other.empty)),
            }
        };
        self.width == other.width
            && self.empty == other.empty
            && (0..self.pieces.len().max(other.pieces.len())).all(same)
    }
}

impl<T: Copy + Eq> Eq for Rows<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_far_row_costs_one_piece() {
        let mut t = Rows::new(2, 0u8);
        t.row_mut(PIECE * 5000 + 7)[1] = 9;
        assert_eq!(t.row(PIECE * 5000 + 7), Some(&[0, 9][..]));
        assert_eq!(t.row(3), None);
        assert_eq!(t.pieces.iter().flatten().count(), 1);
    }

    #[test]
    fn equality_is_about_contents_not_growth() {
        let (mut a, mut b) = (Rows::new(1, 0u8), Rows::new(1, 0u8));
        a.row_mut(5)[0] = 1;
        b.row_mut(4 * PIECE)[0] = 0;
        assert_ne!(a, b);
        b.row_mut(5)[0] = 1;
        assert_eq!(a, b);
    }

    #[test]
    fn ranges_are_cut_at_both_ends() {
        let mut t = Rows::new(1, 0u32);
        for i in 0..3000 {
            t.row_mut(i)[0] = i as u32;
        }
        let seen: Vec<_> = t.range(1000..1050).map(|(i, c)| (i, c[0])).collect();
        assert_eq!(seen.len(), 50);
        assert_eq!((seen[0], seen[49]), ((1000, 1000), (1049, 1049)));
        t.range_mut(10..20).for_each(|(_, c)| c[0] = 0);
        assert_eq!(t.iter().filter(|(_, c)| c[0] == 0).map(|(i, _)| i).take(12).last(), Some(3000));
        assert_eq!(t.range(9_000_000..9_000_001).count(), 0);
    }
}
