//! Which thread executed which iterations.

use crate::space::Run;

/// Runs of a table, over all threads. A table beyond the bound would take more memory (16 bytes a
/// run) than a recording of one loop is worth.
pub const MOST: usize = 1 << 20;

/// The iterations of each thread of a team, each iteration once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationTable {
    count: u64,
    threads: Vec<Box<[Run]>>,
}

impl IterationTable {
    /// Makes a table of `count` iterations from the runs of each thread, by thread number. Runs of
    /// a
    /// thread are sorted, and joined where one begins at the end of another: a replayed thread then
    /// executes the last iteration last.
    ///
    /// # Errors
    /// A sentence: an iteration is missing, or occurs twice, or is none of the loop's.
    pub fn new(count: u64, threads: Vec<Vec<Run>>) -> Result<Self, String> {
        let joined: Vec<Box<[Run]>> = threads.into_iter().map(join).collect();
        let mut all: Vec<Run> = joined.iter().flat_map(|runs| runs.iter().copied()).collect();
        all.sort_unstable();
        let mut next = 0;
        for run in all {
            if run.begin < next {
                return Err(format!("iteration {} occurs twice", run.begin));
            }
            if run.begin > next {
                return Err(format!("iteration {next} is missing"));
            }
            next = run.end;
        }
        match next.cmp(&count) {
            std::cmp::Ordering::Less => Err(format!("iteration {next} is missing")),
            std::cmp::Ordering::Greater => Err(format!("there is no iteration {count}")),
            std::cmp::Ordering::Equal => Ok(Self { count, threads: joined }),
        }
    }

    /// Trip count.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Threads of the team.
    pub fn team(&self) -> usize {
        self.threads.len()
    }

    /// The runs of a thread, in ascending order.
    #[inline]
    pub fn runs(&self, thread: usize) -> &[Run] {
        self.threads.get(thread).map_or(&[], |runs| runs)
    }
}

fn join(mut runs: Vec<Run>) -> Box<[Run]> {
    runs.retain(|run| !run.is_empty());
    runs.sort_unstable();
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.end == run.begin => last.end = run.end,
            _ => joined.push(run),
        }
    }
    joined.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(begin: u64, end: u64) -> Run {
        Run { begin, end }
    }

    #[test]
    fn runs_are_sorted_and_joined() {
        let table =
            IterationTable::new(10, vec![vec![run(8, 10), run(0, 2), run(2, 4)], vec![run(4, 8)], vec![]])
                .unwrap();
        assert_eq!(table.runs(0), [run(0, 4), run(8, 10)]);
        assert_eq!((table.runs(1), table.runs(2), table.runs(3)), (&[run(4, 8)][..], &[][..], &[][..]));
        assert_eq!((table.count(), table.team()), (10, 3));
    }

    #[test]
    fn a_table_that_is_not_each_iteration_once_is_refused() {
        let why = |count, threads| IterationTable::new(count, threads).unwrap_err();
        assert_eq!(why(4, vec![vec![run(0, 2)], vec![run(3, 4)]]), "iteration 2 is missing");
        assert_eq!(why(4, vec![vec![run(0, 3)], vec![run(2, 4)]]), "iteration 2 occurs twice");
        assert_eq!(why(4, vec![vec![run(0, 3)]]), "iteration 3 is missing");
        assert_eq!(why(4, vec![vec![run(0, 5)]]), "there is no iteration 4");
        assert!(IterationTable::new(0, vec![]).is_ok());
    }
}
