//! Stage 3: where pages live, and how long everything takes.
//!
//! A [`Memory`] replays a memory stream on a machine under a policy. It is a discrete-event
//! simulation: each thread has a clock in picoseconds, and always the thread with the smallest
//! (clock, index) goes next. A thread whose next item is not here yet holds up all whose clocks are
//! beyond its own, so that where a stream is cut into chunks never shows in the result. What it
//! models:
//!
//! - **Computing**: a tick takes [`Core::access`](homenode_model::Core).
//! - **Hits behind the first cache** take what stage 2 says. A CPU with several accesses
//!   outstanding has as many of these hits under way, too, and computes meanwhile: a core's miss
//!   buffers serve them as they serve accesses to memory.
//! - **Latency**: an access to main memory takes the matrix entry (toucher's node, page's home) and
//!   what it queues. A coherence miss is an access to the home; that the owner of the line may lie
//!   elsewhere is not modelled.
//! - **Queues**: data keeps the home's controller busy, and between nodes the ports and the link in
//!   its direction, first come, first served. An access is delayed by the longest of its queues
//!   (the module `paths` says why). An upgrade is a round trip to the home's directory and moves no
//!   data; a write-back moves data and nobody waits.
//! - **Overlap**: a thread goes on until `outstanding` accesses are under way and then waits for
//!   the oldest; they retire in order. Stores are as loads. Of a miss that goes on with a
//!   sequential stream of misses, an option hides a share of the latency, never of the queue: what
//!   a prefetcher does. Synchronisation, and every mark but allocations, waits for all of the
//!   thread's.
//! - **Uncached remote memory** (`remote_cacheable` false): an access to another node's memory
//!   moves a word of [`WORD`] bytes, hit or miss. [`Cause::Uncached`] is an access that would have
//!   hit: it costs if the page is remote and is free otherwise. Such machines never write a remote
//!   line back.
//! - **A monitor that counts references** (`counts_references`) tells the policy of hits, too, so
//!   that its counts are the same wherever a page lives. Hits cost nothing where memory is cached.
//! - **Faults**: a page without a home gets one at its first access, by the policy or else on the
//!   nearest node with room. That takes no time (the model has no number for it). Write-backs never
//!   fault.
//! - **Armed pages** trap at the next access of any thread. The policy decides; its moves are
//!   carried out at once, on the trapping thread's time, after its accesses under way:
//!   [`MigrationCost::of`](homenode_model::MigrationCost) with the other threads then alive, one
//!   move at a time over the machine where `serialised`. Where a move `stops` the machine, all
//!   other threads, with what they have under way, stand still for as long. The copy keeps both
//!   controllers, the ports and the link busy (option). Others may use the page meanwhile, as if it
//!   were at its new home. A trap that moves nothing takes no time.
//! - **Copies** of a page cost the thread that makes them what a move costs. Reads of a node that
//!   has one are local; all others go to the home. A write makes all copies go and costs the writer
//!   the same less the copying (a trap, the page tables, the TLB shoot-down). Only writes that
//!   reach stage 3 are seen: a store that hits a line which its CPU had modified before the page
//!   was copied is missed. Copies take memory, which they give back when a page without a home
//!   needs it. A machine's first 64 nodes can hold them.
//! - **Frames** ([`Decision::ReplicateLines`](homenode_model::Decision)) hold the lines of a page
//!   that their node has used, coherent by line (the module `frames`). Allotting one costs what a
//!   move costs, less the copying. A line that a frame has is local memory. Any other comes from
//!   the home, and takes the time of the frame's memory to be kept there. A write waits for the
//!   nodes whose frames lose the line. Looking up a line's state takes no time: hardware does it
//!   beside the access. A node without room gives up the frame that has gone without a miss for
//!   longest; lines that are newer there go home.
//! - **Decisions at marks and wake-ups** are carried out on the time of the thread whose mark it
//!   is, or whose turn it is; with [`MoveWorker::Apart`] on nobody's.
//!
//! Two threads on one CPU are refused: time sharing is not modelled.
//!
//! Memory: a page costs 4 bytes, and 16 a node for the histograms of the timed part; 8 more a node
//! if the policy wants counts, 16 more where hits matter. An item not yet done costs 40 bytes. Of
//! all threads' items 64 MiB stay in memory; the others wait in a file (the module `spill`).

mod counter;
mod driver;
mod frames;
mod outcome;
mod pages;
pub(crate) mod paths;
mod pending;
mod percent;
mod policy_view;
mod spill;
pub(crate) mod streams;
mod sync;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod thread;
mod turns;
pub(crate) mod window;

pub use outcome::{
    Counts, IterationMark, LatencySums, LineCounts, Migration, Outcome, RegionTime, ThreadTime,
};
pub(crate) use pages::MAX_PAGES;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use homenode_model::{
    AccessKind, Bytes, CpuId, Histogram, LineNo, MigrationCost, NodeId, Ns, PageNo, Placement, Ps, Rows,
    ThreadId, Topology, TopologyError,
};
use homenode_policy::Policy;

use crate::change::Change;
use crate::collect::{Collect, Collector};
use crate::stream::{Cause, MemChunk, MemWhat};
use counter::Counter;
use homenode_order::step::SyncId;
use outcome::PageCosts;
use pages::Pages;
use paths::{Paths, Size};
pub use pending::HELD;
use pending::Pending;
pub use percent::Percent;
use policy_view::Told;
use spill::Spill;
pub use spill::SpillError;
use streams::Streams;
use thread::{State, Thread};
use turns::Turns;

/// What an access to uncached remote memory moves.
pub const WORD: Bytes = Bytes(8);

/// Who carries out moves and copies that are decided at marks and wake-ups. What is decided when an
/// armed page is touched is always done by the toucher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MoveWorker {
    /// The thread whose mark it is, or whose turn it is: it does nothing else meanwhile.
    #[default]
    Program,
    /// A thread of the engine's own on a processor of its own: the program goes on. What it does is
    /// in [`Outcome::migration`] alone. One page after the other, if the policy says so
    /// ([`homenode_policy::paced`]).
    Apart,
}

/// What is not the machine's and not the policy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Outstanding accesses, in place of the topology's: no single number fits all programs.
    pub outstanding: Option<NonZeroU32>,
    /// Percent of the latency that prefetching hides of misses which go on with a sequential
    /// stream; 0 by default. No single number fits all programs.
    pub coverage: Percent,
    /// Whether a page that moves keeps controllers, ports and link busy. On by default.
    pub copy_traffic: bool,
    /// Who carries out moves that are decided at marks and wake-ups.
    pub mover: MoveWorker,
    /// How many [`Migration`]s to list; all are counted.
    pub keep_migrations: usize,
    /// Homes known beforehand, for the policy `plan`
    /// ([`PolicyContext::plan`](homenode_policy::PolicyContext)).
    pub plan: Option<Arc<Placement>>,
    /// Whether to keep what the policy was told and what it decided ([`Outcome::journal`]);
    /// [`crate::run`] does.
    pub journal: bool,
    /// Whether to collect what a data set tells ([`Outcome::collected`]), and how.
    pub collect: Option<Collect>,
    /// What a change of the source does to the accesses; [`crate::run`] applies it.
    pub change: Option<Arc<Change>>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            outstanding: None,
            coverage: Percent::ZERO,
            copy_traffic: true,
            mover: MoveWorker::Program,
            keep_migrations: 1 << 16,
            plan: None,
            journal: false,
            collect: None,
            change: None,
        }
    }
}

/// Why a simulation cannot start or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The machine makes no sense.
    #[error("the machine cannot be simulated: {0}")]
    Topology(TopologyError),
    /// Not a power of two from 4 KiB up.
    #[error("a page of {0} is not a power of two from 4 KiB up")]
    PageSize(Bytes),
    /// A thread is bound to a CPU that the machine lacks.
    #[error("{thread} is bound to {cpu}, which the machine lacks")]
    NoSuchCpu {
        /// The thread.
        thread: ThreadId,
        /// The CPU.
        cpu: CpuId,
    },
    /// Two threads are bound to one CPU.
    #[error(
        "{thread} is bound to {cpu} like another: the simulator has no time sharing; \
         use a machine with as many CPUs as the program has threads"
    )]
    SharedCpu {
        /// The CPU.
        cpu: CpuId,
        /// The second thread.
        thread: ThreadId,
    },
    /// The stream has a thread that the binding lacks.
    #[error("the stream has {thread}, but only {bound} threads are bound to CPUs")]
    Unbound {
        /// The thread.
        thread: ThreadId,
        /// Threads that are bound.
        bound: usize,
    },
    /// An address beyond what canonical addresses can be: the stream is damaged.
    #[error("{thread} names address {address:#x}, beyond all canonical ones: the recording is damaged")]
    Address {
        /// Whose.
        thread: ThreadId,
        /// The first byte.
        address: u64,
    },
    /// No node has memory for one more page.
    #[error("no node has memory left for {page}, touched by {node}; choose a machine with more")]
    OutOfMemory {
        /// The page.
        page: PageNo,
        /// Who touches it.
        node: NodeId,
    },
    /// The policy asks to be polled again and again at one moment.
    #[error("the policy does not stop deciding at {now}: a bug in the policy")]
    Restless {
        /// The moment.
        now: Ns,
    },
    /// A thread waits for signals that nobody gives.
    #[error(
        "{thread} waits for {wants} signals of counter {} and gets {had}: the recording is incomplete",
        id.0
    )]
    Deadlock {
        /// The thread.
        thread: ThreadId,
        /// For what.
        id: SyncId,
        /// For how many signals.
        wants: u32,
        /// How many there were.
        had: u32,
    },
    /// Accesses that a thread has still to do cannot be kept in a file.
    #[error("{0}")]
    Spill(SpillError),
    /// A thread's clock left the 213 days that it can count: the stream is damaged.
    #[error("the clock of {thread} overflows: the recording is damaged")]
    Clock {
        /// The thread.
        thread: ThreadId,
    },
}

impl From<SpillError> for MemoryError {
    fn from(e: SpillError) -> Self {
        Self::Spill(e)
    }
}

impl From<TopologyError> for MemoryError {
    fn from(e: TopologyError) -> Self {
        Self::Topology(e)
    }
}

/// A histogram of the timed part, though nobody knows in advance which mark is the last.
#[derive(Clone, Debug)]
struct Timed {
    /// From the first mark to the last so far.
    sum: Histogram,
    /// Since then.
    since: Histogram,
}

impl Timed {
    fn new(nodes: usize) -> Self {
        Self { sum: Histogram::new(nodes), since: Histogram::new(nodes) }
    }
    fn mark(&mut self, first: bool) {
        if !first {
            self.sum.absorb(&self.since);
        }
        self.since.clear();
    }
    fn finish(self, marks: usize) -> Histogram {
        if marks < 2 { self.since } else { self.sum }
    }
}

/// Facts about the machine and the program that do not change.
#[derive(Clone, Debug)]
struct Fixed {
    /// Nodes with memory.
    homes: Vec<NodeId>,
    binding: Vec<CpuId>,
    cpus: Vec<NodeId>,
    /// Time of a tick.
    access: u64,
    outstanding: u32,
    /// log2 of the lines a page has.
    lines: u32,
    /// 64-byte lines that a line of the last cache has.
    line_step: u64,
    page: Bytes,
    migration: MigrationCost,
    remote_cacheable: bool,
    options: MemoryOptions,
}

/// What is being counted.
#[derive(Clone, Debug)]
struct Ledger {
    counts: Counts,
    /// The counts at the first mark and at the last so far.
    at_marks: Option<(Counts, Counts)>,
    marks: Vec<IterationMark>,
    regions: BTreeMap<u32, RegionTime>,
    histogram: Timed,
    hits: Option<Timed>,
    faults: u64,
    touches: u64,
    moved: u64,
    migration: Ps,
    migrations: Vec<Migration>,
    replicated: u64,
    lines: LineCounts,
    collapsed: u64,
    moves_refused: u64,
    places_refused: u64,
    lost_write_backs: u64,
    queued: Ps,
}

/// The simulation.
///
/// ```text
/// let mut memory = Memory::new(&machine, &binding, Bytes::kib(8), policy,
/// &MemoryOptions::default())?; for chunk in stream { memory.feed(&chunk)?; }
/// let outcome = memory.finish()?;
/// ```
pub struct Memory {
    fixed: Fixed,
    paths: Paths,
    pages: Pages,
    threads: Vec<Thread>,
    turns: Turns,
    counters: Rows<Counter>,
    /// Threads that have not ended.
    alive: u64,
    /// No more chunks come.
    last: bool,
    policy: Box<dyn Policy>,
    told: Told,
    /// The lock of serialised moves is free from here on.
    lock: u64,
    ledger: Ledger,
    collector: Option<Box<Collector>>,
    /// The armed page whose touch the policy is asked about.
    touched: Option<PageNo>,
    /// Where the items of slow threads are, beyond `held` a thread.
    spill: Arc<Spill>,
    held: usize,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, thread) = self.turns.first();
        write!(f, "Memory {{ threads: {}, next: ({now} ps, {thread}) }}", self.threads.len())
    }
}

impl Memory {
    /// The machine `topology` with pages of `page` bytes; thread i runs on CPU `binding[i]`.
    ///
    /// # Errors
    /// When the machine makes no sense or the binding does not fit it.
    pub fn new(
        topology: &Topology,
        binding: &[CpuId],
        page: Bytes,
        policy: Box<dyn Policy>,
        options: &MemoryOptions,
    ) -> Result<Self, MemoryError> {
        topology.check()?;
        if !page.0.is_power_of_two() || page < Bytes::kib(4) {
            return Err(MemoryError::PageSize(page));
        }
        check_binding(topology, binding)?;
        let nodes = topology.nodes.len();
        let line = topology.caches.last().map_or(Bytes(LineNo::BYTES), |c| c.line);
        let told = Told::new(policy.interest(), nodes);
        Ok(Self {
            fixed: Fixed {
                homes: topology.nodes_with_memory(),
                binding: binding.to_vec(),
                cpus: topology.cpus.clone(),
                access: topology.core.access.0,
                outstanding: options.outstanding.map_or(topology.core.outstanding, NonZeroU32::get),
                lines: page.0.trailing_zeros() - LineNo::SHIFT,
                line_step: (line.0 / LineNo::BYTES).max(1),
                page,
                migration: topology.migration.clone(),
                remote_cacheable: topology.remote_cacheable,
                options: options.clone(),
            },
            paths: Paths::new(topology, [line, WORD, page]),
            pages: Pages::new(topology, page),
            threads: Vec::new(),
            turns: Turns::new(),
            counters: Rows::new(1, Counter::NEW),
            alive: 0,
            last: false,
            policy,
            told,
            lock: 0,
            ledger: Ledger {
                counts: Counts::new(nodes),
                at_marks: None,
                marks: Vec::new(),
                regions: BTreeMap::new(),
                histogram: Timed::new(nodes),
                hits: topology.needs_hits().then(|| Timed::new(nodes)),
                faults: 0,
                touches: 0,
                moved: 0,
                migration: Ps::ZERO,
                migrations: Vec::new(),
                replicated: 0,
                lines: LineCounts::default(),
                collapsed: 0,
                moves_refused: 0,
                places_refused: 0,
                lost_write_backs: 0,
                queued: Ps::ZERO,
            },
            collector: options.collect.map(|how| Box::new(Collector::new(nodes, page, &how))),
            touched: None,
            spill: Arc::default(),
            held: pending::held(binding.len()),
        })
    }

    /// Takes the next piece of the stream and goes on as far as it reaches.
    ///
    /// Where the stream is cut does not show in the outcome, provided that a thread is named (its
    /// index is below `chunk.threads.len()`) no later than in the chunk with the signal that starts
    /// it.
    ///
    /// # Errors
    /// See [`MemoryError`]; the simulation is of no use after one.
    pub fn feed(&mut self, chunk: &MemChunk) -> Result<(), MemoryError> {
        for (t, items) in chunk.threads.iter().enumerate() {
            if t == self.threads.len() {
                self.add_thread()?;
            }
            if self.threads[t].state == State::Ended {
                continue;
            }
            self.threads[t].extend(items);
            if self.threads[t].state == State::Starved {
                self.advance(t);
            }
        }
        self.last |= chunk.last;
        self.run()?;
        Ok(self.spill.failed()?)
    }

    /// The result, when all is fed.
    ///
    /// # Errors
    /// See [`MemoryError`].
    pub fn finish(mut self) -> Result<Outcome, MemoryError> {
        self.last = true;
        self.run()?;
        self.spill.failed()?;
        self.check_ended()?;
        Ok(self.outcome())
    }

    fn add_thread(&mut self) -> Result<(), MemoryError> {
        let t = self.threads.len();
        let unbound = || MemoryError::Unbound { thread: ThreadId(t as u32), bound: t };
        let cpu = *self.fixed.binding.get(t).ok_or_else(unbound)?;
        let regions = self.told.touches_by_region();
        let (node, fixed) = (self.fixed.cpus[cpu.index()], &self.fixed);
        let (streams, pending) = (Streams::new(fixed.line_step), Pending::new(self.spill.clone(), self.held));
        self.threads.push(Thread::new(node, fixed.outstanding, streams, regions, pending));
        self.turns.grow(t + 1);
        self.turns.set(t, 0);
        self.alive += 1;
        Ok(())
    }

    /// Takes turns until a thread needs an item that is not here, or nobody has a turn.
    fn run(&mut self) -> Result<(), MemoryError> {
        loop {
            let (now, t) = self.turns.first();
            if now == Turns::NEVER {
                return Ok(());
            }
            if self.threads[t].state == State::Starved {
                if !self.last {
                    return Ok(());
                }
                self.end(t);
                continue;
            }
            if now >= self.told.wake && self.wake_up(t)? {
                continue;
            }
            self.step(t)?;
        }
    }

    #[inline]
    fn step(&mut self, t: usize) -> Result<(), MemoryError> {
        match self.threads[t].item() {
            MemWhat::Access { line, write, cause } => self.access(t, line, write, cause),
            MemWhat::Touch { line } | MemWhat::RegionTouch { line } => self.touch(t, line),
            MemWhat::Sync(sync) => {
                self.sync(t, sync);
                Ok(())
            }
            MemWhat::Mark(mark) => self.mark(t, mark),
            MemWhat::CacheTime(_) => unreachable!("Thread::advance takes these"),
        }
    }

    /// The item at hand is done; on to the next.
    #[inline]
    fn next(&mut self, t: usize) {
        self.threads[t].done();
        self.advance(t);
    }

    #[inline]
    fn advance(&mut self, t: usize) {
        let now = self.threads[t].advance(self.fixed.access);
        self.turns.set(t, now);
    }

    /// The thread is over.
    fn end(&mut self, t: usize) {
        self.threads[t].end();
        self.turns.set(t, Turns::NEVER);
        self.alive -= 1;
    }

    #[inline]
    fn access(&mut self, t: usize, line: LineNo, write: bool, cause: Cause) -> Result<(), MemoryError> {
        let page = PageNo(line.0 >> self.fixed.lines);
        if page.0 >= pages::MAX_PAGES {
            return Err(MemoryError::Address {
                thread: ThreadId(t as u32),
                address: line.0.saturating_mul(LineNo::BYTES),
            });
        }
        let state = self.pages.get(page);
        if !state.is_plain() {
            return self.access_special(t, line, write, cause);
        }
        self.serve(t, line, state.home(), write, cause);
        self.next(t);
        Ok(())
    }

    /// An access to a page that has no home, is armed, or has copies or frames.
    fn access_special(
        &mut self,
        t: usize,
        line: LineNo,
        write: bool,
        cause: Cause,
    ) -> Result<(), MemoryError> {
        let page = PageNo(line.0 >> self.fixed.lines);
        let before = self.threads[t].now;
        let mut state = self.pages.get(page);
        if cause == Cause::WriteBack {
            if state.is_placed() {
                let node = self.threads[t].node;
                let owns = state.is_framed() && self.pages.frames.owns(line, node);
                self.serve(t, line, if owns { node } else { state.home() }, write, cause);
            } else {
                self.ledger.lost_write_backs += 1;
            }
            self.next(t);
            return Ok(());
        }
        if state.traps() {
            self.trap(t, page, state)?;
            state = self.pages.get(page);
        }
        if state.is_copied() && (write || cause == Cause::Upgrade) {
            self.collapse(t, page)?;
        }
        if self.threads[t].now != before {
            // Others may be first now; the access is tried again at its turn.
            self.turns.set(t, self.threads[t].now);
            return Ok(());
        }
        let state = self.pages.get(page);
        if state.is_framed() && cause != Cause::Uncached {
            self.serve_framed(t, line, state.home(), write, cause);
            self.next(t);
            return Ok(());
        }
        let node = self.threads[t].node;
        let copied = state.is_copied() && self.pages.has_copy(page, node);
        self.serve(t, line, if copied { node } else { state.home() }, write, cause);
        self.next(t);
        Ok(())
    }

    /// The page fault of a touch that may hit in the caches.
    #[cold]
    fn touch(&mut self, t: usize, line: LineNo) -> Result<(), MemoryError> {
        let page = PageNo(line.0 >> self.fixed.lines);
        let state = if page.0 < pages::MAX_PAGES { self.pages.get(page) } else { return self.skip(t) };
        if state.is_placed() && state.traps() {
            self.trap(t, page, state)?;
        }
        self.skip(t)
    }

    fn skip(&mut self, t: usize) -> Result<(), MemoryError> {
        self.next(t);
        Ok(())
    }

    /// An access to a page that has frames.
    fn serve_framed(&mut self, t: usize, line: LineNo, home: NodeId, write: bool, cause: Cause) {
        let (node, now) = (self.threads[t].node, self.threads[t].now);
        let frames = &mut self.pages.frames;
        let found = match write || cause == Cause::Upgrade {
            true => frames.write(line, node, home),
            false => frames.read(line, node, home),
        };
        let losers = (0..64).filter(|n| found.invalidated >> n & 1 != 0).map(NodeId);
        let answered = losers.map(|n| self.paths.latency(home, n)).max().unwrap_or(0);
        self.ledger.lines.invalidated += u64::from(found.invalidated.count_ones());
        if found.fetched {
            self.ledger.lines.fetched += 1;
            self.paths.store(now, node, node, Size::Line);
        }
        self.serve_not_before(t, line, found.from, write, cause, answered);
    }

    /// An access that the memory of `home` answers.
    #[inline]
    fn serve(&mut self, t: usize, line: LineNo, home: NodeId, write: bool, cause: Cause) {
        self.serve_not_before(t, line, home, write, cause, 0);
    }

    /// The same; it takes `answered` at least, because other nodes must answer first.
    #[inline]
    fn serve_not_before(
        &mut self,
        t: usize,
        line: LineNo,
        home: NodeId,
        write: bool,
        cause: Cause,
        answered: u64,
    ) {
        let page = PageNo(line.0 >> self.fixed.lines);
        let thread = &mut self.threads[t];
        let (node, now) = (thread.node, thread.now);
        let local = node == home;
        let kind = if write || cause == Cause::Upgrade { AccessKind::Write } else { AccessKind::Read };
        let cached = local || self.fixed.remote_cacheable;
        let mut latency = self.paths.latency(node, home);
        match cause {
            Cause::WriteBack => {
                if cached {
                    self.paths.store(now, node, home, Size::Line);
                    self.ledger.counts.add(node, home, cause);
                }
                return;
            }
            Cause::Uncached => {
                if let Some(hits) = &mut self.ledger.hits {
                    hits.since.add(page, node, kind, 1);
                }
                if cached {
                    // The monitor counts references, wherever the page lives.
                    self.tell(page, node, kind);
                    return;
                }
            }
            _ => self.ledger.histogram.since.add(page, node, kind, 1),
        }
        let coverage = self.fixed.options.coverage;
        if coverage > Percent::ZERO && cause.is_miss() && thread.streams.follows(line) {
            latency = coverage.off(latency);
        }
        latency = latency.max(answered);
        let queued = match cause {
            Cause::Upgrade if cached => 0,
            _ => self.paths.fetch(now, node, home, if cached { Size::Line } else { Size::Word }),
        };
        self.ledger.counts.add(node, home, cause);
        self.ledger.queued += Ps(queued);
        if cause != Cause::Upgrade {
            thread.local += u64::from(local);
            thread.remote += u64::from(!local);
            if let Some(collector) = &mut self.collector {
                collector.served(now, page, node, home, kind);
            }
        }
        thread.issue(now.saturating_add(latency).saturating_add(queued));
        self.tell(page, node, kind);
    }

    /// Counts an access for the policy, if it wants counts.
    #[inline]
    fn tell(&mut self, page: PageNo, node: NodeId, kind: AccessKind) {
        if let Some(histogram) = &mut self.told.histogram {
            histogram.add(page, node, kind, 1);
            if self.pages.list(page) {
                self.told.listed.push(page);
            }
        }
    }

    fn outcome(self) -> Outcome {
        let ledger = self.ledger;
        let marks = ledger.marks.len();
        let time = self.threads.iter().map(|t| Ps(t.now)).max().unwrap_or_default();
        let numbered: Vec<_> = ledger.marks.iter().map(|m| (m.number, m.at)).collect();
        let collected = self.collector.map(|c| Arc::new(c.finish(time, &numbered)));
        let (timed_counts, timed) = match (ledger.at_marks, ledger.marks.as_slice()) {
            (Some((first, last)), [begin, .., end]) => (last.since(&first), end.at - begin.at),
            (Some((first, _)), [begin]) => (ledger.counts.since(&first), time - begin.at),
            _ => (ledger.counts.clone(), time),
        };
        let histogram = ledger.histogram.finish(marks);
        let hits = ledger.hits.map(|h| h.finish(marks));
        let placement = self.pages.last_homes();
        let costs = PageCosts {
            paths: &self.paths,
            histogram: &histogram,
            hits: hits.as_ref().filter(|_| !self.fixed.remote_cacheable),
            homes: &self.fixed.homes,
        };
        let latency = costs.sums(&placement, timed_counts.latency(&self.paths));
        Outcome {
            time,
            timed,
            marks: ledger.marks,
            regions: ledger.regions.into_values().collect(),
            threads: self.threads.iter().map(Thread::times).collect(),
            cpus: self.fixed.binding[..self.threads.len()].to_vec(),
            counts: ledger.counts,
            timed_counts,
            histogram,
            hits,
            placement,
            used: self.pages.used().to_vec(),
            faults: ledger.faults,
            touches: ledger.touches,
            moved: ledger.moved,
            migration: ledger.migration,
            migrations: ledger.migrations,
            replicated: ledger.replicated,
            lines: ledger.lines,
            collapsed: ledger.collapsed,
            moves_refused: ledger.moves_refused,
            places_refused: ledger.places_refused,
            lost_write_backs: ledger.lost_write_backs,
            queued: ledger.queued,
            controllers: self.paths.controllers_busy(),
            links: self.paths.links_busy(),
            latency,
            journal: None,
            collected,
        }
    }
}

fn check_binding(topology: &Topology, binding: &[CpuId]) -> Result<(), MemoryError> {
    let mut taken = vec![false; topology.cpus.len()];
    for (thread, cpu) in (0u32..).map(ThreadId).zip(binding) {
        match taken.get_mut(cpu.index()) {
            None => return Err(MemoryError::NoSuchCpu { thread, cpu: *cpu }),
            Some(true) => return Err(MemoryError::SharedCpu { cpu: *cpu, thread }),
            Some(free) => *free = true,
        }
    }
    Ok(())
}
