//! What a change of the source does to a program's accesses, as far as a recording of the unchanged
//! program can say it.
//!
//! # Approach
//! A [`Change`] stands between the recording and the caches. It leaves out accesses to some arrays,
//! or puts others in their place. All other accesses, synchronisation, marks and clocks stay as
//! they are, so that the time that a thread computes does not change.
//!
//! # Limits
//! Accesses to other arrays do not move with the loop that the change touches.

use std::ops::Range;
use std::sync::Arc;

use homenode_model::{LineNo, ThreadId};
use homenode_order::step::Mark;

/// The arrays whose accesses change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// By canonical page: the array's number in `arrays`, plus one. 0: the page's accesses stay.
    pub array: Vec<u16>,
    /// log2 of the lines of a page.
    pub page_lines: u32,
    /// What becomes of each array's accesses.
    pub arrays: Vec<Accesses>,
}

/// What becomes of the accesses to an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accesses {
    /// From the first round on, none comes from outside of parallel regions: a container that has
    /// its final size from the start copies no elements.
    WithoutCopies,
    /// In each region each thread goes once through its own block, line by line: the loops are
    /// swapped.
    InOrder(Walk),
}

/// How threads go through an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The canonical pages of the array in order.
    pub pages: Vec<u64>,
    /// The threads that use the array. Each has a block of the pages.
    pub users: Vec<ThreadId>,
    /// Recorded accesses of a thread in a region on average, after which the walk is over.
    pub visits: u64,
    /// Whether a line is written.
    pub writes: bool,
}

impl Walk {
    /// The thread's block: places in `pages`.
    pub fn block(&self, thread: ThreadId) -> Range<usize> {
        let (all, parts) = (self.pages.len(), self.users.len().max(1));
        match self.users.iter().position(|u| *u == thread) {
            Some(part) => part * all / parts..(part + 1) * all / parts,
            None => 0..0,
        }
    }
}

/// How far a thread's walk is.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    seen: u64,
    lines: u64,
}

/// A change under way.
#[derive(Debug)]
pub(crate) struct Changing {
    change: Arc<Change>,
    /// Regions that are open.
    open: u64,
    /// Whether a round has begun.
    marked: bool,
    /// By thread and array.
    walks: Vec<Progress>,
}

impl Changing {
    pub fn new(change: Arc<Change>, threads: usize) -> Self {
        let walks = vec![Progress::default(); threads * change.arrays.len()];
        Self { change, open: 0, marked: false, walks }
    }

    /// Passes on what becomes of an access. Says whether a line was touched for the first time.
    pub fn access(
        &mut self,
        thread: ThreadId,
        line: LineNo,
        write: bool,
        mut pass: impl FnMut(LineNo, bool) -> bool,
    ) -> bool {
        let change = &*self.change;
        let page = (line.0 >> change.page_lines) as usize;
        let array = change.array.get(page).map_or(0, |n| usize::from(*n));
        let Some(accesses) = array.checked_sub(1).and_then(|n| change.arrays.get(n)) else {
            return pass(line, write);
        };
        match accesses {
            Accesses::WithoutCopies if self.marked && self.open == 0 => false,
            Accesses::InOrder(walk) if self.open > 0 => {
                let at = thread.index() * change.arrays.len() + array - 1;
                let Some(progress) = self.walks.get_mut(at) else { return pass(line, write) };
                let block = walk.block(thread);
                let all = (block.len() as u64) << change.page_lines;
                progress.seen += 1;
                let until = u128::from(all) * u128::from(progress.seen) / u128::from(walk.visits.max(1));
                let until = u64::try_from(until).unwrap_or(all).min(all);
                let mut new = false;
                for n in progress.lines..until {
                    let page = walk.pages[block.start + (n >> change.page_lines) as usize];
                    let within = n & ((1 << change.page_lines) - 1);
                    new |= pass(LineNo((page << change.page_lines) + within), walk.writes);
                }
                progress.lines = progress.lines.max(until);
                new
            }
            _ => pass(line, write),
        }
    }

    /// What the program says.
    pub fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Iteration { .. } => self.marked = true,
            Mark::RegionBegin { .. } => {
                self.open += 1;
                self.walks.fill(Progress::default());
            }
            Mark::RegionEnd { .. } => self.open = self.open.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses that come of accesses of threads to lines: thread, line, written.
    fn passed(changing: &mut Changing, accesses: &[(u32, u64)]) -> Vec<(u64, bool)> {
        let mut all = Vec::new();
        for (thread, line) in accesses {
            changing.access(ThreadId(*thread), LineNo(*line), false, |line, write| {
                all.push((line.0, write));
                true
            });
        }
        all
    }

    fn changing(accesses: Accesses) -> Changing {
        // Pages of four lines; pages 1 and 2 belong to the array.
        let change = Change { array: vec![0, 1, 1], page_lines: 2, arrays: vec![accesses] };
        Changing::new(Arc::new(change), 2)
    }

    #[test]
    fn copies_are_left_out_between_regions_of_the_rounds_alone() {
        let mut it = changing(Accesses::WithoutCopies);
        let accesses = [(0, 1), (0, 4), (0, 8)];
        let lines = |it: &mut Changing| -> Vec<u64> {
            passed(it, &accesses).into_iter().map(|(line, _)| line).collect()
        };
        assert_eq!(lines(&mut it), [1, 4, 8], "no round has begun");
        it.mark(&Mark::Iteration { number: 0 });
        assert_eq!(lines(&mut it), [1], "the array's accesses are left out");
        it.mark(&Mark::RegionBegin { region: 0 });
        assert_eq!(lines(&mut it), [1, 4, 8], "regions are as they were");
        it.mark(&Mark::RegionEnd { region: 0 });
        assert_eq!(lines(&mut it), [1]);
    }

    #[test]
    fn each_thread_goes_once_through_its_own_block_in_each_region() {
        let users = vec![ThreadId(0), ThreadId(1)];
        let walk = Walk { pages: vec![1, 2], users, visits: 8, writes: true };
        let mut it = changing(Accesses::InOrder(walk));
        assert_eq!(passed(&mut it, &[(0, 8)]), [(8, false)], "outside of regions nothing changes");
        for _ in 0..2 {
            it.mark(&Mark::RegionBegin { region: 0 });
            // Eight accesses that jump between the pages; the ninth comes after the walk.
            let jumps: Vec<(u32, u64)> = (0..9).map(|n| (1, 4 + n * 5 % 8)).collect();
            let lines: Vec<(u64, bool)> = (8..12).map(|line| (line, true)).collect();
            assert_eq!(passed(&mut it, &jumps), lines);
            assert_eq!(passed(&mut it, &[(0, 9), (0, 1), (0, 4)]), [(1, false), (4, true)]);
            it.mark(&Mark::RegionEnd { region: 0 });
        }
    }
}
