//! A list of chunks for each node, shared by the node's threads, with stealing.
//!
//! A thread takes the front chunk of its own node's list. When that list is empty the thread takes
//! chunks that belong to no node, then steals the back chunk of the nearest other node's list, one
//! at a time. It takes several short chunks of its own node's list at once ([`crate::batch`]). So
//! no thread waits while a list has a chunk. The balance is that of `dynamic` with the same chunk
//! size, but for some microseconds.
//!
//! The chunk with the last iteration stands in no list. Whoever finds all lists empty first takes
//! it, so that its thread gets nothing afterwards (compiled code relies on this order).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::batch::Batch;
use crate::homes::ValueHomes;
use crate::space::{LoopChunks, Space};

/// Chunks of a loop that is dealt by affinity: each takes four bytes.
pub const MOST: u64 = 1 << 20;

/// The chunks of each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChunks {
    chunks: LoopChunks,
    /// By node; then the chunks of no node; then the last chunk.
    lists: Vec<Vec<u32>>,
    nodes: u16,
}

impl NodeChunks {
    /// Deals the chunks of a loop to their nodes. `None` where no chunk has a node, or there are
    /// more than [`MOST`].
    pub fn new(space: &Space, chunks: LoopChunks, homes: &ValueHomes, nodes: u16) -> Option<Self> {
        let number = chunks.number();
        if number == 0 || number > MOST {
            return None;
        }
        let mut lists = vec![Vec::new(); usize::from(nodes) + 2];
        let mut known = false;
        for k in 0..number {
            let home = homes.node(space, chunks.run(k)).filter(|n| *n < nodes);
            known |= home.is_some();
            let list = if k + 1 == number { nodes + 1 } else { home.unwrap_or(nodes) };
            lists[usize::from(list)].push(k as u32);
        }
        known.then_some(Self { chunks, lists, nodes })
    }

    /// How many chunks have a node.
    pub fn known(&self) -> usize {
        self.lists.iter().take(self.nodes.into()).map(Vec::len).sum()
    }

    /// How many chunks there are.
    pub const fn number(&self) -> u64 {
        self.chunks.number()
    }
}

/// Which lists a thread of a node looks at, in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StealOrder {
    by_node: Vec<Vec<u16>>,
}

impl StealOrder {
    /// By the distances between nodes, a row for each node; nodes as far away as each other in the
    /// order of their numbers.
    pub fn of(distances: &[Vec<u64>]) -> Self {
        let nodes = distances.len() as u16;
        let row = |n: u16| {
            let far = |m: &u16| distances[usize::from(n)].get(usize::from(*m)).copied().unwrap_or(u64::MAX);
            let mut others: Vec<u16> = (0..nodes).filter(|m| *m != n).collect();
            others.sort_by_key(|m| (far(m), *m));
            // Its own, those of no node, the others', the last chunk.
            let mut all = vec![n, nodes];
            all.extend(others);
            all.push(nodes + 1);
            all
        };
        Self { by_node: (0..nodes).map(row).collect() }
    }

    /// All nodes are as far away from each other.
    pub fn flat(nodes: u16) -> Self {
        Self::of(&vec![vec![0; nodes.into()]; nodes.into()])
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u16 {
        self.by_node.len() as u16
    }
}

/// How much of a list is left, on a cache line of its own: index of the front chunk in the lower
/// half, one past the back chunk in the upper half.
#[derive(Debug)]
#[repr(align(128))]
struct Left(AtomicU64);

impl Left {
    const fn new(len: u32) -> Self {
        Self(AtomicU64::new((len as u64) << 32))
    }

    /// Takes at the front: one, or the number that `many` makes of the list's length. `None`: the
    /// list is empty.
    #[inline]
    fn take_front(&self, many: impl Fn(u32) -> u64) -> Option<Range<usize>> {
        self.take(|begin, end| {
            let taken = begin + many(end - begin).clamp(1, u64::from(end - begin)) as u32;
            (begin as usize..taken as usize, taken, end)
        })
    }

    /// Takes the one at the back; `None`: the list is empty.
    #[inline]
    fn take_back(&self) -> Option<Range<usize>> {
        self.take(|begin, end| (end as usize - 1..end as usize, begin, end - 1))
    }

    /// Replaces what is left, which is not empty, by the second and third number of `f`.
    #[inline]
    fn take<T>(&self, f: impl Fn(u32, u32) -> (T, u32, u32)) -> Option<T> {
        let mut left = self.0.load(Ordering::Relaxed);
        loop {
            let (begin, end) = (left as u32, (left >> 32) as u32);
            if begin >= end {
                return None;
            }
            let (taken, begin, end) = f(begin, end);
            let new = u64::from(end) << 32 | u64::from(begin);
            match self.0.compare_exchange_weak(left, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(taken),
                Err(now) => left = now,
            }
        }
    }
}

/// What is left of [`NodeChunks`] in one execution of a loop.
#[derive(Debug)]
pub struct Queues {
    left: Vec<Left>,
}

impl Queues {
    /// Everything is left.
    pub fn new(lists: &NodeChunks) -> Self {
        Self { left: lists.lists.iter().map(|l| Left::new(l.len() as u32)).collect() }
    }

    /// The next chunks for a thread of a node, at most `most` of them; `None`: none is left. A
    /// thread of a team of `n` takes a chunk, or a 2 `n`-th of its node's list at most. It steals
    /// one at a time.
    #[inline]
    pub fn next<'a>(
        &self,
        lists: &'a NodeChunks,
        order: &StealOrder,
        (node, team): (u16, u32),
        most: u64,
    ) -> Option<Batch<'a>> {
        // A thread whose node is not known is as good as one of node 0.
        let order = order.by_node.get(usize::from(node)).or(order.by_node.first())?;
        order.iter().find_map(|number| {
            let left = self.left.get(usize::from(*number))?;
            let list = lists.lists.get(usize::from(*number))?;
            let taken = if *number != node && *number < lists.nodes {
                left.take_back()?
            } else {
                left.take_front(|all| most.min(u64::from(all / (2 * team.max(1)))))?
            };
            let (first, behind) = list.get(taken)?.split_first()?;
            let run = lists.chunks.run((*first).into());
            Some(Batch { run, behind, base: 0, apart: lists.chunks.size() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Run;
    use crate::table::IterationTable;
    use std::sync::Mutex;

    fn run(begin: u64, end: u64) -> Run {
        Run { begin, end }
    }

    fn halves(count: u64) -> (Space, ValueHomes) {
        let space = Space::excluding(0, count.into(), 1).unwrap();
        let half = count / 2;
        let table = IterationTable::new(count, vec![vec![run(0, half)], vec![run(half, count)]]).unwrap();
        let homes = ValueHomes::of(&space, &table, |t| Some(t as u16));
        (space, homes)
    }

    #[test]
    fn a_node_has_its_own_chunks_first_and_steals_the_others_from_behind() {
        let (space, homes) = halves(100);
        let lists = NodeChunks::new(&space, LoopChunks::new(100, 10), &homes, 2).unwrap();
        let queues = Queues::new(&lists);
        let order = StealOrder::flat(2);
        let mut begins = Vec::new();
        while let Some(batch) = queues.next(&lists, &order, (1, 2), 1) {
            begins.push(batch.run.begin);
        }
        assert_eq!(begins, [50, 60, 70, 80, 40, 30, 20, 10, 0, 90]);
        assert_eq!((lists.known(), lists.number()), (9, 10));
    }

    #[test]
    fn the_nearest_node_is_robbed_first() {
        let order = StealOrder::of(&[vec![10, 30, 20], vec![30, 10, 20], vec![20, 20, 10]]);
        assert_eq!(order.by_node, [[0, 3, 2, 1, 4], [1, 3, 2, 0, 4], [2, 3, 0, 1, 4]]);
        assert_eq!(order.nodes(), 3);
    }

    #[test]
    fn nothing_known_or_too_much_is_not_dealt() {
        let (space, homes) = halves(100);
        assert_eq!(NodeChunks::new(&space, LoopChunks::new(100, 10), &ValueHomes::default(), 2), None);
        assert_eq!(NodeChunks::new(&space, LoopChunks::new(0, 10), &homes, 2), None);
        let huge = Space::excluding(0, 1 << 40, 1).unwrap();
        assert_eq!(NodeChunks::new(&huge, LoopChunks::new(1 << 40, 1), &homes, 2), None);
        // Of a machine with fewer nodes: not known.
        assert_eq!(NodeChunks::new(&space, LoopChunks::new(100, 10), &homes, 1).unwrap().known(), 5);
    }

    #[test]
    fn a_batch_has_a_share_of_its_nodes_list() {
        let (space, homes) = halves(480);
        let lists = NodeChunks::new(&space, LoopChunks::new(480, 10), &homes, 2).unwrap();
        let queues = Queues::new(&lists);
        let order = StealOrder::flat(2);
        let mut got = Vec::new();
        while let Some(batch) = queues.next(&lists, &order, (0, 4), 64) {
            got.push((batch.run.begin / 10, batch.number()));
        }
        // An eighth of 24, of 21, of 19 and of 17; then one by one. Then node 1's, from behind.
        assert_eq!(got[..5], [(0, 3), (3, 2), (5, 2), (7, 2), (9, 1)]);
        assert_eq!(got[got.len() - 3..], [(25, 1), (24, 1), (47, 1)]);
        assert_eq!(got.iter().map(|(_, number)| number).sum::<u64>(), 48);
    }

    #[test]
    fn threads_that_take_at_once_take_each_chunk_once() {
        let (space, homes) = halves(20_000);
        let lists = NodeChunks::new(&space, LoopChunks::new(20_000, 3), &homes, 2).unwrap();
        let queues = Queues::new(&lists);
        let order = StealOrder::flat(2);
        let all = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for t in 0..4u16 {
                let (all, queues, lists, order) = (&all, &queues, &lists, &order);
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    while let Some(batch) = queues.next(lists, order, (t % 2, 4), (t * 7).into()) {
                        mine.extend(batch.runs());
                    }
                    all.lock().unwrap().push(mine);
                });
            }
        });
        IterationTable::new(20_000, all.into_inner().unwrap()).unwrap();
    }
}
