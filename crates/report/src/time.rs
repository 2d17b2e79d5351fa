//! Intervals and iterations of a recording: what is timed, and how long a round takes.

use homenode_dataset::Dataset;
use homenode_dataset::tables::{Interval, IntervalNo, Iteration, IterationSource};
use homenode_model::Ns;
use homenode_statistics::Sorted;
use serde::Serialize;

use crate::serial;

/// The intervals of a recording, by number.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    intervals: Vec<Interval>,
    /// Whether the intervals are numbered 0, 1, 2, … without a gap.
    dense: bool,
}

impl Timeline {
    /// Reads the intervals of a data set. Of two with one number the first counts.
    pub fn of(set: &Dataset) -> Self {
        let mut intervals: Vec<Interval> = set.rows::<Interval>().collect();
        intervals.sort_by_key(|i| i.interval);
        intervals.dedup_by_key(|i| i.interval);
        let dense = intervals.iter().zip(0..).all(|(i, n)| i.interval.0 == n);
        Self { intervals, dense }
    }

    /// All intervals, by number.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// The index of an interval. A number behind the last one, which a cut-off recording may have,
    /// belongs to the last.
    pub fn position(&self, number: IntervalNo) -> usize {
        let last = self.intervals.len().saturating_sub(1);
        let at = match self.dense {
            true => number.0 as usize,
            false => self.intervals.partition_point(|i| i.interval < number),
        };
        at.min(last)
    }

    /// Whether the interval is listed.
    fn is_listed(&self, number: IntervalNo) -> bool {
        self.intervals.get(self.position(number)).is_some_and(|i| i.interval == number)
    }

    /// Whether results count the interval. An interval that the recording lost counts: nothing
    /// disappears without a word.
    pub fn is_timed(&self, number: IntervalNo) -> bool {
        !self.is_listed(number) || self.intervals[self.position(number)].timed
    }

    /// Whether there is a timed interval. Without one, results count everything.
    pub fn has_timed(&self) -> bool {
        self.intervals.iter().any(|i| i.timed)
    }

    /// What results leave out; none where they leave out nothing.
    pub fn left_out(&self) -> Option<LeftOut> {
        let first = self.intervals.iter().position(|i| i.timed)?;
        let last = self.intervals.iter().rposition(|i| i.timed)?;
        let length = |i: &Interval| i.end_ns - i.begin_ns;
        let part = |intervals: &[Interval]| {
            let untimed = intervals.iter().filter(|i| !i.timed);
            untimed.fold(IntervalGroup::default(), |part, i| IntervalGroup {
                intervals: part.intervals + 1,
                time_ns: part.time_ns + length(i),
            })
        };
        let left = LeftOut {
            initialisation: part(&self.intervals[..first]),
            between: part(&self.intervals[first..=last]),
            end: part(&self.intervals[last + 1..]),
        };
        (left != LeftOut::default()).then_some(left)
    }
}

/// Intervals that results leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Before the first timed interval.
    pub initialisation: IntervalGroup,
    /// Between timed intervals.
    pub between: IntervalGroup,
    /// Behind the last timed interval.
    pub end: IntervalGroup,
}

/// Some intervals together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IntervalGroup {
    /// How many.
    pub intervals: u64,
    /// Their time.
    #[serde(serialize_with = "serial::number")]
    pub time_ns: Ns,
}

/// The rounds of the outer loop, of all processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Iterations {
    /// How many.
    pub count: u64,
    /// How they were recognised. Told where at least one was told.
    #[serde(serialize_with = "serial::word")]
    pub source: IterationSource,
    /// Median of their times.
    #[serde(serialize_with = "serial::number")]
    pub median_ns: Ns,
    /// The shortest.
    #[serde(serialize_with = "serial::number")]
    pub shortest_ns: Ns,
    /// The longest.
    #[serde(serialize_with = "serial::number")]
    pub longest_ns: Ns,
}

impl Iterations {
    /// What the rounds have in common; none where there is no round.
    pub fn of(rounds: &[Iteration]) -> Option<Self> {
        let times = RoundTime::of(rounds.iter())?;
        let told = rounds.iter().any(|r| r.source == IterationSource::Told);
        let length = |r: &Iteration| r.end_ns - r.begin_ns;
        Some(Self {
            count: times.count,
            source: if told { IterationSource::Told } else { IterationSource::Found },
            median_ns: times.median_ns,
            shortest_ns: rounds.iter().map(length).min()?,
            longest_ns: rounds.iter().map(length).max()?,
        })
    }
}

/// The time of some rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RoundTime {
    /// How many rounds.
    pub count: u64,
    /// Median of their times.
    #[serde(serialize_with = "serial::number")]
    pub median_ns: Ns,
}

impl RoundTime {
    /// The median of the rounds; none where there is no round.
    pub fn of<'a>(rounds: impl Iterator<Item = &'a Iteration>) -> Option<Self> {
        let times = Sorted::of(rounds.map(|r| r.end_ns - r.begin_ns).collect::<Vec<Ns>>());
        Some(Self { count: times.count() as u64, median_ns: times.median()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(n: u32, timed: bool) -> Interval {
        Interval {
            interval: IntervalNo(n),
            begin_ns: Ns(u64::from(n) * 10),
            end_ns: Ns(u64::from(n) * 10 + 10),
            iteration: None,
            timed,
        }
    }

    fn timeline(intervals: &[Interval]) -> Timeline {
        let mut memory = homenode_dataset::MemoryDataset::default();
        intervals.iter().for_each(|i| homenode_dataset::RowSink::push(&mut memory, i).unwrap());
        let meta = homenode_dataset::DatasetMeta::new(
            homenode_dataset::RecordingKind::Simulated,
            homenode_dataset::Basis::Exact,
            Vec::new(),
        );
        Timeline::of(&Dataset::of_memory(meta, memory))
    }

    #[test]
    fn what_is_left_out_is_told_apart() {
        let t = timeline(&[false, false, true, false, true, false].map({
            let mut n = 0;
            move |timed| {
                n += 1;
                interval(n - 1, timed)
            }
        }));
        let left = t.left_out().unwrap();
        let parts = [left.initialisation, left.between, left.end].map(|p| (p.intervals, p.time_ns.0));
        assert_eq!(parts, [(2, 20), (1, 10), (1, 10)]);
        assert_eq!(timeline(&[interval(0, true)]).left_out(), None);
        assert_eq!(timeline(&[interval(0, false)]).left_out(), None, "then everything counts");
    }

    #[test]
    fn an_interval_that_is_not_listed_counts() {
        let gap = timeline(&[interval(0, false), interval(5, true)]);
        let timed = [0, 3, 5, 9].map(|n| gap.is_timed(IntervalNo(n)));
        assert_eq!(timed, [false, true, true, true]);
        assert_eq!([0, 3, 5, 9].map(|n| gap.position(IntervalNo(n))), [0, 1, 1, 1]);
        let none = timeline(&[]);
        assert!(none.is_timed(IntervalNo(7)) && none.position(IntervalNo(7)) == 0 && !none.has_timed());
    }
}
