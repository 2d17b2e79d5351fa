//! Which schedule is the fastest, by the times of a loop's executions.
//!
//! # Problem
//!
//! A loop is executed many times. Times vary by chance, and a schedule that is tried costs time
//! when
//! it is slow. The choice has to be made from few executions, and has to be made again when the
//! program changes.
//!
//! # Algorithm
//!
//! Candidates take turns. After [`FEWEST`] rounds or more, a candidate whose fastest execution is
//! slower than the slowest one of the best is dropped. The trial ends when one is left, or after
//! [`MOST`] rounds. Then the lowest median wins; the program's own schedule stays unless the
//! winner's median is 2 % lower.
//!
//! A kept schedule is watched: when several executions in a row take a quarter more or less than
//! the median that the schedule was kept for, the trial begins anew. Each trial needs twice as long
//! a row as the one before.
//!
//! Times are per iteration of the loop: trip counts may differ.

use homenode_statistics::Sorted;

/// A schedule that may be chosen. The order is that of the trial, and of two that are as fast the
/// first is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScheduleCandidate {
    /// The program's own.
    Own,
    /// Block.
    Block,
    /// Cyclic.
    Cyclic,
    /// The recorded one.
    Replay,
    /// By affinity.
    Affinity,
}

impl ScheduleCandidate {
    /// All.
    pub const ALL: [Self; 5] = [Self::Own, Self::Block, Self::Cyclic, Self::Replay, Self::Affinity];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Block => "block",
            Self::Cyclic => "cyclic",
            Self::Replay => "replay",
            Self::Affinity => "affinity",
        }
    }
}

/// Rounds of a trial before a candidate is dropped.
pub const FEWEST: usize = 3;
/// Rounds of a trial.
pub const MOST: usize = 9;
/// Executions in a row that begin a new trial, at first.
const ROW: u32 = 5;
/// … and at most.
const LONGEST_ROW: u32 = 1 << 12;

/// The choice for one loop.
#[derive(Clone, Debug)]
pub struct Auto {
    /// Candidates of this trial, with the times of their executions.
    left: Vec<(ScheduleCandidate, Vec<u64>)>,
    /// Whose turn it is.
    turn: usize,
    kept: Option<(ScheduleCandidate, u64)>,
    /// Executions in a row that took another time than the kept schedule was kept for.
    row: u32,
    row_of_retrial: u32,
    trials: u32,
}

impl Default for Auto {
    fn default() -> Self {
        Self::new()
    }
}

impl Auto {
    /// Nothing is known yet.
    pub fn new() -> Self {
        let mut auto = Self { left: Vec::new(), turn: 0, kept: None, row: 0, row_of_retrial: ROW, trials: 0 };
        auto.begin();
        auto
    }

    fn begin(&mut self) {
        self.left = ScheduleCandidate::ALL.iter().map(|c| (*c, Vec::with_capacity(MOST))).collect();
        (self.turn, self.kept, self.row) = (0, None, 0);
        self.trials += 1;
    }

    /// The schedule for the next execution. `possible` tells whether a schedule can be had; the
    /// program's own always can.
    pub fn choose(&mut self, possible: impl Fn(ScheduleCandidate) -> bool) -> ScheduleCandidate {
        if let Some((kept, _)) = self.kept {
            return if possible(kept) { kept } else { ScheduleCandidate::Own };
        }
        for _ in 0..self.left.len() {
            let (candidate, _) = self.left[self.turn % self.left.len()];
            self.turn = (self.turn + 1) % self.left.len();
            if candidate == ScheduleCandidate::Own || possible(candidate) {
                return candidate;
            }
        }
        ScheduleCandidate::Own
    }

    /// An execution under a schedule took so long: picoseconds an iteration.
    pub fn took(&mut self, candidate: ScheduleCandidate, time: u64) {
        if let Some((kept, median)) = self.kept {
            if kept == candidate {
                let is_other = time > median.saturating_add(median / 4) || time < median - median / 4;
                self.row = if is_other { self.row + 1 } else { 0 };
                if self.row >= self.row_of_retrial {
                    self.row_of_retrial = (self.row_of_retrial * 2).min(LONGEST_ROW);
                    self.begin();
                }
            }
            return;
        }
        if let Some((_, times)) = self.left.iter_mut().find(|(c, _)| *c == candidate) {
            times.push(time);
        }
        let tried = || self.left.iter().filter(|(_, times)| !times.is_empty());
        let rounds = tried().map(|(_, times)| times.len()).min().unwrap_or(0);
        if rounds < FEWEST {
            return;
        }
        // Candidates that were never possible while the others had their turns are none.
        self.left.retain(|(_, times)| !times.is_empty());
        let best = self.left.iter().min_by_key(|(c, times)| (median(times), *c));
        let slowest = best.and_then(|(_, times)| times.iter().max().copied()).unwrap_or(0);
        self.left.retain(|(_, times)| times.iter().min().is_some_and(|fastest| *fastest <= slowest));
        self.turn %= self.left.len().max(1);
        if self.left.len() <= 1 || rounds >= MOST {
            self.keep();
        }
    }

    fn keep(&mut self) {
        let of = |(c, times): &(ScheduleCandidate, Vec<u64>)| (median(times), *c);
        let Some((fastest, winner)) = self.left.iter().map(of).min() else { return };
        let own = self.left.iter().map(of).find(|(_, c)| *c == ScheduleCandidate::Own);
        self.kept = Some(match own {
            Some((time, c)) if fastest >= time - time / 50 => (c, time),
            _ => (winner, fastest),
        });
    }

    /// What is kept; `None`: a trial is under way.
    pub fn kept(&self) -> Option<ScheduleCandidate> {
        self.kept.map(|(c, _)| c)
    }

    /// Trials that have begun.
    pub const fn trials(&self) -> u32 {
        self.trials
    }
}

fn median(times: &[u64]) -> u64 {
    Sorted::of(times).upper_median().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `n` executions that take what `time` says, and returns who was tried.
    fn execute(
        auto: &mut Auto,
        n: usize,
        time: impl Fn(ScheduleCandidate, usize) -> u64,
    ) -> Vec<ScheduleCandidate> {
        (0..n)
            .map(|i| {
                let c = auto.choose(|_| true);
                auto.took(c, time(c, i));
                c
            })
            .collect()
    }

    #[test]
    fn the_fastest_is_kept_after_three_rounds_where_it_is_clear() {
        let mut auto = Auto::new();
        let time = |c, i| if c == ScheduleCandidate::Cyclic { 500 + i as u64 } else { 1000 + i as u64 };
        let tried = execute(&mut auto, 15, time);
        assert_eq!(tried[..5], ScheduleCandidate::ALL);
        assert_eq!(auto.kept(), Some(ScheduleCandidate::Cyclic));
        assert_eq!(execute(&mut auto, 50, time), [ScheduleCandidate::Cyclic; 50]);
        assert_eq!(auto.trials(), 1);
    }

    #[test]
    fn the_programs_own_stays_where_nothing_is_faster() {
        let mut auto = Auto::new();
        execute(&mut auto, 5 * MOST, |c, i| 1000 + (i as u64 * 37 + c as u64 * 11) % 40);
        assert_eq!(auto.kept(), Some(ScheduleCandidate::Own));
        let mut auto = Auto::new();
        execute(&mut auto, 5 * MOST, |c, i| 1000 - c as u64 + i as u64 % 10);
        assert_eq!(auto.kept(), Some(ScheduleCandidate::Own), "half a percent is none");
    }

    #[test]
    fn what_cannot_be_had_is_not_waited_for() {
        let mut auto = Auto::new();
        for _ in 0..3 * MOST {
            let c = auto.choose(|c| !matches!(c, ScheduleCandidate::Replay | ScheduleCandidate::Affinity));
            assert!(c < ScheduleCandidate::Replay, "{c:?}");
            auto.took(c, if c == ScheduleCandidate::Block { 10 } else { 20 });
        }
        assert_eq!(auto.kept(), Some(ScheduleCandidate::Block));
        assert_eq!(auto.choose(|_| false), ScheduleCandidate::Own);
    }

    #[test]
    fn another_time_begins_a_new_trial_each_time_later() {
        let mut auto = Auto::new();
        execute(&mut auto, 15, |c, _| if c == ScheduleCandidate::Block { 100 } else { 200 });
        assert_eq!(auto.kept(), Some(ScheduleCandidate::Block));
        // One slow execution is chance.
        auto.took(ScheduleCandidate::Block, 1000);
        auto.took(ScheduleCandidate::Block, 100);
        assert_eq!(auto.kept(), Some(ScheduleCandidate::Block));
        for _ in 0..ROW {
            auto.took(ScheduleCandidate::Block, 300);
        }
        assert_eq!((auto.kept(), auto.trials()), (None, 2));
        execute(&mut auto, 15, |c, _| if c == ScheduleCandidate::Cyclic { 100 } else { 200 });
        assert_eq!(auto.kept(), Some(ScheduleCandidate::Cyclic));
        for _ in 0..ROW {
            auto.took(ScheduleCandidate::Cyclic, 300);
        }
        assert_eq!(auto.trials(), 2, "twice as long a row");
        for _ in 0..ROW {
            auto.took(ScheduleCandidate::Cyclic, 300);
        }
        assert_eq!(auto.trials(), 3);
    }
}
