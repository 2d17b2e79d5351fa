//! Rounds of programs that never tell of them: found in the sequence of the initial thread's
//! regions and barriers.
//!
//! A region is known by the program counter of its fork. A barrier is known by its region and by
//! the first access after it: the recorder's filter is emptied at every synchronisation, so that
//! access is always recorded, and it stands for the place in the source. The rounds are weighed by
//! what the initial thread does within regions: an initialisation that runs alone does not count
//! against them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use homenode_log::file::{LogReader, MARKS};
use homenode_log::{LogError, Mark, Record, RecordKind};
use homenode_model::Ns;
use homenode_rounds::{Begins, Hindsight};

pub use crate::facts::IterationOrigin;
use crate::rank::rank;

/// Records of a log that tell where its thread stands among the others.
const HEAD: usize = 4;

/// Program counters of the forks that a compiler made of one line of the source. Each has the
/// program counter that stands for all forks of the line. A compiler that unrolls a short loop
/// gives each round forks of its own.
pub type Copies = HashMap<u64, u64>;

/// The rounds of a recording whose program tells of none; `None` where it does, or where there are
/// none. Damage of a log ends what is looked at. Where no fork repeats, `copies` of a fork count as
/// one fork.
///
/// # Errors
/// A log cannot be opened or is not one.
pub fn find(logs: &[PathBuf], copies: &Copies) -> Result<Option<Begins>, LogError> {
    let Some(initial) = initial(logs)? else { return Ok(None) };
    // Most programs that tell do so in the initial thread.
    let others = logs.iter().filter(|l| *l != initial);
    for log in std::iter::once(initial).chain(others) {
        if tells(log)? {
            return Ok(None);
        }
    }
    let of_forks = Sequence::default().read(&mut LogReader::open(initial)?).finish();
    if of_forks.is_some() || copies.is_empty() {
        return Ok(of_forks);
    }
    let of_lines = Sequence { copies: copies.clone(), ..Sequence::default() };
    Ok(of_lines.read(&mut LogReader::open(initial)?).finish())
}

/// The log of the thread that is the first in canonical order.
fn initial(logs: &[PathBuf]) -> Result<Option<&PathBuf>, LogError> {
    let mut first = None;
    for path in logs {
        let mut log = LogReader::open(path)?;
        let mut head: Vec<Record> = Vec::new();
        while head.len() < HEAD
            && let Ok(Some(record)) = log.next_record()
        {
            head.push(record);
        }
        let rank = rank(&head);
        if !head.is_empty() && first.is_none_or(|(r, _)| rank < r) {
            first = Some((rank, path));
        }
    }
    Ok(first.map(|(_, path)| path))
}

/// Whether the thread tells of an iteration.
fn tells(path: &Path) -> Result<bool, LogError> {
    let mut log = LogReader::open(path)?.only(MARKS);
    while let Ok(Some(mark)) = log.next_mark() {
        if matches!(mark, Mark::Iteration { .. }) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the initial thread does, as symbols.
#[derive(Default)]
struct Sequence {
    rounds: Hindsight,
    symbols: HashMap<Symbol, u32>,
    copies: Copies,
    /// Program counters of the regions that run.
    open: Vec<u64>,
    /// Ticks within regions, those of the outermost one that runs left out.
    within: u64,
    /// When the outermost one began.
    begun: u64,
    /// A barrier whose place is not known yet, and when it came.
    barrier: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Symbol {
    Region(u64),
    Barrier { region: u64, next: u64 },
}

impl Sequence {
    fn read<R: std::io::Read>(mut self, log: &mut LogReader<R>) -> Self {
        const AT_ONCE: usize = 1 << 12;
        let mut accesses = Vec::with_capacity(AT_ONCE);
        loop {
            accesses.clear();
            log.next_accesses(&mut accesses, AT_ONCE);
            if let Some(first) = accesses.first() {
                self.access(log.pc(first.place));
                continue;
            }
            // What is damaged from here on is told by whoever reads the accesses.
            let Ok(Some(record)) = log.next_record() else { return self };
            match record.what {
                RecordKind::Access { pc, .. } => self.access(pc),
                RecordKind::Mark(mark) => self.mark(record.tick.0, mark),
            }
        }
    }

    /// Time on the clock that stands still outside of regions.
    fn time(&self, tick: u64) -> Ns {
        let open = if self.open.is_empty() { 0 } else { tick.saturating_sub(self.begun) };
        Ns(self.within.saturating_add(open))
    }

    fn push(&mut self, symbol: Symbol, tick: u64) {
        let next = self.symbols.len() as u32;
        let number = *self.symbols.entry(symbol).or_insert(next);
        self.rounds.push(number, self.time(tick));
    }

    fn access(&mut self, pc: u64) {
        if let Some(tick) = self.barrier.take() {
            let region = self.open.last().copied().unwrap_or(0);
            self.push(Symbol::Barrier { region, next: pc }, tick);
        }
    }

    fn mark(&mut self, tick: u64, mark: Mark) {
        match mark {
            Mark::RegionFork { pc, .. } => {
                let pc = *self.copies.get(&pc).unwrap_or(&pc);
                self.access(0);
                if self.open.is_empty() {
                    self.begun = tick;
                }
                self.open.push(pc);
                self.push(Symbol::Region(pc), tick);
            }
            Mark::RegionJoin { .. } => {
                self.access(0);
                self.within = self.time(tick).0;
                self.open.pop();
                self.begun = tick;
            }
            Mark::Barrier { .. } => {
                self.access(0);
                self.barrier = Some(tick);
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Option<Begins> {
        self.access(0);
        let end = Ns(self.within);
        self.rounds.finish(end)
    }
}

/// Which rounds are still to begin, for whoever passes the same regions and barriers again.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    begins: Vec<usize>,
    /// Of them, those that have begun.
    begun: usize,
    /// Regions and barriers of the initial thread that have begun.
    symbols: usize,
}

impl Pending {
    pub(super) fn new(begins: Begins) -> Self {
        Self { begins: begins.0, begun: 0, symbols: 0 }
    }

    /// The next symbol begins; the round that begins with it.
    pub(super) fn symbol(&mut self) -> Option<u32> {
        let round = self.take();
        self.symbols += 1;
        round
    }

    /// A region has ended; the number after the last round if that has ended with it.
    pub(super) fn join(&mut self) -> Option<u32> {
        if self.begun + 1 == self.begins.len() { self.take() } else { None }
    }

    fn take(&mut self) -> Option<u32> {
        let begins = self.begins.get(self.begun).is_some_and(|b| *b == self.symbols);
        begins.then(|| {
            self.begun += 1;
            self.begun as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: Mark = Mark::Barrier { instance: 1, generation: 0 };

    fn sequence(steps: impl IntoIterator<Item = (u64, Result<Mark, u64>)>) -> Option<Begins> {
        let mut all = Sequence::default();
        for (tick, step) in steps {
            match step {
                Ok(mark) => all.mark(tick, mark),
                Err(pc) => all.access(pc),
            }
        }
        all.finish()
    }

    #[test]
    fn regions_that_repeat_are_rounds_and_serial_initialisation_does_not_matter() {
        let fork = |pc| Mark::RegionFork { instance: 1, pc };
        let join = Mark::RegionJoin { instance: 1 };
        let mut steps = vec![(1_000_000, Ok(fork(7))), (1_000_010, Ok(join))];
        for round in 0..10 {
            let at = 2_000_000 + round * 100;
            steps.extend([(at, Ok(fork(8))), (at + 5, Ok(join)), (at + 5, Ok(fork(9))), (at + 9, Ok(join))]);
        }
        assert_eq!(sequence(steps).unwrap().0, (0..=10).map(|r| 1 + 2 * r).collect::<Vec<_>>());
    }

    #[test]
    fn copies_of_a_fork_are_one() {
        // A loop of six rounds, unrolled: the forks of lines 8 and 9 have addresses of their own.
        let copies = (1..6).flat_map(|round| [(80 + round, 80), (90 + round, 90)]).collect();
        let mut all = Sequence { copies, ..Sequence::default() };
        for round in 0..6 {
            let at = round * 100;
            for (at, pc) in [(at, 80 + round), (at + 50, 90 + round)] {
                all.mark(at, Mark::RegionFork { instance: 1, pc });
                all.mark(at + 40, Mark::RegionJoin { instance: 1 });
            }
        }
        assert_eq!(all.finish().unwrap().0, [0, 2, 4, 6, 8, 10, 12]);
    }

    #[test]
    fn barriers_are_told_apart_by_what_comes_next() {
        let fork = Mark::RegionFork { instance: 1, pc: 7 };
        let mut steps = vec![(0, Ok(fork)), (50, Ok(BARRIER)), (50, Err(1)), (60, Ok(BARRIER))];
        for round in 0..6 {
            let at = 100 + 100 * round;
            steps.extend([(at, Err(5)), (at + 40, Ok(BARRIER)), (at + 40, Err(6)), (at + 90, Ok(BARRIER))]);
        }
        steps.extend([(1000, Err(9)), (1001, Ok(Mark::RegionJoin { instance: 1 }))]);
        // 0: the region; 1: the barrier before code 1; then those before 5 and 6 in turn.
        assert_eq!(sequence(steps).unwrap().0, [2, 4, 6, 8, 10, 12, 14]);
    }

    #[test]
    fn the_last_round_ends_with_its_last_region() {
        let mut pending = Pending::new(Begins(vec![1, 2, 3]));
        assert_eq!((pending.symbol(), pending.join()), (None, None), "the first begins with its region");
        assert_eq!((pending.symbol(), pending.join()), (Some(0), None));
        assert_eq!((pending.symbol(), pending.join()), (Some(1), Some(2)));
        assert_eq!((pending.symbol(), pending.join()), (None, None));
        let mut none = Pending::default();
        assert_eq!((none.symbol(), none.join()), (None, None));
    }
}
