//! Which indices of a distributed array each thread of a team gets.
//!
//! # Algorithm
//!
//! With as many threads as parts, or more, thread `t` of `T` works on part `⌊t · P / T⌋` of `P`.
//! The threads of a part divide its indices of the outermost distributed dimension. With fewer
//! threads than parts, the outermost distributed dimension alone is divided, and each thread gets
//! all indices of the others.
//!
//! # Properties
//!
//! - The shares of a team are a partition of the array, whatever the team's size.
//! - A share is a product: the indices of one dimension do not depend on those of another. So
//!   nested loops may ask for each dimension by itself.

use crate::distribution::{DIMENSIONS, DimensionFormat, DistributedArray, DistributedDimension, balanced};
use crate::space::Run;

/// Indices of one dimension: those of neighbouring parts, of which one of several threads gets its
/// portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The first part.
    begin: u64,
    /// One past the last part.
    end: u64,
    /// The thread's number among those that divide the parts' indices.
    rank: u64,
    /// How many threads divide them.
    of: u64,
}

impl Piece {
    const fn all(dim: &DistributedDimension) -> Self {
        Self { begin: 0, end: dim.parts(), rank: 0, of: 1 }
    }

    /// The piece of a thread where `team` threads divide one dimension.
    fn of_team(parts: u64, thread: u64, team: u64) -> Self {
        if team >= parts {
            let part = thread * parts / team;
            let first = (part * team).div_ceil(parts);
            let next = ((part + 1) * team).div_ceil(parts);
            Self { begin: part, end: part + 1, rank: thread - first, of: next - first }
        } else {
            let border = |t: u64| (t * parts).div_ceil(team);
            Self { begin: border(thread), end: border(thread + 1), rank: 0, of: 1 }
        }
    }

    /// The run with this number, in ascending order. `None` behind the last one.
    fn run(&self, dim: &DistributedDimension, at: u64) -> Option<Run> {
        let is_all = self.begin == 0 && self.end == dim.parts() && self.of == 1;
        let run = match dim.spec() {
            DimensionFormat::Cyclic(size) if !is_all => {
                let round = at.checked_mul(self.of)?.checked_add(self.rank)?;
                let chunk = round.checked_mul(dim.parts())?.checked_add(self.begin)?;
                let begin = chunk.checked_mul(size)?;
                let width = (self.end - self.begin).saturating_mul(size);
                Run { begin, end: begin.saturating_add(width).min(dim.extent()) }
            }
            _ if at > 0 => return None,
            _ => {
                let (low, high) = match dim.spec() {
                    DimensionFormat::Cyclic(_) => (0, dim.extent()),
                    _ => (dim.border(self.begin), dim.border(self.end)),
                };
                let units = (high - low).div_ceil(dim.unit());
                let border = |rank| {
                    let indices = balanced(units, self.of, rank).saturating_mul(dim.unit());
                    (low + indices.min(high - low)).min(high)
                };
                Run { begin: border(self.rank), end: border(self.rank + 1) }
            }
        };
        (!run.is_empty()).then_some(run)
    }
}

/// What one thread gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadShare<'a> {
    array: &'a DistributedArray,
    pieces: [Piece; DIMENSIONS],
    part: u64,
}

impl<'a> ThreadShare<'a> {
    /// The share of thread `thread` of `team`; `None` if there is no such thread.
    pub fn new(array: &'a DistributedArray, thread: u32, team: u32) -> Option<Self> {
        if thread >= team {
            return None;
        }
        let (thread, team) = (u64::from(thread), u64::from(team));
        let first = array.first_distributed();
        let mut pieces = [Piece { begin: 0, end: 1, rank: 0, of: 1 }; DIMENSIONS];
        for (piece, dim) in pieces.iter_mut().zip(array.dims()) {
            *piece = Piece::all(dim);
        }
        let parts = array.parts();
        let part = thread * parts / team;
        if team >= parts {
            let whole = Piece::of_team(parts, thread, team);
            for (piece, at) in pieces.iter_mut().zip(array.coordinates(part)) {
                (piece.begin, piece.end) = (at, at + 1);
            }
            (pieces[first].rank, pieces[first].of) = (whole.rank, whole.of);
        } else {
            pieces[first] = Piece::of_team(array.dims()[first].parts(), thread, team);
        }
        Some(Self { array, pieces, part })
    }

    /// The run with this number, in ascending order, of the thread's indices of a dimension. `None`
    /// behind the last one, or if there is no such dimension.
    pub fn run(&self, dim: usize, at: u64) -> Option<Run> {
        self.pieces[..].get(dim)?.run(self.array.dims().get(dim)?, at)
    }

    /// Whether the thread's indices of a dimension are one range, whatever the team.
    pub fn is_one_range(&self, dim: usize) -> bool {
        let Some(d) = self.array.dims().get(dim) else { return false };
        !matches!(d.spec(), DimensionFormat::Cyclic(_)) || self.pieces[dim] == Piece::all(d)
    }

    /// The part that the thread works on; the first one of several.
    pub const fn part(&self) -> u64 {
        self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::tests::{any_array, every_index};
    use proptest::prelude::*;

    /// All indices of a dimension that a thread gets.
    fn indices(share: &ThreadShare<'_>, dim: usize) -> Vec<u64> {
        (0..).map_while(|at| share.run(dim, at)).flat_map(|r| r.begin..r.end).collect()
    }

    #[test]
    fn threads_of_a_node_divide_its_block() {
        let array = DistributedArray::new(&[100], &[DimensionFormat::Block], 8, 2).unwrap();
        let run = |t, team| ThreadShare::new(&array, t, team).unwrap().run(0, 0).unwrap();
        assert_eq!((run(0, 4), run(1, 4)), (Run { begin: 0, end: 25 }, Run { begin: 25, end: 50 }));
        assert_eq!((run(0, 3), run(1, 3)), (Run { begin: 0, end: 25 }, Run { begin: 25, end: 50 }));
        assert_eq!(run(2, 3), Run { begin: 50, end: 100 });
        assert_eq!(run(0, 1), Run { begin: 0, end: 100 });
        assert_eq!(ThreadShare::new(&array, 4, 4), None);
    }

    #[test]
    fn threads_of_a_node_deal_its_chunks_on() {
        let array = DistributedArray::new(&[20], &[DimensionFormat::Cyclic(2)], 8, 2).unwrap();
        let share = |t, team| indices(&ThreadShare::new(&array, t, team).unwrap(), 0);
        assert_eq!(share(0, 2), [0, 1, 4, 5, 8, 9, 12, 13, 16, 17]);
        assert_eq!(share(0, 4), [0, 1, 8, 9, 16, 17]);
        assert_eq!(share(1, 4), [4, 5, 12, 13]);
        assert_eq!(share(2, 4), [2, 3, 10, 11, 18, 19]);
        assert!(!ThreadShare::new(&array, 0, 2).unwrap().is_one_range(0));
        assert!(ThreadShare::new(&array, 0, 1).unwrap().is_one_range(0));
    }

    proptest! {
        #[test]
        fn every_element_belongs_to_one_thread(
            (extents, specs) in any_array(), parts in 1u64..9, team in 1u32..12,
        ) {
            let array = DistributedArray::new(&extents, &specs, 8, parts).unwrap();
            let mut owners = std::collections::BTreeMap::new();
            for thread in 0..team {
                let share = ThreadShare::new(&array, thread, team).unwrap();
                let each: Vec<Vec<u64>> = (0..extents.len()).map(|d| indices(&share, d)).collect();
                let mut all = vec![vec![]];
                for mine in &each {
                    all = all
                        .into_iter()
                        .flat_map(|i: Vec<u64>| {
                            mine.iter().map(move |n| i.iter().copied().chain([*n]).collect())
                        })
                        .collect();
                }
                for element in all {
                    // The thread works on elements of its own part.
                    if u64::from(team) >= array.parts() {
                        prop_assert_eq!(array.owner(&element), share.part());
                    }
                    prop_assert_eq!(owners.insert(element, thread), None);
                }
            }
            prop_assert_eq!(owners.len(), every_index(&extents).len());
        }

        #[test]
        fn ranges_of_all_threads_are_the_extent_in_order(
            extent in 1u64..500, parts in 1u64..9, team in 1u32..20, page in 0u32..4,
        ) {
            let page = 8 << page;
            let array = DistributedArray::padded(&[extent], &[DimensionFormat::Block], 8, parts, page).unwrap();
            let mut next = 0;
            for thread in 0..team {
                let share = ThreadShare::new(&array, thread, team).unwrap();
                prop_assert!(share.is_one_range(0));
                if let Some(run) = share.run(0, 0) {
                    prop_assert_eq!(run.begin, next);
                    next = run.end;
                    prop_assert_eq!(share.run(0, 1), None);
                }
            }
            prop_assert_eq!(next, extent);
        }
    }
}
