//! Hands a thread its next iterations.

use std::sync::Arc;

use crate::batch::{Batch, BatchSize};
use crate::queues::{NodeChunks, Queues, StealOrder};
use crate::space::LoopChunks;
use crate::table::IterationTable;

/// How the iterations of one execution of a loop are dealt. Threads share it.
#[derive(Debug)]
pub enum Deal {
    /// Each thread gets one run of neighbouring chunks; the runs differ by at most one chunk.
    Block(LoopChunks),
    /// Thread `t` of `n` gets the chunks `t`, `t + n`, `t + 2 n`, …
    Cyclic(LoopChunks),
    /// Each thread gets the runs that a table has for it.
    Replay(Arc<IterationTable>),
    /// Each thread gets chunks of its own node, and then those of others.
    Affinity(Arc<NodeChunks>, Queues),
}

/// How far a thread is. Each thread has its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The thread's number.
    pub thread: u32,
    /// Threads of the team.
    pub team: u32,
    /// The node that the thread runs on.
    pub node: u16,
    /// Runs that the thread got.
    pub at: u64,
    /// Chunks that it takes at once from a list that it shares.
    pub size: BatchSize,
}

impl Cursor {
    /// The cursor of a thread that got nothing yet.
    pub const fn new(thread: u32, team: u32, node: u16) -> Self {
        Self { thread, team, node, at: 0, size: BatchSize::new() }
    }
}

impl Deal {
    /// The thread's next iterations, never an empty run; `None`: there are no more for this thread.
    /// `order` tells which node comes after which; only [`Deal::Affinity`] looks at it. A thread
    /// with a clock (nanoseconds) may get several chunks at once. Without one it gets one run.
    #[inline]
    pub fn next(
        &self,
        cursor: &mut Cursor,
        order: &StealOrder,
        clock: Option<fn() -> u64>,
    ) -> Option<Batch<'_>> {
        let Cursor { thread, team, node, at, size } = cursor;
        let batch = match self {
            Self::Block(_) if *at > 0 => return None,
            Self::Block(chunks) => Batch::one(chunks.block(*thread, *team)),
            Self::Cyclic(chunks) => {
                let first = at.checked_mul((*team).into())?.checked_add((*thread).into())?;
                cyclic(chunks, first, (*team).into(), clock.is_some())
            }
            Self::Replay(table) => Batch::one(*table.runs(*thread as usize).get(usize::try_from(*at).ok()?)?),
            Self::Affinity(lists, queues) => match clock {
                None => queues.next(lists, order, (*node, *team), 1)?,
                Some(clock) => {
                    let now = clock();
                    let batch = queues.next(lists, order, (*node, *team), 1 + size.more(now))?;
                    size.took(now, batch.number() - 1);
                    batch
                }
            },
        };
        if batch.run.is_empty() {
            return None;
        }
        *at += batch.number();
        Some(batch)
    }
}

/// Every `team`-th chunk from `first` on, or `first` alone. The loop's last chunk comes alone.
fn cyclic(chunks: &LoopChunks, first: u64, team: u64, several: bool) -> Batch<'static> {
    let before_the_last = chunks.number().saturating_sub(1);
    let behind = before_the_last.saturating_sub(first).saturating_sub(1) / team.max(1);
    match chunks.run(first) {
        run if several && behind > 0 => Batch::even(run, behind, team * chunks.size()),
        run => Batch::one(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::homes::ValueHomes;
    use crate::space::{Run, Space};
    use proptest::prelude::*;

    /// A clock that shows another time at each look: batches grow.
    fn clock() -> u64 {
        thread_local!(static NOW: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
        NOW.set(NOW.get() + 700);
        NOW.get()
    }

    /// What each thread gets when threads come in the order of `picks`, over and over.
    fn dealt(
        deal: &Deal,
        team: u32,
        node_of: impl Fn(u32) -> u16,
        order: &StealOrder,
        picks: &[u32],
    ) -> Vec<Vec<Run>> {
        let one_by_one = dealt_by(deal, team, &node_of, order, picks, None);
        // What is not shared goes to the same threads in batches, too.
        if !matches!(deal, Deal::Affinity(..)) {
            assert_eq!(one_by_one, dealt_by(deal, team, &node_of, order, picks, Some(clock)));
        }
        one_by_one
    }

    fn dealt_by(
        deal: &Deal,
        team: u32,
        node_of: impl Fn(u32) -> u16,
        order: &StealOrder,
        picks: &[u32],
        clock: Option<fn() -> u64>,
    ) -> Vec<Vec<Run>> {
        let mut cursors: Vec<Cursor> = (0..team).map(|t| Cursor::new(t, team, node_of(t))).collect();
        let mut got = vec![Vec::new(); team as usize];
        let mut done = vec![false; team as usize];
        let everybody: Vec<u32> = (0..team).collect();
        while done.contains(&false) {
            for t in picks.iter().map(|p| p % team).chain(everybody.iter().copied()) {
                let t = t as usize;
                if done[t] {
                    continue;
                }
                match deal.next(&mut cursors[t], order, clock) {
                    Some(batch) => got[t].extend(batch.runs()),
                    None => done[t] = true,
                }
            }
        }
        got
    }

    fn once(count: u64, got: &[Vec<Run>]) {
        IterationTable::new(count, got.to_vec()).unwrap();
        // Who has the last iteration has it last.
        for runs in got {
            let last = runs.iter().position(|r| r.end == count);
            assert!(last.is_none_or(|at| at + 1 == runs.len()), "{runs:?}");
        }
    }

    #[test]
    fn block_and_cyclic_are_what_they_are_called() {
        let chunks = LoopChunks::new(10, 2);
        let order = StealOrder::flat(1);
        let block = dealt(&Deal::Block(chunks), 2, |_| 0, &order, &[]);
        assert_eq!(block, [vec![Run { begin: 0, end: 4 }], vec![Run { begin: 4, end: 10 }]]);
        let cyclic = dealt(&Deal::Cyclic(chunks), 2, |_| 0, &order, &[]);
        let begins = |t: usize| cyclic[t].iter().map(|r| r.begin).collect::<Vec<_>>();
        assert_eq!((begins(0), begins(1)), (vec![0, 4, 8], vec![2, 6]));
    }

    #[test]
    fn a_loop_of_2_63_iterations_is_dealt_without_counting_them() {
        let count = 1 << 63;
        let block = dealt(&Deal::Block(LoopChunks::new(count, 1)), 3, |_| 0, &StealOrder::flat(1), &[]);
        once(count, &block);
        let wide = LoopChunks::new(count, 1 << 61);
        once(count, &dealt(&Deal::Cyclic(wide), 3, |_| 0, &StealOrder::flat(1), &[]));
        let mut far = Cursor { at: u64::MAX / 2, ..Cursor::new(2, 3, 0) };
        let deal = Deal::Cyclic(LoopChunks::new(u64::MAX, 1));
        assert_eq!(deal.next(&mut far, &StealOrder::flat(1), None), None);
    }

    proptest! {
        #[test]
        fn every_iteration_goes_to_one_thread(
            count in 0u64..300, size in 0u64..40, team in 1u32..9, nodes in 1u16..4,
            picks in prop::collection::vec(any::<u32>(), 0..30), seed in any::<u64>(),
        ) {
            let chunks = LoopChunks::new(count, size);
            let order = StealOrder::flat(nodes);
            let node_of = |t: u32| (t as u16) % nodes;
            let block = dealt(&Deal::Block(chunks), team, node_of, &order, &picks);
            once(count, &block);
            let lens: Vec<u64> = block.iter().map(|r| r.iter().map(Run::len).sum::<u64>().div_ceil(chunks.size())).collect();
            prop_assert!(lens.iter().max().unwrap() - lens.iter().min().unwrap() <= 1, "{lens:?}");
            once(count, &dealt(&Deal::Cyclic(chunks), team, node_of, &order, &picks));
            // Chunks that anybody may have got.
            let mut threads = vec![Vec::new(); team as usize];
            for k in 0..chunks.number() {
                let to = (seed.wrapping_mul(k + 7) >> 5) % u64::from(team);
                threads[to as usize].push(chunks.run(k));
            }
            let table = Arc::new(IterationTable::new(count, threads).unwrap());
            let replayed = dealt(&Deal::Replay(Arc::clone(&table)), team, node_of, &order, &picks);
            once(count, &replayed);
            for (t, runs) in replayed.iter().enumerate() {
                prop_assert_eq!(&runs[..], table.runs(t));
            }
            let space = Space::excluding(0, count.into(), 1).unwrap();
            let homes = ValueHomes::of(&space, &table, |t| (t % 2 == 0).then(|| node_of(t as u32)));
            if let Some(lists) = NodeChunks::new(&space, chunks, &homes, nodes) {
                for clock in [None, Some(clock as fn() -> u64)] {
                    let deal = Deal::Affinity(Arc::new(lists.clone()), Queues::new(&lists));
                    once(count, &dealt_by(&deal, team, node_of, &order, &picks, clock));
                }
            }
        }
    }
}
