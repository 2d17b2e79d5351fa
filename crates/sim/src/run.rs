//! The three stages together: one pass over a recording serves any number of machines and policies.
//!
//! The calling thread merges the logs and runs stage 2 once for every set of caches that differs;
//! each chunk of the memory stream goes to the workers, who run stage 3 for the jobs they own.
//! Every job sees the same chunks in the same order whoever runs it, so the number of workers never
//! shows in a result.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use homenode_log::file::LogReader;
use homenode_model::{Bytes, CacheScope, CpuId, LineNo, ThreadId, Ticks, Topology};
use homenode_order::step::{Mark, Sync, TraceStep, What};
use homenode_order::{Order, StepSink, Trace};
use homenode_policy::journal::{self, Journalled};
use homenode_policy::{Policy, PolicyContext, SpecError};

use crate::caches::{Caches, CachesError};
use crate::change::{Change, Changing};
use crate::memory::{Memory, MemoryError, MemoryOptions, Outcome};
use crate::stream::MemChunk;
use crate::yardsticks::path::HomePath;
use crate::yardsticks::{Script, Tally, TallyError, Yardsticks};

/// Steps between two hand-overs to the workers.
const BUDGET: u64 = 1 << 15;
/// Chunks that may wait for a worker.
const BACKLOG: usize = 4;

/// One simulation: a machine, where the threads run, a policy.
#[derive(Clone, Debug)]
pub struct Job {
    /// The machine.
    pub machine: Arc<Topology>,
    /// CPU of each thread.
    pub binding: Vec<CpuId>,
    /// Page size.
    pub page: Bytes,
    /// Policy and its options, as [`homenode_policy::build`] takes it.
    pub policy: String,
    /// Carried out in place of the policy: what was decided in advance.
    pub way: Option<Arc<HomePath>>,
    /// The rest.
    pub options: MemoryOptions,
}

impl Job {
    /// What the bound, the oracle and the search for this job's machine and binding need.
    fn tally(&self) -> Result<Tally, TallyError> {
        Tally::new(&self.machine, &self.binding, self.page, &self.options)
    }
}

/// What a run yields: about the recording, by job, and by job whose yardsticks were asked for.
#[derive(Debug)]
pub struct Results {
    /// The recording.
    pub trace: Trace,
    /// By job. A job of its own that fails has its error in its place.
    pub outcomes: Vec<Result<Outcome, MemoryError>>,
    /// In the order asked for.
    pub yardsticks: Vec<Result<Yardsticks, TallyError>>,
    /// There was enough before the recording's end.
    pub stopped_early: bool,
}

/// Why a simulation failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A job binds another number of threads than the recording has.
    #[error("the recording has {recorded} threads, the machine was given {bound}")]
    Threads {
        /// In the recording.
        recorded: usize,
        /// Bound by the job.
        bound: usize,
    },
    /// A policy's specification is wrong.
    #[error("{0}")]
    Policy(SpecError),
    /// Stage 2.
    #[error("{0}")]
    Caches(CachesError),
    /// Stage 3.
    #[error("{0}")]
    Memory(MemoryError),
    /// The caller asked to stop.
    #[error("interrupted")]
    Stopped,
}

/// Which threads share which cache: machines and bindings that agree here have the same memory
/// stream.
fn sharing(machine: &Topology, binding: &[CpuId]) -> Vec<Vec<usize>> {
    let group = |scope: CacheScope, cpu: CpuId| {
        let node = machine.node_of(cpu);
        let within = machine.cpus_of(node).position(|c| c == cpu).unwrap_or(0);
        match scope {
            CacheScope::Cpu => (node, within),
            CacheScope::Group(n) => (node, within / n.max(1) as usize),
            CacheScope::Node => (node, 0),
        }
    };
    let by_level = machine.caches.iter().map(|cache| {
        let mut seen = Vec::new();
        let number = |cpu: &CpuId| {
            let g = group(cache.scope, *cpu);
            seen.iter().position(|s| *s == g).unwrap_or_else(|| {
                seen.push(g);
                seen.len() - 1
            })
        };
        binding.iter().map(number).collect()
    });
    by_level.collect()
}

/// What jobs of one lane agree on: the machine, which threads share which cache, the change.
type LaneKey = (Arc<Topology>, Vec<Vec<usize>>, Option<Arc<Change>>);

/// Stage 2 of one set of caches, filling its next chunk.
struct Lane {
    caches: Caches,
    chunk: MemChunk,
    failed: Option<CachesError>,
    changing: Option<Changing>,
}

impl Lane {
    fn pass(&mut self, step: &TraceStep) {
        if let Err(e) = self.caches.step(step, &mut self.chunk) {
            self.failed.get_or_insert(e);
        }
    }
}

struct Lanes {
    lanes: Vec<Lane>,
    /// Rounds that began, and the end of the last one.
    marks: usize,
}

impl StepSink for Lanes {
    #[inline]
    fn access(&mut self, thread: ThreadId, tick: Ticks, line: LineNo, write: bool) -> bool {
        let mut new = false;
        for lane in &mut self.lanes {
            let Lane { caches, chunk, failed, changing } = lane;
            let mut pass = |line, write| match caches.access(thread, tick, line, write, chunk) {
                Ok(cold) => cold,
                Err(e) => {
                    failed.get_or_insert(e);
                    false
                }
            };
            new |= match changing {
                None => pass(line, write),
                Some(changing) => changing.access(thread, line, write, pass),
            };
        }
        new
    }
    fn sync(&mut self, thread: ThreadId, tick: Ticks, sync: Sync) {
        for lane in &mut self.lanes {
            lane.pass(&TraceStep { thread, tick, what: What::Sync(sync) });
        }
    }
    fn mark(&mut self, thread: ThreadId, tick: Ticks, mark: Mark) {
        self.marks += usize::from(matches!(mark, Mark::Iteration { .. }));
        for lane in &mut self.lanes {
            if let Some(changing) = &mut lane.changing {
                changing.mark(&mark);
            }
            lane.pass(&TraceStep { thread, tick, what: What::Mark(mark) });
        }
    }
}

type Message = (usize, Arc<MemChunk>);

/// A job under way: its number, its lane, its stage 3 or why that failed.
struct Running {
    number: usize,
    lane: usize,
    memory: Result<Memory, MemoryError>,
    journal: Option<Journal>,
}

/// Where a policy's journal goes: one end is with the policy, which the simulation owns.
#[derive(Clone, Debug, Default)]
struct Journal(Arc<Mutex<Vec<u8>>>);

impl Journal {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl journal::Sink for Journal {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes().extend_from_slice(bytes);
    }
}

impl Running {
    fn feed(&mut self, lane: usize, chunk: &MemChunk) {
        if lane == self.lane
            && let Ok(memory) = &mut self.memory
            && let Err(e) = memory.feed(chunk)
        {
            self.memory = Err(e);
        }
    }

    fn finish(self) -> (usize, Result<Outcome, MemoryError>) {
        let mut outcome = self.memory.and_then(Memory::finish);
        // The policy is gone by now, and with it went the last of its journal.
        if let (Ok(outcome), Some(journal)) = (&mut outcome, self.journal) {
            outcome.journal = Some(std::mem::take(&mut journal.bytes()));
        }
        (self.number, outcome)
    }
}

/// Tallying for the yardsticks of a job's machine and binding.
struct Tallying {
    number: usize,
    lane: usize,
    tally: Result<Tally, TallyError>,
}

impl Tallying {
    fn feed(&mut self, lane: usize, chunk: &MemChunk) {
        if lane == self.lane
            && let Ok(tally) = &mut self.tally
            && let Err(e) = tally.feed(chunk)
        {
            self.tally = Err(e);
        }
    }
}

/// What a worker does.
#[derive(Default)]
struct Share {
    running: Vec<Running>,
    tallying: Vec<Tallying>,
}

/// How much of a long recording is simulated: its rounds are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enough {
    /// Rounds at least.
    pub rounds: usize,
    /// Accesses of the rounds at least.
    pub accesses: u64,
}

/// Results by number.
#[derive(Default)]
struct Yield {
    outcomes: BTreeMap<usize, Result<Outcome, MemoryError>>,
    yardsticks: BTreeMap<usize, Result<Yardsticks, TallyError>>,
}

impl Share {
    fn work(mut self, chunks: &Receiver<Message>) -> Yield {
        while let Ok((lane, chunk)) = chunks.recv() {
            self.running.iter_mut().for_each(|r| r.feed(lane, &chunk));
            self.tallying.iter_mut().for_each(|t| t.feed(lane, &chunk));
        }
        let outcomes = self.running.into_iter().map(Running::finish);
        let yardsticks = self.tallying.into_iter().map(|t| (t.number, t.tally.map(Tally::finish)));
        Yield { outcomes: outcomes.collect(), yardsticks: yardsticks.collect() }
    }
}

/// Runs all jobs over a recording, and tallies for the yardsticks of those whose index is in
/// `tallied`. `progress` is told the accesses read so far and answers whether to go on.
///
/// A damaged recording is simulated up to its damage, which [`Trace::damage`] names.
///
/// # Errors
/// The first that makes all jobs pointless.
pub fn run(
    order: Order<LogReader>,
    jobs: &[Job],
    tallied: &[usize],
    workers: usize,
    progress: impl FnMut(u64) -> bool,
) -> Result<Results, RunError> {
    run_until(order, jobs, tallied, workers, None, progress)
}

/// The same, until there are `enough` rounds; what was begun of the next one counts for nothing.
/// [`Results::stopped_early`] says whether rounds are left.
///
/// # Errors
/// As [`run`].
pub fn run_until(
    mut order: Order<LogReader>,
    jobs: &[Job],
    tallied: &[usize],
    workers: usize,
    enough: Option<Enough>,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<Results, RunError> {
    let threads = order.threads();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut keys: Vec<LaneKey> = Vec::new();
    let n = workers.clamp(1, jobs.len().max(1));
    let mut shares: Vec<Share> = (0..n).map(|_| Share::default()).collect();
    for (number, job) in jobs.iter().enumerate() {
        if job.binding.len() != threads {
            return Err(RunError::Threads { recorded: threads, bound: job.binding.len() });
        }
        let change = job.options.change.clone();
        let key = (job.machine.clone(), sharing(&job.machine, &job.binding), change);
        let running = job.binding.iter().filter_map(|cpu| job.machine.cpus.get(cpu.index()).copied());
        let mut context = PolicyContext::of(&job.machine, job.page).with_running(running);
        context.plan.clone_from(&job.options.plan);
        let mut policy: Box<dyn Policy> = match &job.way {
            Some(way) => Box::new(Script::new(way.clone())),
            None => homenode_policy::build(&job.policy, &context).map_err(RunError::Policy)?,
        };
        let lane = keys.iter().position(|k| *k == key).unwrap_or(keys.len());
        if lane == keys.len() {
            let caches = Caches::new(&job.machine, &job.binding).map_err(RunError::Caches)?;
            let changing = key.2.clone().map(|change| Changing::new(change, threads));
            keys.push(key);
            lanes.push(Lane { caches, chunk: MemChunk::default(), failed: None, changing });
        }
        if policy.interest().touches_by_region {
            lanes[lane].caches.tell_region_touches();
        }
        let journal = job.options.journal.then(Journal::default);
        if let Some(journal) = journal.clone() {
            policy = Box::new(Journalled::new(policy, &job.policy, &context, journal));
        }
        let memory = Memory::new(&job.machine, &job.binding, job.page, policy, &job.options);
        shares[number % n].running.push(Running { number, lane, memory, journal });
        for (number, _) in tallied.iter().enumerate().filter(|(_, j)| **j == number) {
            let tally = job.tally();
            shares[number % n].tallying.push(Tallying { number, lane, tally });
        }
    }
    let mut lanes = Lanes { lanes, marks: 0 };
    let mut damage = None;
    let all = thread::scope(|scope| {
        let mut senders: Vec<SyncSender<Message>> = Vec::new();
        let mut handles = Vec::new();
        for share in shares {
            let (send, receive) = sync_channel(BACKLOG);
            senders.push(send);
            handles.push(scope.spawn(move || share.work(&receive)));
        }
        let ended = produce(&mut order, &mut lanes, &senders, enough, &mut damage, &mut progress);
        drop(senders);
        let mut all = Yield::default();
        for handle in handles {
            match handle.join() {
                Ok(some) => {
                    all.outcomes.extend(some.outcomes);
                    all.yardsticks.extend(some.yardsticks);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        ended.map(|early| (all, early))
    })?;
    let (all, stopped_early) = all;
    let mut trace = Trace { damage, ..order.trace() };
    if stopped_early {
        // Threads that have no end here have one behind the last simulated round.
        trace.unfinished = 0;
    }
    let outcomes = all.outcomes.into_values().collect();
    Ok(Results { trace, outcomes, yardsticks: all.yardsticks.into_values().collect(), stopped_early })
}

/// An empty chunk of the same threads with room for as much as `like` has.
fn fresh(like: &MemChunk) -> MemChunk {
    let room = |items: &Vec<_>| Vec::with_capacity(items.len() + items.len() / 4);
    MemChunk { threads: like.threads.iter().map(room).collect(), items: 0, last: false }
}

fn produce(
    order: &mut Order<LogReader>,
    lanes: &mut Lanes,
    senders: &[SyncSender<Message>],
    enough: Option<Enough>,
    damage: &mut Option<String>,
    progress: &mut impl FnMut(u64) -> bool,
) -> Result<bool, RunError> {
    let mut more = true;
    let mut stopped_early = false;
    // Accesses before the first round.
    let mut before = None;
    while more {
        more = match order.advance(lanes, BUDGET) {
            Ok(more) => more,
            Err(e) => {
                *damage = Some(e.to_string());
                order.end(lanes);
                false
            }
        };
        if lanes.marks > 0 {
            let read = order.accesses() - *before.get_or_insert(order.accesses());
            // The round under way counts for nothing: the last mark has ended the one before.
            if more && enough.is_some_and(|e| lanes.marks > e.rounds && read >= e.accesses) {
                order.end(lanes);
                (more, stopped_early) = (false, true);
            }
        }
        for (i, lane) in lanes.lanes.iter_mut().enumerate() {
            if let Some(e) = lane.failed.take() {
                return Err(RunError::Caches(e));
            }
            let next = fresh(&lane.chunk);
            let mut chunk = std::mem::replace(&mut lane.chunk, next);
            chunk.last = !more;
            let chunk = Arc::new(chunk);
            for sender in senders {
                // A worker only ends early by a panic, which the join passes on.
                let _ = sender.send((i, chunk.clone()));
            }
        }
        if !progress(order.accesses()) {
            return Err(RunError::Stopped);
        }
    }
    Ok(stopped_early)
}
