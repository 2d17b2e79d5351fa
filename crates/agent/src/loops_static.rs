//! Static loops of a team: who gets which range is decided once for each trip count.
//!
//! OpenMP promises that two loops with `schedule(static)` in one parallel region give a thread the
//! same iterations if their trip counts are the same. Programs rely on this promise, with `nowait`
//! on the first loop. So the first thread that starts a loop of a trip count decides for all
//! threads, and for all loops of that trip count until the region ends.

use std::sync::{Mutex, PoisonError};

use homenode_schedule::{Run, Shape, StaticDecision, ThreadExecution, exchange};

/// Trip counts of a region that are decided. Loops with other ones are the program's own.
const COUNTS: usize = 64;

/// The static loops of a team.
pub struct Statics(Mutex<Vec<Decided>>);

/// One trip count.
struct Decided {
    /// Of the first loop.
    shape: Shape,
    decision: StaticDecision,
    /// What is known of each thread, by its number; empty: nothing is wanted.
    rows: Vec<Option<ThreadExecution>>,
}

/// What a thread does in a static loop.
pub struct LoopTurn {
    /// The range that it executes; `None`: the run-time's own.
    pub range: Option<Run>,
    /// [`Statics::tell`] wants to know of this thread; `true`: with the run-time's own range.
    pub row: Option<bool>,
}

impl Statics {
    /// Of a team that has met none.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// A thread starts a loop. `decide` is asked for the first loop of a trip count; `None`:
    /// nothing is exchanged, and nothing is wanted.
    pub fn begin(
        &self,
        shape: &Shape,
        thread: u32,
        decide: impl FnOnce() -> Option<StaticDecision>,
    ) -> LoopTurn {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().position(|d| d.shape.space.count() == shape.space.count());
        let at = match known {
            Some(at) => at,
            None if all.len() == COUNTS => return LoopTurn { range: None, row: None },
            None => {
                let decision = decide();
                let threads = if decision.is_some() { shape.team as usize } else { 0 };
                let decision = decision.unwrap_or_default();
                all.push(Decided { shape: *shape, decision, rows: vec![None; threads] });
                all.len() - 1
            }
        };
        let Decided { decision, rows, .. } = &all[at];
        let number = decision.ranges.as_ref().and_then(|ranges| ranges.get(thread as usize));
        let range = number.map(|number| exchange::range(&shape.space, *number, shape.team));
        let is_wanted = matches!(rows.get(thread as usize), Some(None));
        LoopTurn { range, row: is_wanted.then_some(decision.record) }
    }

    /// A thread has started a loop. Returns the first loop of this trip count, what is known of all
    /// threads, and whether their ranges were exchanged, when the last thread has told.
    pub fn tell(&self, shape: &Shape, row: ThreadExecution) -> Option<(Shape, Vec<ThreadExecution>, bool)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let decided = all.iter_mut().find(|d| d.shape.space.count() == shape.space.count())?;
        let place = decided.rows.get_mut(row.thread as usize)?;
        *place = Some(row);
        if decided.rows.iter().any(Option::is_none) {
            return None;
        }
        let rows = std::mem::take(&mut decided.rows).into_iter().flatten().collect();
        Some((decided.shape, rows, decided.decision.ranges.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use homenode_schedule::Space;

    fn shape(first: i128, count: i128) -> Shape {
        let space = Space::excluding(first, first + count, 1).unwrap();
        Shape { site: 1, space, chunk: 0, team: 2 }
    }

    fn row(thread: u32) -> ThreadExecution {
        ThreadExecution { thread, ..ThreadExecution::default() }
    }

    #[test]
    fn a_trip_count_is_decided_once_for_all_threads_and_loops_of_a_region() {
        let statics = Statics::new();
        let (first, again) = (shape(0, 10), shape(5, 10));
        let decision = StaticDecision { ranges: Some(Arc::from(vec![1, 0])), record: false };
        let turn = statics.begin(&first, 0, || Some(decision));
        assert_eq!((turn.range, turn.row), (Some(Run { begin: 5, end: 10 }), Some(false)));
        assert!(statics.tell(&first, row(0)).is_none());
        // The same thread in another loop, before the other thread comes.
        let turn = statics.begin(&again, 0, || unreachable!());
        assert_eq!((turn.range, turn.row), (Some(Run { begin: 5, end: 10 }), None));
        let turn = statics.begin(&first, 1, || unreachable!());
        assert_eq!((turn.range, turn.row), (Some(Run { begin: 0, end: 5 }), Some(false)));
        assert_eq!(statics.tell(&first, row(1)), Some((first, vec![row(0), row(1)], true)));
        let turn = statics.begin(&again, 1, || unreachable!());
        assert_eq!((turn.range, turn.row), (Some(Run { begin: 0, end: 5 }), None));
    }

    #[test]
    fn what_was_the_programs_own_stays_so() {
        let statics = Statics::new();
        assert_eq!(statics.begin(&shape(0, 10), 0, || None).row, None);
        assert_eq!(statics.begin(&shape(0, 10), 1, || unreachable!()).range, None);
        let exchanged = || Some(StaticDecision { ranges: Some(Arc::from(vec![1, 0])), record: false });
        for count in 11..200 {
            let ranges = [0, 1].map(|thread| statics.begin(&shape(0, count), thread, exchanged).range);
            let is_known = usize::try_from(count - 10).unwrap() < COUNTS;
            assert_eq!(ranges.map(|r| r.is_some()), [is_known; 2], "{count}");
        }
    }
}
