//! The rounds of a sequence that is known to its end.
//!
//! # Problem
//!
//! A recording of a program that never tells of its iterations still has them: its regions repeat.
//! Results must leave the initialisation out, so the first round counts, too.
//! [`Rounds`](crate::Rounds) knows a loop only from its second or third round on, and may take an
//! inner loop for the outer one until then.
//!
//! # Approach
//!
//! 1. All symbols go through [`Nest`] once. Of all loops the one whose rounds cover the most time
//!    is chosen.
//! 2. They go through it a second time, and the places where rounds of that loop end are noted.
//! 3. Rounds that are themselves made of equal parts are split: a round may begin in the middle of
//!    an inner repeat, and then two of the program's look like one.
//! 4. Rounds before the first one that was seen are added as long as the symbols are the same: a
//!    warm-up in front may have hidden them.
//!
//! # Properties
//!
//! - The outer loop wins against the loops within it: it covers more time.
//! - Rounds that cover less than half of the time are no rounds: the program does most of its work
//!   elsewhere.
//! - Fewer than [`LEAST`] rounds are no rounds: an initialisation often does once what the solver
//!   does each time.
//! - Memory: 12 bytes a symbol. Of more than [`MOST`] symbols nothing is known.

use alloc::vec::Vec;
use core::cmp::Reverse;

use homenode_model::Ns;

use crate::nest::{LoopRound, Nest};

/// Fewer rounds than these are taken for a coincidence.
pub const LEAST: usize = 3;
/// Most symbols that are kept: 200 MB.
pub const MOST: usize = 1 << 24;

/// Where the rounds of a sequence are: the index of the symbol with which each begins, and last the
/// index one past the last symbol of the last round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begins(pub Vec<usize>);

impl Begins {
    /// How many rounds there are.
    pub fn rounds(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}

/// Takes a sequence and finds its rounds at its end.
#[derive(Debug, Default)]
pub struct Hindsight {
    symbols: Vec<u32>,
    /// When each came, on the clock by which rounds are weighed.
    times: Vec<Ns>,
    full: bool,
}

/// A loop of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    shape: u64,
    /// Index of its first symbol.
    first: usize,
    /// One past its last.
    end: usize,
}

/// In front of all symbols, so that each loop has something below it. Real symbols are smaller.
const NOTHING: u32 = u32::MAX;

impl Hindsight {
    /// Nothing seen yet.
    pub const fn new() -> Self {
        Self { symbols: Vec::new(), times: Vec::new(), full: false }
    }

    /// The next symbol came at `now`. The clock must not go back; it is best one that stands still
    /// outside of what the rounds should cover.
    pub fn push(&mut self, symbol: u32, now: Ns) {
        if self.symbols.len() < MOST {
            self.symbols.push(symbol.min(NOTHING - 1));
            self.times.push(now);
        } else {
            self.full = true;
        }
    }

    /// The rounds, at `end`; `None` where there are none.
    pub fn finish(mut self, end: Ns) -> Option<Begins> {
        if self.full {
            return None;
        }
        self.times.push(end);
        let (two, more) = self.longest();
        // Two rounds may have a third in front.
        [more, two].into_iter().flatten().find_map(|found| self.begins(found))
    }

    fn time(&self, first: usize, end: usize) -> Ns {
        self.times[end] - self.times[first]
    }

    /// Pushes all symbols; tells of each round that ended, with the index of its last symbol.
    fn for_rounds(&self, mut f: impl FnMut(usize, LoopRound)) {
        let mut nest = Nest::new();
        nest.push(NOTHING, Ns::ZERO);
        // A symbol's time is its index plus 1: what a round tells of time is then where it begins.
        for (i, symbol) in self.symbols.iter().enumerate() {
            if let Some(round) = nest.push(*symbol, Ns(i as u64 + 1)).round {
                f(i, round);
            }
        }
    }

    /// The loops that cover most, of those of two rounds and of those of more.
    fn longest(&self) -> (Option<Found>, Option<Found>) {
        let (mut two, mut more) = (None, None);
        self.for_rounds(|i, round| {
            let found = Found { shape: round.shape, first: round.begin.0 as usize, end: i + 1 };
            let best: &mut Option<Found> = if round.rounds > 2 { &mut more } else { &mut two };
            // Of equals the later: it is the outer one, or the same loop with a round more.
            let time = |f: &Found| self.time(f.first, f.end);
            if best.as_ref().is_none_or(|b| time(&found) >= time(b)) {
                *best = Some(found);
            }
        });
        (two, more)
    }

    /// Makes of each round as many as it has equal parts, where all are of one length.
    fn split(&self, begins: &[usize]) -> Vec<usize> {
        if let [first, second, .., end] = *begins {
            let length = second - first;
            let even = begins.windows(2).all(|w| w[1] - w[0] == length);
            let repeats = |part: &usize| {
                length.is_multiple_of(*part)
                    && self.symbols[first..end - part] == self.symbols[first + part..end]
            };
            if even && let Some(part) = (1..length).find(repeats) {
                return (first..=end).step_by(part).collect();
            }
        }
        begins.to_vec()
    }

    /// Adds rounds in front that have the symbols of the first.
    fn extend(&self, begins: &[usize]) -> Vec<usize> {
        let mut all = Vec::new();
        if let [first, second, ..] = *begins {
            let mut at = first;
            while let Some(earlier) = at.checked_sub(second - first)
                && self.symbols[earlier..at] == self.symbols[first..second]
            {
                all.push(earlier);
                at = earlier;
            }
        }
        all.reverse();
        all.extend(begins);
        all
    }

    /// The rounds as the program has them, and not as they happened to be recognised.
    fn refine(&self, begins: &[usize]) -> Option<Vec<usize>> {
        // The first rounds may be of odd lengths, the later ones all alike.
        let last = begins.windows(2).next_back().map(|w| w[1] - w[0])?;
        let odd = begins.windows(2).rposition(|w| w[1] - w[0] != last).map_or(0, |i| i + 1);
        let of = |skipped: usize| self.extend(&self.split(&begins[skipped..]));
        [of(0), of(odd)].into_iter().min_by_key(|all| (Reverse(all.len()), all[0]))
    }

    fn begins(&self, found: Found) -> Option<Begins> {
        let mut begins: Vec<usize> = Vec::new();
        self.for_rounds(|i, round| {
            if (round.shape, round.begin.0 as usize) == (found.shape, found.first) && i < found.end {
                if begins.is_empty() {
                    begins.extend([found.first, i + 1 - round.took.0 as usize]);
                }
                begins.push(i + 1);
            }
        });
        let begins = self.refine(&begins)?;
        let covered = self.time(begins[0], found.end);
        let all = self.time(0, self.symbols.len());
        (begins.len() > LEAST && covered.times(2) >= all).then_some(Begins(begins))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// Every symbol takes the time that stands behind it.
    fn find(symbols: &[(u32, u64)]) -> Option<Begins> {
        let (mut all, mut now) = (Hindsight::new(), 0);
        for (symbol, time) in symbols {
            all.push(*symbol, Ns(now));
            now += time;
        }
        all.finish(Ns(now))
    }

    fn same(symbols: impl IntoIterator<Item = u32>) -> Vec<(u32, u64)> {
        symbols.into_iter().map(|s| (s, 10)).collect()
    }

    #[test]
    fn the_first_round_is_known_and_initialisation_is_left_out() {
        let body = same([5, 6, 6, 7]);
        let mut all = same([1, 2, 1, 3]);
        all.extend(body.repeat(10));
        all.extend(same([9]));
        let begins = find(&all).unwrap();
        assert_eq!(begins.rounds(), 10);
        assert_eq!(begins.0[..3], [4, 8, 12]);
        assert_eq!(begins.0[10], 44);
    }

    #[test]
    fn one_region_a_round_is_a_round() {
        let begins = find(&same([3].repeat(7))).unwrap();
        assert_eq!(begins.0, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn the_outer_loop_wins_though_its_inner_loops_vary() {
        let mut all = same([8]);
        let mut expected = vec![];
        for inner in [25, 30, 7, 2, 19] {
            expected.push(all.len());
            all.extend(same([1]));
            all.extend(same([2, 3].repeat(inner)));
            all.extend(same([4]));
        }
        expected.push(all.len());
        assert_eq!(find(&all).unwrap().0, expected);
    }

    #[test]
    fn v_cycles_are_found_from_the_first_on() {
        // NAS MG, class W, as in the test of the same program in `rounds`.
        let with = |r: u32| [(r, 10), (r + 20, 10), (r + 40, 1)];
        let cycle = |top: u32| {
            let mut v: Vec<(u32, u64)> = (0..top - 1).flat_map(|_| with(5)).collect();
            v.push((1, 1));
            v.extend(with(7));
            for _ in 2..top {
                v.extend([(1, 1), (9, 5)]);
                v.extend(with(10));
                v.extend(with(7));
            }
            v.push((9, 20));
            v.extend(with(2));
            v.extend(with(7));
            v
        };
        let residual = with(2);
        let mut all = [(0, 3)].repeat(14);
        all.push((1, 5));
        all.extend(residual);
        all.extend(cycle(7));
        all.extend(residual);
        all.push((1, 5));
        all.extend(residual);
        let mut body = cycle(7);
        body.extend(residual);
        let first = all.len();
        all.extend(body.repeat(4));
        let begins = find(&all).unwrap();
        assert_eq!((begins.rounds(), begins.0[0]), (4, first));
    }

    #[test]
    fn what_is_short_or_seldom_is_no_round() {
        assert_eq!(find(&[]), None);
        assert_eq!(find(&same([1, 2, 3, 4])), None);
        assert_eq!(find(&same([1, 2, 1, 2])), None, "twice is a coincidence");
        let mut all = same([1].repeat(10));
        all.push((2, 200));
        assert_eq!(find(&all), None, "most of the work is elsewhere");
        all[10].1 = 90;
        assert_eq!(find(&all).unwrap().rounds(), 10);
    }

    #[test]
    fn a_warm_up_is_a_round_and_a_whole_benchmark_run_twice_is_none() {
        let mut once = same([1]);
        once.extend(same([2, 3].repeat(6)));
        let begins = find(&once.repeat(2));
        assert_eq!(begins, None, "two rounds of everything, and no loop in it has half of the time");
        once.extend(same([2, 3].repeat(6)));
        assert_eq!(find(&[once.clone(), same([2, 3].repeat(30))].concat()).unwrap().rounds(), 42);
    }

    proptest! {
        #[test]
        fn begins_ascend_and_lie_within(symbols in proptest::collection::vec(0u32..4, 0..400)) {
            if let Some(Begins(begins)) = find(&same(symbols.iter().copied())) {
                prop_assert!(begins.len() > LEAST);
                prop_assert!(begins.is_sorted_by(|a, b| a < b));
                prop_assert!(*begins.last().unwrap() <= symbols.len());
            }
        }

        #[test]
        fn what_is_repeated_is_found(body in proptest::collection::vec(0u32..4, 1..24), init in 0usize..5) {
            let mut all = same((0..init as u32).map(|i| 90 + i));
            all.extend(same(body.repeat(40)));
            let begins = find(&all).unwrap();
            // Where the body itself repeats, its parts may be rounds.
            prop_assert!(begins.rounds() >= 38, "{} rounds", begins.rounds());
            prop_assert!(begins.0[0] <= init + body.len(), "{begins:?}");
        }
    }
}
