//! The common part of Tao's algorithms: when a node's references to a page are too many, and how
//! neighbours count.
//!
//! Tao, Schulz and Karl, sections 3.2 and 4. The paper leaves some choices open. Ours are:
//!
//! - *The threshold.* The paper: "two times of the average references performed to a page",
//!   exceeded by the difference between the biggest count and the average. Read literally, max −
//!   avg > 2 · avg over the N−1 remote nodes is max > 3 · avg, which is the whole sum at the
//!   paper's N = 4: impossible. Section 4 gives the reason for the factor: dominant accesses are
//!   about two times more than the others. So by default a node dominates if it made more than two
//!   thirds of the remote references, that is, more than twice the others together
//!   ([`Form::Share`]). The literal forms exist, too.
//! - *The weights* are not in the paper. We take w = 2^−d for the page at distance d, up to d = 8.
//!   *Distance* is between ranks among the pages that the algorithm looks at and that were accessed
//!   in the interval.
//! - *How long counters count* is not in the paper. Here they count for one interval, and pages
//!   with fewer references than `least` stay.
//! - *The adaptive threshold* is the paper's future work. Here a move is wrong if the page would
//!   leave its new home at once. If more than an eighth of the last interval's moves are wrong, the
//!   factor rises by a quarter. If none is wrong, and a page with a majority was held back, the
//!   factor falls by a fifth. It stays between 1 and 8.

use homenode_model::{NodeId, PageNo, PageRange, Rows};

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

impl Threshold {
    /// Whether the biggest count exceeds the threshold, on a machine of `nodes` nodes.
    pub(crate) fn exceeded(&self, by: Remote, nodes: usize) -> bool {
        let (max, sum, nodes) = (i64::from(by.max), i64::from(by.sum), nodes as i64);
        let factor = i64::from(self.factor);
        let more = match self.form {
            Form::Share => max * 100 > factor * (sum - max),
            Form::Literal => (max * (nodes - 1) - sum) * 100 > factor * sum,
            Form::LiteralAll => (max * nodes - sum) * 100 > factor * sum,
            Form::Others => max * (nodes - 2).max(1) * 100 > factor * (sum - max),
        };
        more && by.max > 0 && by.sum >= self.least
    }
    /// The same with known local references: the biggest count is compared with them instead of the
    /// average. In the literal forms, the difference must exceed `factor` times the average.
    pub(crate) fn exceeded_beside(&self, by: Remote, local: u32, nodes: usize) -> bool {
        let (max, sum, local) = (i64::from(by.max), i64::from(by.sum), i64::from(local));
        let factor = i64::from(self.factor);
        let more = match self.form {
            Form::Share | Form::Others => max * 100 > factor * local,
            Form::Literal => (max - local) * (nodes as i64 - 1).max(1) * 100 > factor * sum,
            Form::LiteralAll => (max - local) * nodes as i64 * 100 > factor * (sum + local),
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
pub(crate) fn relative(reach: u32, counts: &[u32], mut f: impl FnMut(usize, u32)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const T: Threshold = Threshold { form: Form::Share, factor: 200, adaptive: false, least: 0 };

    fn remote(counts: &[u32]) -> Remote {
        let mut by = Remote::default();
        counts.iter().enumerate().for_each(|(n, c)| by.add(n, *c));
        by
    }

    #[test]
    fn two_thirds_is_the_line() {
        assert!(!T.exceeded(remote(&[20, 5, 5]), 4));
        assert!(T.exceeded(remote(&[21, 5, 5]), 4));
        assert!(!T.exceeded(remote(&[0, 0, 0]), 4));
        assert!(!Threshold { least: 32, ..T }.exceeded(remote(&[21, 5, 5]), 4));
    }

    #[test]
    fn read_literally_nothing_moves_on_four_nodes() {
        let literal = Threshold { form: Form::Literal, ..T };
        assert!(!literal.exceeded(remote(&[1000, 0, 0]), 4));
        assert!(literal.exceeded(remote(&[1000, 0, 0, 0]), 5));
        assert!(Threshold { form: Form::LiteralAll, ..T }.exceeded(remote(&[1000, 0, 0]), 4));
        assert!(Threshold { form: Form::Others, ..T }.exceeded(remote(&[21, 10, 10]), 4));
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
    }
}
