//! Moves by several threads at once: one a node, on its CPUs, which takes what comes to its node first, then helps the others. While the
//! team sleeps, which is when the driver moves (Nikolopoulos, section 5.2, proposes it, inside of the team's own threads).
//!
//! Whether that is quicker depends on the kernel: each move interrupts the CPUs that run other threads of the process, Löf found moves to
//! exclude each other, newer kernels collect their interruptions. So a part of the first large move is made by one thread and another
//! part by all, and the quicker way is kept. On four emulated nodes one thread takes 50 to 84 µs a page, four take 0.4
//! to 1.7 ms.

use std::time::Instant;

use homenode_model::{NodeId, Ns};
use homenode_sys::affinity::{self, CpuSet};
use homenode_sys::call;
use homenode_sys::signal::{Set, replace_mask};

use super::machine::Machine;
use crate::moving::{self, Move, MoveReport, Moves};

/// Pages to each node by which a way is tried.
const TRIAL: usize = 512;
/// Fewer pages are moved by the calling thread.
const FEW: usize = 8 * TRIAL;
/// Several threads that take so many times as long for a few pages are not tried any further: to start them takes no more than twice as
/// long as those pages, but where each move waits for all other CPUs (emulated ones) it is twenty times.
const HOPELESS: u64 = 8;
/// Stack of a thread that moves.
const STACK: usize = 256 << 10;

/// How fast the two ways are, in nanoseconds a page; 0: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The calling thread alone.
    pub alone: u64,
    /// A thread a node.
    pub together: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Spread {
    /// Nodes that have CPUs.
    nodes: Vec<(NodeId, CpuSet)>,
    ways: Ways,
    /// CPU time of the other threads.
    helped: Ns,
}

impl Spread {
    /// For the nodes of a machine.
    pub fn new(machine: &Machine) -> Self {
        let node = |n: u16| {
            let cpus = machine.cpus().into_iter().filter(|c| machine.node_of(*c) == Some(NodeId(n)));
            (NodeId(n), CpuSet::of(cpus.map(|c| c as u32)))
        };
        let nodes = (0..machine.nodes() as u16).map(node).filter(|(_, cpus)| !cpus.is_empty()).collect();
        Self { nodes, ways: Ways::default(), helped: Ns::ZERO }
    }

    /// What was found so far.
    pub const fn ways(&self) -> Ways {
        self.ways
    }

    /// CPU time of threads other than the calling ones, so far.
    pub const fn helped(&self) -> Ns {
        self.helped
    }

    /// Moves all, in calls of about `cap`; each has its result.
    pub fn move_pages(&mut self, mut moves: Vec<Move>, cap: Ns) -> (Vec<Move>, MoveReport) {
        let mut report = MoveReport::default();
        if moves.len() < FEW || self.nodes.len() < 2 || moving::pretended() != 0 {
            report.add(&moving::move_pages(&mut moves, cap));
            return (moves, report);
        }
        let mut done = Vec::with_capacity(moves.len());
        if self.ways == Ways::default() {
            moves = self.try_both(moves, cap, &mut report, &mut done);
        }
        let Ways { alone, together } = self.ways;
        done.extend(if together > 0 && together < alone {
            self.together(moves, cap, &mut report)
        } else {
            self.alone(moves, cap, &mut report)
        });
        (done, report)
    }

    /// Makes some of the moves by one thread and some by several. The others.
    fn try_both(
        &mut self,
        moves: Vec<Move>,
        cap: Ns,
        report: &mut MoveReport,
        done: &mut Vec<Move>,
    ) -> Vec<Move> {
        let (alone, rest) = of_each_node(moves, TRIAL);
        let (few, rest) = of_each_node(rest, TRIAL / 16);
        let (together, rest) = of_each_node(rest, TRIAL);
        if together.len() < 2 * TRIAL {
            return [alone, few, together, rest].concat();
        }
        self.ways.alone = per_page(alone, |m| self.alone(m, cap, report), done);
        self.ways.together = per_page(few, |m| self.together(m, cap, report), done);
        if self.ways.together > HOPELESS * self.ways.alone {
            return [together, rest].concat();
        }
        self.ways.together = per_page(together, |m| self.together(m, cap, report), done);
        rest
    }

    fn alone(&self, mut moves: Vec<Move>, cap: Ns, report: &mut MoveReport) -> Vec<Move> {
        report.add(&moving::move_pages(&mut moves, cap));
        moves
    }

    fn together(&mut self, moves: Vec<Move>, cap: Ns, report: &mut MoveReport) -> Vec<Move> {
        let shared = Moves::new(moves);
        // Their signals are the program's: blocked from the first instruction on.
        let mask = replace_mask(Set::FOR_OWN_THREADS);
        let reports: Vec<(MoveReport, Ns)> = std::thread::scope(|scope| {
            let start = |(node, cpus): &(NodeId, CpuSet)| {
                let (shared, cpus) = (&shared, *cpus);
                let name = format!("homenode-move-{}", node.0);
                let thread = std::thread::Builder::new().name(name).stack_size(STACK);
                thread.spawn_scoped(scope, move || take_part(shared, &cpus, cap)).ok()
            };
            let threads: Vec<_> = self.nodes.iter().map(start).collect();
            threads.into_iter().flatten().filter_map(|t| t.join().ok()).collect()
        });
        replace_mask(mask);
        for (part, time) in &reports {
            report.add(part);
            self.helped += *time;
        }
        // What no thread could be made for.
        report.add(&shared.take_part(cap));
        shared.finish()
    }
}

/// What one thread does; and its CPU time.
fn take_part(shared: &Moves, cpus: &CpuSet, cap: Ns) -> (MoveReport, Ns) {
    // Where the process may not run there others are: the pages come to the same nodes.
    let _ = affinity::set(cpus);
    (shared.take_part(cap), call::thread_time())
}

/// Up to so many moves to each node, and all others.
fn of_each_node(mut moves: Vec<Move>, most: usize) -> (Vec<Move>, Vec<Move>) {
    moves.sort_unstable_by_key(|m| (m.to, m.page));
    let (mut taken, mut rest) = (vec![], vec![]);
    for group in moves.chunk_by(|a, b| a.to == b.to) {
        let (first, others) = group.split_at(most.min(group.len()));
        taken.extend_from_slice(first);
        rest.extend_from_slice(others);
    }
    (taken, rest)
}

/// Makes moves, keeps them with their results in `done`, and says how long a page took.
fn per_page(moves: Vec<Move>, make: impl FnOnce(Vec<Move>) -> Vec<Move>, done: &mut Vec<Move>) -> u64 {
    let (begin, pages) = (Instant::now(), moves.len() as u64);
    done.extend(make(moves));
    (begin.elapsed().as_nanos() as u64 / pages.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::MoveResult;

    fn moves(pages: usize, nodes: u16) -> Vec<Move> {
        let to = |i: usize| NodeId((i % usize::from(nodes)) as u16);
        (0..pages).map(|i| Move::new(i << 12, to(i))).collect()
    }

    #[test]
    fn some_are_taken_of_each_node() {
        let (taken, rest) = of_each_node(moves(6000, 3), TRIAL);
        let of = |list: &[Move], node: u16| list.iter().filter(|m| m.to == NodeId(node)).count();
        assert_eq!([0, 1, 2].map(|n| of(&taken, n)), [TRIAL; 3]);
        let mut all: Vec<usize> = [taken, rest].concat().iter().map(|m| m.page).collect();
        all.sort_unstable();
        assert_eq!(all, moves(6000, 3).iter().map(|m| m.page).collect::<Vec<_>>());
        let (taken, rest) = of_each_node(moves(3, 1), TRIAL);
        assert_eq!((taken.len(), rest.len()), (3, 0));
    }

    /// Nothing is there to be moved: what matters is that each move ends once, with a result.
    #[test]
    fn every_move_has_its_result() {
        let machine = Machine::parse("0/64/10.20;1/64/20.10").unwrap();
        let mut spread = Spread::new(&machine);
        for pages in [10, 3 * FEW] {
            let (mut done, report) = spread.move_pages(moves(pages, 2), Ns(1_000_000));
            done.sort_unstable_by_key(|m| m.page);
            assert!(done.iter().map(|m| m.page).eq(moves(pages, 2).iter().map(|m| m.page)));
            // Where the kernel does not even look at pages they count as busy.
            assert!(
                done.iter().all(|m| matches!(m.result, MoveResult::NoPage | MoveResult::Busy)),
                "{report:?}"
            );
            assert_eq!(spread.ways() == Ways::default(), pages < FEW);
        }
    }
}
