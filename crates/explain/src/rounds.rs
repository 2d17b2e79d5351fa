//! Whether the rounds that are not simulated use memory as the simulated ones do.
//!
//! # Problem
//! Only the first rounds of a long recording are simulated, and the others are taken to be like
//! them. A program that changes its work distribution later on would go unnoticed.
//!
//! # Approach
//! The recording is read once more, without caches and without a placement, which takes a fraction
//! of a simulation. The *owner* of a page is the node with at least [`OWNS`] percent of the page's
//! accesses. A later access *differs* if its page has another owner in that round than in the
//! simulated rounds, or if the simulated rounds did not use the page. Accesses to pages without an
//! owner in the round do not differ.

use homenode_error::{Error, Result};
use homenode_log::file::LogReader;
use homenode_model::{CpuId, LineNo, Rows, ThreadId, Ticks, Topology};
use homenode_order::step::{Mark, Sync};
use homenode_order::{Order, StepSink};
use homenode_schemes::Pass;
use homenode_sim::run::{Job, Results};

use crate::usage::OWNS;

/// Percent of the later rounds' accesses that differ where the rounds are said to differ.
const DIFFERENT: u64 = 5;
/// Steps between two looks at whoever wants to stop.
const BUDGET: u64 = 1 << 18;

/// Counts accesses by page and node, round by round.
struct Counts {
    /// Node of each thread.
    nodes: Vec<usize>,
    /// log2 of the lines of a page.
    page_lines: u32,
    /// Rounds that were simulated.
    simulated: usize,
    /// Marks so far: one for each round that began, and the end of the last one.
    marks: usize,
    /// Accesses of the simulated rounds, by page and node.
    before: Rows<u32>,
    /// Accesses of the round under way, by page and node.
    now: Rows<u32>,
    /// Pages of the round under way.
    touched: Vec<usize>,
    /// Accesses of the later rounds.
    later: u64,
    /// Those that differ.
    different: u64,
}

fn owner(row: &[u32]) -> Option<usize> {
    let all: u64 = row.iter().map(|n| u64::from(*n)).sum();
    let (node, most) = row.iter().enumerate().max_by_key(|(node, n)| (**n, std::cmp::Reverse(*node)))?;
    (all > 0 && u64::from(*most) * 100 >= all * OWNS).then_some(node)
}

impl Counts {
    fn new(nodes: Vec<usize>, page_lines: u32, simulated: usize) -> Self {
        let width = nodes.iter().max().map_or(1, |most| most + 1);
        Self {
            nodes,
            page_lines,
            simulated,
            marks: 0,
            before: Rows::new(width, 0),
            now: Rows::new(width, 0),
            touched: Vec::new(),
            later: 0,
            different: 0,
        }
    }

    /// The round under way has ended.
    fn end_round(&mut self) {
        for page in std::mem::take(&mut self.touched) {
            let row = self.now.row_mut(page);
            let all: u64 = row.iter().map(|n| u64::from(*n)).sum();
            let is = owner(row);
            row.fill(0);
            let was = self.before.row(page);
            let same = match (is, was) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(is), Some(was)) => match owner(was) {
                    Some(was) => was == is,
                    None => was.iter().any(|n| *n > 0),
                },
            };
            self.later += all;
            self.different += if same { 0 } else { all };
        }
    }

    fn differ(&self) -> bool {
        self.later > 0 && self.different * 100 >= self.later * DIFFERENT
    }
}

impl StepSink for Counts {
    #[inline]
    fn access(&mut self, thread: ThreadId, _: Ticks, line: LineNo, _: bool) -> bool {
        let Some(node) = self.nodes.get(thread.index()).copied().filter(|_| self.marks > 0) else {
            return false;
        };
        let page = (line.0 >> self.page_lines) as usize;
        if self.marks <= self.simulated {
            let n = &mut self.before.row_mut(page)[node];
            *n = n.saturating_add(1);
            return false;
        }
        let row = self.now.row_mut(page);
        if row.iter().all(|n| *n == 0) {
            self.touched.push(page);
        }
        row[node] = row[node].saturating_add(1);
        false
    }

    fn sync(&mut self, _: ThreadId, _: Ticks, _: Sync) {}

    fn mark(&mut self, _: ThreadId, _: Ticks, mark: Mark) {
        if matches!(mark, Mark::Iteration { .. }) {
            self.marks += 1;
            self.end_round();
        }
    }
}

/// Whether the rounds that were not simulated use memory in another way than those that were.
pub(crate) fn later_differ(pass: &Pass<'_>, job: &Job, so_far: &Results, all: Option<u64>) -> Result<bool> {
    let simulated = so_far.outcomes.iter().flatten().next().map_or(0, |o| o.marks.len().saturating_sub(1));
    let all = all.map_or(simulated, |n| usize::try_from(n).unwrap_or(usize::MAX));
    if simulated == 0 || all <= simulated {
        return Ok(false);
    }
    let go_on = || !pass.task.stop_asked();
    let order = pass.open()?;
    differ(order, &job.machine, &job.binding, job.page.0, (simulated, all), go_on)
        .ok_or_else(Error::interrupted)
}

/// Whether the rounds after the first `simulated` ones use memory differently. What follows the
/// last of the `all` rounds does not count. `go_on` is asked now and then; `None`: it said no.
pub(crate) fn differ(
    mut order: Order<LogReader>,
    machine: &Topology,
    binding: &[CpuId],
    page: u64,
    (simulated, all): (usize, usize),
    mut go_on: impl FnMut() -> bool,
) -> Option<bool> {
    let nodes = binding.iter().map(|cpu| machine.node_of(*cpu).index()).collect();
    let mut counts = Counts::new(nodes, (page / 64).max(1).trailing_zeros(), simulated);
    // Damage ends the reading early: what came before was read.
    while let Ok(true) = order.advance(&mut counts, BUDGET) {
        if !go_on() {
            return None;
        }
        if counts.marks > all {
            break;
        }
    }
    Some(counts.differ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads on two nodes; `user` says which thread uses a page in a round.
    fn differ(rounds: u32, user: impl Fn(u32, u64) -> u32) -> bool {
        let mut counts = Counts::new(vec![0, 1], 6, 3);
        for round in 0..=rounds {
            counts.mark(ThreadId(0), Ticks(0), Mark::Iteration { number: round });
            for page in (0..100).filter(|_| round < rounds) {
                for line in 0..64 {
                    let thread = ThreadId(user(round, page));
                    counts.access(thread, Ticks(0), LineNo(page * 64 + line), false);
                }
            }
        }
        counts.differ()
    }

    #[test]
    fn rounds_differ_where_other_nodes_use_many_pages() {
        assert!(!differ(20, |_, page| u32::from(page < 50)));
        // A change in the middle, one at the end, and one of few pages.
        assert!(differ(20, |round, page| u32::from((page < 50) == (round < 10))));
        assert!(differ(20, |round, page| u32::from((page < 50) == (round < 19))));
        assert!(!differ(20, |round, page| u32::from((page < 50) == (round < 10 || page > 3))));
    }

    #[test]
    fn initialisation_and_what_follows_the_last_round_do_not_count() {
        let mut counts = Counts::new(vec![0, 1], 6, 1);
        counts.access(ThreadId(1), Ticks(0), LineNo(0), true);
        for round in 0..3 {
            counts.mark(ThreadId(0), Ticks(0), Mark::Iteration { number: round });
            counts.access(ThreadId(0), Ticks(0), LineNo(0), true);
        }
        assert!(!counts.differ());
        assert_eq!(counts.later, 1, "the round after the second mark");
    }
}
