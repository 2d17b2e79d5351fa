//! The common part of Tao's algorithms: when a node's references to a page are too many, and how
//! neighbours count.
//!
//! Tao, Schulz and Karl, sections 3.2 and 4. The paper leaves some choices open.
//!
//! # The threshold
//!
//! The paper: "For all migration schemes we use a constant threshold of two times of the average
//! references performed to a page". The difference between a page's biggest remote count and the
//! page's average must exceed the threshold. The paper does not say what the average is over.
//!
//! | form | reading |
//! |---|---|
//! | `share` | max > 2 · the other remote counts: section 4 says that dominant accesses are about twice the others |
//! | `literal` | max − avg > 2 · avg, avg over the page's N − 1 remote nodes |
//! | `literal-all` | the same over all N nodes |
//! | `others` | max > 2 · the average of the other remote counts |
//! | `constant` | max − avg > 2 · A, one A for all pages and schemes |
//!
//! The first four compare a page with itself. `literal` is max > 3 · avg, which is the page's whole
//! sum at the paper's N = 4: no page moves. The others send pages to and fro, because the home's
//! own references are unseen. A page at the seam of two threads' shares has one remote user, and
//! this user makes all of the references that are seen, wherever the page lives.
//!
//! `constant` has a scale of its own. A is the average of a remote node's references to a page,
//! over the pages that a remote node referenced in the interval. The largest A so far counts, so
//! that the threshold does not sink when pages have moved and remote references become rare.
//!
//! Moves and ping-pongs of Out-U from round robin on the paper's programs, with decisions at the
//! end of iterations (`homenode paper tao-readings`):
//!
//! | reading | FFT | LU | RADIX | WATER | SOR |
//! |---|---|---|---|---|---|
//! | the paper | 69, 0 | 16, 0 | 98, 0 | 48, 0 | 25, 0 |
//! | `share` | 151, 0 | 67, 21 | 385, 0 | 692, 630 | 526, 492 |
//! | `literal` | 0, 0 | 0, 0 | 0, 0 | 0, 0 | 0, 0 |
//! | `literal-all` | 151, 0 | 66, 20 | 385, 0 | 574, 520 | 526, 492 |
//! | `others` | 151, 0 | 71, 23 | 385, 0 | 827, 758 | 526, 492 |
//! | `constant` | 103, 0 | 16, 0 | 192, 0 | 12, 0 | 26, 0 |
//! | `constant`, counters until a move | 151, 0 | 27, 0 | 384, 0 | 128, 79 | 83, 49 |
//! | `constant`, A of all remote nodes together (`factor=600` on 4 nodes) | 7, 0 | 4, 0 | 0, 0 | 5, 0 | 0, 0 |
//! | `constant`, intervals of 1 ms | 105, 1 | 31, 7 | 547, 48 | 232, 186 | 30, 0 |
//! | `constant`, `adaptive` | 103, 0 | 19, 0 | 384, 0 | 28, 0 | 30, 0 |
//!
//! The numbers depend on the node on which round robin begins an array.
//!
//! # The weights
//!
//! They are not in the paper. We take w = 2^−d for the page at distance d. *Distance* is between
//! page numbers ([`Distance::Page`]), or between ranks among the pages that the algorithm looks at
//! ([`Distance::Rank`]). The paper weighs "according to the distance of a page", and says that
//! Out-W takes pages that are not directly neighbouring in virtual memory. By rank, pages that are
//! dealt round robin count as next neighbours though they are N pages apart, and pull each other.
//! Out-W then makes 164 moves in FFT, 43 of them back to where a page came from; by page number it
//! makes 103, none of them back (`homenode paper tao-readings`).
//!
//! # The counters
//!
//! The paper does not say whether counters begin anew. Here they count for one interval
//! ([`Counters::Interval`](crate::interval::Counters)), or until the page moves. Pages with fewer
//! references than `least` stay.
//!
//! # The intervals
//!
//! The paper does not say when the counters are looked at. All rows of the table but one are of
//! intervals that end with the program's iterations. With intervals of 1 ms on `smile`, pages of
//! WATER that several nodes use go to and fro, and so do some of RADIX.
//!
//! # The adaptive threshold
//!
//! This is the paper's future work. With `constant` and Out-U it moves what the fixed threshold
//! holds back. On `smile` SOR takes 0.0813 instead of 0.1169 s, RADIX 2.328 instead of 2.373 s, and
//! WATER 1.110 instead of 1.124 s. LU takes 0.0137 instead of 0.0131 s: three more moves come too
//! late there. FFT takes as long (`homenode paper tao-readings`).
//!
//! Here a move is wrong if the page would leave its new home at once. If more than an eighth of the
//! last interval's moves are wrong, the factor rises by a quarter. If none is wrong, and a page
//! with a majority was held back, the factor falls by a fifth. It stays between 1 and 8.

use homenode_model::{NodeId, PageNo, PageRange, Rows};

use crate::interval::Interval;

/// The comparison of the biggest count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// max > factor · (sum of the other remote counts).
    #[default]
    Share,
    /// max − avg > factor · avg, avg over the N−1 remote nodes: the paper's words.
    Literal,
    /// The same with avg over all N nodes.
    LiteralAll,
    /// max > factor · avg over the other N−2 remote nodes.
    Others,
    /// max − avg > factor · A: see [`Scale`].
    Constant,
}

/// What a page's distance to its neighbours is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distance {
    /// The difference of ranks among the pages that the algorithm looks at.
    #[default]
    Rank,
    /// The difference of page numbers.
    Page,
}

/// How neighbours count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The distance of the farthest that count, at most 16.
    pub reach: u32,
    /// What distance is.
    pub distance: Distance,
}

/// The threshold's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The comparison.
    pub form: Form,
    /// Its factor, in percent.
    pub factor: u32,
    /// Whether the factor follows the outcome of moves.
    pub adaptive: bool,
    /// References below which a page stays.
    pub least: u32,
}

/// References of remote nodes to a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) max: u32,
    pub(crate) sum: u32,
    pub(crate) node: u16,
}

impl Remote {
    /// Adds a node's references. Nodes come in ascending order, and the first among equals stays
    /// the biggest.
    #[inline]
    pub(crate) fn add(&mut self, node: usize, count: u32) {
        self.sum = self.sum.saturating_add(count);
        if count > self.max {
            (self.max, self.node) = (count, node as u16);
        }
    }
    pub(crate) const fn node(self) -> NodeId {
        NodeId(self.node)
    }
}

/// The average of a remote node's references to a page, over the pages that a remote node
/// referenced in an interval: the largest one so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scale {
    references: u64,
    /// Pages × remote nodes.
    cells: u64,
}

impl Scale {
    /// Looks at an interval on a machine of `nodes` nodes.
    pub(crate) fn see(&mut self, interval: &Interval, nodes: usize) {
        let (mut references, mut pages) = (0u64, 0u64);
        for (seen, counts) in interval.rows() {
            let remote = counts.iter().enumerate().filter(|(n, _)| *n != seen.home.index());
            let sum: u64 = remote.map(|(_, c)| u64::from(*c)).sum();
            references = references.saturating_add(sum);
            pages += u64::from(sum > 0);
        }
        let cells = pages * (nodes as u64).saturating_sub(1);
        let larger = u128::from(references) * u128::from(self.cells.max(1))
            > u128::from(self.references) * u128::from(cells.max(1));
        if larger {
            *self = Self { references, cells };
        }
    }
    /// Whether `references` / `share` > `factor` percent of the average.
    fn exceeded(self, references: i64, share: i64, factor: i64) -> bool {
        i128::from(references) * 100 * i128::from(self.cells.max(1))
            > i128::from(factor) * i128::from(self.references) * i128::from(share)
    }
    /// `factor` percent of the average, rounded down.
    pub(crate) fn times(self, factor: u32) -> u128 {
        u128::from(factor) * u128::from(self.references) / (100 * u128::from(self.cells.max(1)))
    }
}

impl Threshold {
    /// Whether the biggest count exceeds the threshold, on a machine of `nodes` nodes.
    pub(crate) fn exceeded(&self, by: Remote, nodes: usize, scale: Scale) -> bool {
        let (max, sum, nodes) = (i64::from(by.max), i64::from(by.sum), nodes as i64);
        let factor = i64::from(self.factor);
        let more = match self.form {
            Form::Share => max * 100 > factor * (sum - max),
            Form::Literal => (max * (nodes - 1) - sum) * 100 > factor * sum,
            Form::LiteralAll => (max * nodes - sum) * 100 > factor * sum,
            Form::Others => max * (nodes - 2).max(1) * 100 > factor * (sum - max),
            Form::Constant => {
                let remote = (nodes - 1).max(1);
                scale.exceeded(max * remote - sum, remote, factor)
            }
        };
        more && by.max > 0 && by.sum >= self.least
    }
    /// The same with known local references: the biggest count is compared with them instead of the
    /// average. In the literal forms and the constant one, the difference must exceed `factor`
    /// times the average.
    pub(crate) fn exceeded_beside(&self, by: Remote, local: u32, nodes: usize, scale: Scale) -> bool {
        let (max, sum, local) = (i64::from(by.max), i64::from(by.sum), i64::from(local));
        let factor = i64::from(self.factor);
        let more = match self.form {
            Form::Share | Form::Others => max * 100 > factor * local,
            Form::Literal => (max - local) * (nodes as i64 - 1).max(1) * 100 > factor * sum,
            Form::LiteralAll => (max - local) * nodes as i64 * 100 > factor * (sum + local),
            Form::Constant => scale.exceeded(max - local, 1, factor),
        };
        more && by.max > 0 && by.sum.saturating_add(by.max) / 2 >= self.least / 2 && by.sum >= self.least
    }
}

/// The outcome of moves, and the factor that follows from it. One byte a page.
#[derive(Clone, Debug)]
pub(crate) struct Adaptive {
    pages: Rows<u8>,
    on: bool,
    moves: u64,
    wrong: u64,
    held: u64,
    moves_before: u64,
}

impl Adaptive {
    const MOVED: u8 = 1;
    /// Bounds of the factor, in percent.
    const RANGE: core::ops::RangeInclusive<u32> = 100..=800;

    pub(crate) const fn new(on: bool) -> Self {
        Self { pages: Rows::new(1, 0), on, moves: 0, wrong: 0, held: 0, moves_before: 0 }
    }
    /// Notes a page that was looked at: whether it goes, and whether it stays although one node has
    /// a majority.
    #[inline]
    pub(crate) fn saw(&mut self, page: PageNo, goes: bool, held: bool) {
        if !self.on {
            return;
        }
        let moved = self.pages.row(page.index()).is_some_and(|r| r[0] == Self::MOVED);
        self.moves += u64::from(goes);
        self.wrong += u64::from(goes && moved);
        self.held += u64::from(held);
        if goes != moved {
            self.pages.row_mut(page.index())[0] = if goes { Self::MOVED } else { 0 };
        }
    }
    /// Adapts the factor at the end of an interval.
    pub(crate) fn adapt(&mut self, factor: &mut u32) {
        if !self.on {
            return;
        }
        if self.wrong * 8 > self.moves_before {
            *factor += *factor / 4;
        } else if self.wrong == 0 && self.held > 0 {
            *factor -= *factor / 5;
        }
        *factor = (*factor).clamp(*Self::RANGE.start(), *Self::RANGE.end());
        self.moves_before = self.moves;
        (self.moves, self.wrong, self.held) = (0, 0, 0);
    }
    pub(crate) fn free(&mut self, pages: PageRange) {
        self.pages.range_mut(pages.indices()).for_each(|(_, row)| row[0] = 0);
    }
}

/// Σ over d ≤ `reach` of 2^−d (c(i−d) + c(i+d)), and c(i) once, for each i: the relative references
/// of Out-W and In-W, rounded down. `f` gets (i, sum). The work is linear, because the sum over a
/// window follows exactly from its neighbour's: each window's lowest weight is 1 in units of
/// 2^−reach.
fn relative(reach: u32, counts: &[u32], mut f: impl FnMut(usize, u32)) {
    let far = reach as usize;
    let at = |i: usize| u64::from(counts.get(i).copied().unwrap_or(0));
    // Behind: Σ c(i−d) 2^(reach−d). Ahead: the same of c(i+d).
    let mut behind = 0u64;
    let mut ahead = (0..=far).map(|d| at(d) << (far - d)).sum::<u64>();
    for (i, count) in counts.iter().enumerate() {
        let lost = if i > far { at(i - far - 1) } else { 0 };
        let own = u64::from(*count) << reach;
        behind = own + (behind - lost) / 2;
        f(i, u32::try_from((behind + ahead - own) >> reach).unwrap_or(u32::MAX));
        ahead = (ahead - own) * 2 + at(i + far + 1);
    }
}

/// The same with the distance of page numbers, which ascend. The work is `reach` for each page.
fn relative_by_page(reach: u32, pages: &[u64], counts: &[u32], mut f: impl FnMut(usize, u32)) {
    let far = u64::from(reach);
    let weighed = |from: u64, at: usize| match pages[at].abs_diff(from) {
        d if d <= far => Some(u64::from(counts[at]) << (far - d)),
        _ => None,
    };
    for (i, page) in pages.iter().copied().enumerate() {
        let behind = (0..i).rev().map_while(|j| weighed(page, j));
        let ahead = (i..pages.len()).map_while(|j| weighed(page, j));
        f(i, u32::try_from(behind.chain(ahead).sum::<u64>() >> reach).unwrap_or(u32::MAX));
    }
}

impl Weights {
    /// Relative references of a node to pages, whose numbers ascend, from its references to each.
    /// `f` gets the page's index and the sum.
    pub(crate) fn relative(self, pages: &[u64], counts: &[u32], f: impl FnMut(usize, u32)) {
        match self.distance {
            Distance::Rank => relative(self.reach, counts, f),
            Distance::Page => relative_by_page(self.reach, pages, counts, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use homenode_model::AccessKind;
    use proptest::prelude::*;

    const T: Threshold = Threshold { form: Form::Share, factor: 200, adaptive: false, least: 0 };

    const NO_SCALE: Scale = Scale { references: 0, cells: 0 };

    /// References of four nodes to pages that live on node 0.
    fn interval(pages: &[[u32; 4]]) -> Interval {
        let mut interval = Interval::new(4);
        for (page, counts) in (0..).map(PageNo).zip(pages) {
            for (node, count) in (0..).map(NodeId).zip(counts) {
                interval.add(page, NodeId(0), node, AccessKind::Read, *count);
            }
        }
        interval
    }

    fn remote(counts: &[u32]) -> Remote {
        let mut by = Remote::default();
        counts.iter().enumerate().for_each(|(n, c)| by.add(n, *c));
        by
    }

    #[test]
    fn two_thirds_is_the_line() {
        assert!(!T.exceeded(remote(&[20, 5, 5]), 4, NO_SCALE));
        assert!(T.exceeded(remote(&[21, 5, 5]), 4, NO_SCALE));
        assert!(!T.exceeded(remote(&[0, 0, 0]), 4, NO_SCALE));
        assert!(!Threshold { least: 32, ..T }.exceeded(remote(&[21, 5, 5]), 4, NO_SCALE));
    }

    #[test]
    fn read_literally_nothing_moves_on_four_nodes() {
        let literal = Threshold { form: Form::Literal, ..T };
        assert!(!literal.exceeded(remote(&[1000, 0, 0]), 4, NO_SCALE));
        assert!(literal.exceeded(remote(&[1000, 0, 0, 0]), 5, NO_SCALE));
        assert!(Threshold { form: Form::LiteralAll, ..T }.exceeded(remote(&[1000, 0, 0]), 4, NO_SCALE));
        assert!(Threshold { form: Form::Others, ..T }.exceeded(remote(&[21, 10, 10]), 4, NO_SCALE));
    }

    #[test]
    fn the_constant_is_the_largest_average_of_remote_references() {
        let constant = Threshold { form: Form::Constant, ..T };
        let mut scale = Scale::default();
        // Nine references in six cells; a page that only its home references does not count.
        scale.see(&interval(&[[1000, 6, 0, 0], [0, 1, 1, 1], [500, 0, 0, 0]]), 4);
        // max - avg > 2 * 1.5: 4.5 - 1.5 is not more, 6 - 2 is.
        assert!(!constant.exceeded(remote(&[9, 9, 0]), 4, scale));
        assert!(!constant.exceeded(remote(&[4, 0, 0]), 4, scale));
        assert!(constant.exceeded(remote(&[5, 0, 0]), 4, scale));
        assert!(!constant.exceeded_beside(remote(&[9, 0, 0]), 6, 4, scale));
        assert!(constant.exceeded_beside(remote(&[10, 0, 0]), 6, 4, scale));
        assert_eq!(scale.times(300), 4, "4.5, rounded down");
        let before = scale;
        scale.see(&interval(&[[0, 3, 0, 0]]), 4);
        assert_eq!(scale, before, "a smaller average changes nothing");
        scale.see(&interval(&[[0, 30, 0, 0]]), 4);
        assert!(
            !constant.exceeded(remote(&[30, 0, 0]), 4, scale)
                && constant.exceeded(remote(&[31, 0, 0]), 4, scale)
        );
    }

    #[test]
    fn a_seam_page_stays_where_the_threshold_is_constant() {
        // The page's home makes 1000 references, unseen; one neighbour makes 200.
        let seam = remote(&[200, 0, 0]);
        let constant = Threshold { form: Form::Constant, ..T };
        let mut scale = Scale::default();
        scale.see(&interval(&[[0, 1000, 0, 0], [0, 0, 1000, 0], [1000, 200, 0, 0]]), 4);
        assert!(T.exceeded(seam, 4, scale), "compared with itself the page goes");
        assert!(!constant.exceeded(seam, 4, scale));
        assert!(constant.exceeded(remote(&[1000, 0, 0]), 4, scale), "a page that belongs elsewhere goes");
    }

    #[test]
    fn the_factor_follows_what_comes_of_moves() {
        let mut adaptive = Adaptive::new(true);
        let mut factor = 200;
        (0..10).for_each(|p| adaptive.saw(PageNo(p), true, false));
        adaptive.adapt(&mut factor);
        assert_eq!(factor, 200);
        (0..10).for_each(|p| adaptive.saw(PageNo(p), p < 2, false));
        adaptive.adapt(&mut factor);
        assert_eq!(factor, 250, "2 of 10 were wrong");
        (0..20).for_each(|_| {
            adaptive.saw(PageNo(5), false, true);
            adaptive.adapt(&mut factor);
        });
        assert_eq!(factor, 100);
    }

    proptest! {
        #[test]
        fn relative_references_are_the_weighted_sum(
            counts in proptest::collection::vec(prop_oneof![0u32..50, any::<u32>()], 0..60),
            reach in 0u32..=8,
        ) {
            let mut got = Vec::new();
            relative(reach, &counts, |i, sum| got.push((i, sum)));
            for (i, sum) in got.iter().copied() {
                let weigh = |(j, c): (usize, &u32)| match i.abs_diff(j) as u32 {
                    d if d <= reach => u64::from(*c) << (reach - d),
                    _ => 0,
                };
                let want: u64 = counts.iter().enumerate().map(weigh).sum();
                prop_assert_eq!(u64::from(sum), (want >> reach).min(u64::from(u32::MAX)));
            }
            prop_assert_eq!(got.len(), counts.len());
        }

        #[test]
        fn pages_in_a_row_are_as_far_apart_as_their_ranks(
            counts in proptest::collection::vec(0u32..1000, 0..60),
            reach in 0u32..=8,
            first in 0u64..1000,
            apart in 9u64..20,
        ) {
            let sums = |distance, apart: u64| {
                let pages: Vec<u64> = (0..counts.len() as u64).map(|i| first + i * apart).collect();
                let mut got = Vec::new();
                Weights { reach, distance }.relative(&pages, &counts, |i, sum| got.push((i, sum)));
                got
            };
            prop_assert_eq!(sums(Distance::Page, 1), sums(Distance::Rank, 1));
            // Pages that are farther apart than the reach are not neighbours.
            let alone: Vec<(usize, u32)> = counts.iter().copied().enumerate().collect();
            prop_assert_eq!(sums(Distance::Page, apart), alone);
        }
    }
}
