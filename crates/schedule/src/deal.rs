//! Hands a thread its next iterations.

use std::sync::Arc;

use crate::queues::{NodeChunks, Queues, StealOrder};
use crate::space::{LoopChunks, Run};
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
}

impl Cursor {
    /// The cursor of a thread that got nothing yet.
    pub const fn new(thread: u32, team: u32, node: u16) -> Self {
        Self { thread, team, node, at: 0 }
    }
}

impl Deal {
    /// The thread's next iterations, never an empty run; `None`: there are no more for this thread.
    /// `order` tells which node comes after which; only [`Deal::Affinity`] looks at it.
    #[inline]
    pub fn next(&self, cursor: &mut Cursor, order: &StealOrder) -> Option<Run> {
        let Cursor { thread, team, node, at } = *cursor;
        let run = match self {
            Self::Block(chunks) => {
                if at > 0 {
                    return None;
                }
                chunks.block(thread, team)
            }
            Self::Cyclic(chunks) => {
                let chunk = at.checked_mul(team.into())?.checked_add(thread.into())?;
                chunks.run(chunk)
            }
            Self::Replay(table) => *table.runs(thread as usize).get(usize::try_from(at).ok()?)?,
            Self::Affinity(lists, queues) => queues.next(lists, order, node)?,
        };
        if run.is_empty() {
            return None;
        }
        cursor.at = at + 1;
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::homes::ValueHomes;
    use crate::space::Space;
    use proptest::prelude::*;

    /// What each thread gets when threads come in the order of `picks`, over and over.
    pub fn dealt(
        deal: &Deal,
        team: u32,
        node_of: impl Fn(u32) -> u16,
        order: &StealOrder,
        picks: &[u32],
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
                match deal.next(&mut cursors[t], order) {
                    Some(run) => got[t].push(run),
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
        assert_eq!(Deal::Cyclic(LoopChunks::new(u64::MAX, 1)).next(&mut far, &StealOrder::flat(1)), None);
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
                let queues = Queues::new(&lists);
                once(count, &dealt(&Deal::Affinity(Arc::new(lists), queues), team, node_of, &order, &picks));
            }
        }
    }
}
