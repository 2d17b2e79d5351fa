//! Recordings that contradict themselves: every stage ends, with a result or an error, and never
//! panics.

use std::path::Path;

use homenode_log::file::LogReader;
use homenode_log::{LogError, Mark, Record, RecordKind};
use homenode_model::{LineNo, ThreadId, Ticks};
use homenode_order::space::AddressSpace;
use homenode_order::step::{self, Sync, TraceStep};
use homenode_order::turns::LockTurns;
use homenode_order::{Order, RecordSource, StepSink};
use homenode_policy::PolicyContext;
use homenode_sim::caches::Caches;
use homenode_sim::memory::Memory;
use homenode_sim::stream::MemChunk;

use crate::support::{job, machine, root};

struct List(std::vec::IntoIter<Record>);

impl RecordSource for List {
    fn next(&mut self) -> Result<Option<Record>, LogError> {
        Ok(self.0.next())
    }
}

/// Stages 2 and 3 until one of them gives up.
struct Rest {
    caches: Caches,
    chunk: MemChunk,
    refused: bool,
}

impl Rest {
    fn step(&mut self, thread: ThreadId, tick: Ticks, what: step::What) {
        self.refused |=
            self.refused || self.caches.step(&TraceStep { thread, tick, what }, &mut self.chunk).is_err();
    }
}

impl StepSink for Rest {
    fn access(&mut self, thread: ThreadId, tick: Ticks, line: LineNo, write: bool) -> bool {
        self.step(thread, tick, step::What::Access { line, write });
        true
    }
    fn sync(&mut self, thread: ThreadId, tick: Ticks, sync: Sync) {
        self.step(thread, tick, step::What::Sync(sync));
    }
    fn mark(&mut self, thread: ThreadId, tick: Ticks, mark: step::Mark) {
        self.step(thread, tick, step::What::Mark(mark));
    }
}

fn simulate(logs: &[Vec<Record>]) -> bool {
    let mut turns = LockTurns::default();
    for r in logs.iter().flatten() {
        match r.what {
            RecordKind::Mark(Mark::Acquire { lock, order }) => turns.push(lock, order),
            RecordKind::Mark(Mark::Atomic { address, order, .. }) => turns.push(address, order),
            _ => {}
        }
    }
    turns.sort();
    let sources = logs.iter().map(|l| List(l.clone().into_iter())).collect();
    let mut order = Order::new(sources, turns, AddressSpace::new(vec![])).unwrap();
    let job = job(&machine(1, 4), "next-touch");
    let policy = homenode_policy::build(&job.policy, &PolicyContext::of(&job.machine, job.page)).unwrap();
    let mut memory = Memory::new(&job.machine, &job.binding, job.page, policy, &job.options).unwrap();
    let caches = Caches::new(&job.machine, &job.binding).unwrap();
    let mut rest = Rest { caches, chunk: MemChunk::default(), refused: false };
    let mut more = true;
    while more {
        more = order.advance(&mut rest, 500).unwrap();
        let mut chunk = std::mem::take(&mut rest.chunk);
        chunk.threads.resize_with(logs.len(), Vec::new);
        chunk.last = !more;
        if rest.refused || memory.feed(&chunk).is_err() {
            return false;
        }
    }
    memory.finish().is_ok()
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }
}

fn mutate(logs: &mut [Vec<Record>], rng: &mut Rng) {
    let (which, other) = (rng.below(logs.len()), rng.below(logs.len()));
    let (at, to) = (rng.below(logs[which].len()), rng.below(logs[other].len()));
    let Some(record) = logs[which].get(at).copied() else { return };
    let odd = [0, 1, 2, 63, 4095, 1 << 20, 1 << 34, 1 << 43, (1 << 44) + 1, 1 << 63, u64::MAX][rng.below(11)];
    match rng.below(6) {
        0 => logs[which].truncate(at),
        1 => drop(logs[which].remove(at)),
        2 => logs[other].insert(to, record),
        3 => logs[which][at].tick = Ticks(odd),
        _ => match record.what {
            RecordKind::Mark(mark) => {
                let (mut words, n) = mark.words();
                if n > 0 {
                    words[rng.below(n)] = odd;
                }
                let mark = Mark::from_words(mark.code(), &words[..n]).unwrap();
                logs[which][at].what = RecordKind::Mark(mark);
            }
            RecordKind::Access { write, pc, .. } => {
                logs[which][at].what = RecordKind::Access { line: LineNo(odd >> LineNo::SHIFT), write, pc };
            }
        },
    }
}

fn recorded(name: &str) -> Vec<Vec<Record>> {
    let one = |thread: &str| {
        let path = root().join("fixtures/logs/v1").join(name).join(format!("{thread}.hnlog"));
        let mut log = LogReader::open(Path::new(&path)).unwrap();
        let mut records = Vec::new();
        while let Some(r) = log.next_record().unwrap() {
            records.push(r);
        }
        records
    };
    ["00000", "00001"].map(one).to_vec()
}

fn hostile(rounds: u64) {
    let recordings = ["locks", "sor", "unfiltered"].map(recorded);
    for recording in &recordings {
        assert!(simulate(recording), "a sound recording is simulated");
    }
    let mut simulated = 0;
    for round in 0..rounds {
        let mut rng = Rng(0x9e37_79b9_7f4a_7c15 ^ (round + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut logs = recordings[rng.below(recordings.len())].clone();
        for _ in 0..1 + rng.below(4) {
            mutate(&mut logs, &mut rng);
        }
        let begun = std::time::Instant::now();
        simulated += u64::from(simulate(&logs));
        assert!(begun.elapsed().as_secs() < 20, "round {round} takes for ever");
    }
    println!("{rounds} contradictory recordings, {simulated} simulated, the others refused");
}

#[test]
fn contradictory_recordings_end() {
    hostile(300);
}

#[test]
#[ignore = "long: make test-long"]
fn many_contradictory_recordings_end() {
    hostile(20_000);
}
