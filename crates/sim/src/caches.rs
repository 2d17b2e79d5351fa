//! Stage 2: what of the program's accesses leaves the caches of a machine.
//!
//! # Problem
//! Steps in, in canonical order; out, the memory stream: per thread what reaches main memory and
//! why, the time spent in outer cache levels, and the synchronisation and marks as they came.
//! Computed once a machine, shared by all policies.
//!
//! # Approach
//! [`homenode_cache::Hierarchy`] is the protocol (NINE levels, MESI, a full-map directory without
//! replacement hints; its module states the rules). Here its outcomes become items:
//!
//! | outcome | item of the accessing thread |
//! |---|---|
//! | hit in the first level | none |
//! | hit further out, also in another CPU's cache under a shared one | [`MemWhat::CacheTime`]: sum of `hit` of levels 2 … that one |
//! | miss | [`MemWhat::Access`] with its cause; no cache time: memory latency is load-to-use |
//! | store to a line shared beyond the last level | [`MemWhat::Access`] with [`Cause::Upgrade`] |
//! | first access to a unit since next touch was asked for | [`MemWhat::Touch`] before the rest |
//! | first access to a unit since a region began, where wanted | [`MemWhat::RegionTouch`] before the rest |
//! | dirty line evicted, or fetched by a reader elsewhere | [`MemWhat::Access`] with [`Cause::WriteBack`] after the access |
//!
//! Cache time adds up and is pushed before the thread's next item, if it is not zero.
//!
//! **Where pages live does not matter here**, to first order: data of a line that is modified
//! elsewhere is counted as an access to its home (cause coherence), a write-back that a reader
//! forces is charged to the reader, and the order of events does not follow from latencies.
//!
//! **Remote memory that is not cacheable** (`remote_cacheable` false): which pages are remote is
//! not known here, so an access that hits is emitted, too, as [`Cause::Uncached`]. Stage 3 drops it
//! when the page is local; when it is remote, `Uncached`, the demand causes and `Upgrade` all cost
//! one access, and `WriteBack` nothing. First-order still: lines of remote pages take room in the
//! modelled caches, and the cache time before such an item is counted.
//!
//! **A monitor that counts references** (`counts_references`): hits are emitted in the same way.
//! Where remote memory is cached they cost nothing, and only the policy's counts see them.
//!
//! # Properties
//! * `a_filter_changes_nothing`: for programs whose accesses between synchronisations are free of
//!   races at line granularity, the recorder's filter in front leaves the whole memory stream as it
//!   is when [`filter_fit`] says [`FilterFit::Exact`].
//! * Closed forms: `streaming_over_twice_the_cache_misses_every_line_every_lap`,
//!   `a_working_set_that_fits_has_only_cold_misses`, `one_coherence_miss_a_line_and_hand_over`.

use homenode_cache::hierarchy::TooManyAgents;
use homenode_cache::{AccessOutcome, Agent, CacheShape, Full, Hierarchy, Line, Miss, ShapeError, Words};
use homenode_model::{CpuId, LineNo, Ps, ThreadId, Ticks, Topology};

use crate::stream::{Cause, MemChunk, MemItem, MemWhat};
use homenode_order::step::{Mark, Sync, TraceStep, What};

mod filter;
#[cfg(test)]
mod tests;
mod touches;

pub use filter::{FilterFit, filter_fit};
use touches::Touches;

/// Bound of the directory: 16 GiB of touched lines of 64 B take 2 GiB of host memory, 4 GiB with
/// over 63 CPUs.
const MAX_CHUNKS: u32 = 1 << 14;

/// Why stage 2 stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CachesError {
    /// The machine's caches cannot be modelled.
    #[error("{0}")]
    Shape(ShapeError),
    /// More first-level caches in use than the directory can tell apart.
    #[error("{0}")]
    TooManyCpus(TooManyAgents),
    /// A step of a thread that is bound to no CPU.
    #[error("{thread} has a step, but only {bound} threads are bound to CPUs")]
    Unbound {
        /// The thread.
        thread: ThreadId,
        /// Threads that are bound.
        bound: usize,
    },
    /// The program touches more memory than the directory may describe.
    #[error("{0}")]
    Full(Full),
}

/// What a thread's accesses met; the sum of `hits` and of the first four causes is the number of
/// accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answers by cache level, the first level first.
    pub hits: [u64; homenode_cache::shape::MAX_LEVELS],
    /// Memory accesses by [`Cause`], as emitted.
    pub causes: [u64; 6],
}

/// Caches with the smallest directory entry that has a bit for each CPU in use and one more. An
/// entry describes a line of the machine: with 1 087 CPUs it takes 136 bytes for 64 to 128 bytes of
/// the program's memory.
enum Engine {
    /// Up to 63 CPUs, 8 bytes.
    Of63(Hierarchy<u64>),
    /// Up to 127 CPUs, 16 bytes.
    Of127(Hierarchy<u128>),
    /// Up to 255 CPUs, 32 bytes.
    Of255(Hierarchy<Words<4>>),
    /// Up to 511 CPUs, 64 bytes.
    Of511(Hierarchy<Words<8>>),
    /// Up to 1 087 CPUs, 136 bytes.
    Of1087(Hierarchy<Words<17>>),
}

/// Does the same with the caches of either size.
macro_rules! each {
    ($engine:expr, $caches:ident => $do:expr) => {
        match $engine {
            Engine::Of63($caches) => $do,
            Engine::Of127($caches) => $do,
            Engine::Of255($caches) => $do,
            Engine::Of511($caches) => $do,
            Engine::Of1087($caches) => $do,
        }
    };
}

impl Engine {
    fn new(shape: &CacheShape) -> Result<Self, TooManyAgents> {
        Ok(match shape.agents() {
            0..=63 => Self::Of63(Hierarchy::new(shape, MAX_CHUNKS)?),
            64..=127 => Self::Of127(Hierarchy::new(shape, MAX_CHUNKS)?),
            128..=255 => Self::Of255(Hierarchy::new(shape, MAX_CHUNKS)?),
            256..=511 => Self::Of511(Hierarchy::new(shape, MAX_CHUNKS)?),
            _ => Self::Of1087(Hierarchy::new(shape, MAX_CHUNKS)?),
        })
    }
}

/// A thread: its cache path, and what has happened since its last item.
struct Bound {
    agent: Agent,
    cache_time: Ps,
    counts: Counts,
}

/// The caches of a machine with a program's threads on its CPUs.
pub struct Caches {
    engine: Engine,
    threads: Vec<Bound>,
    /// Time of a hit by level, over one in the first.
    hit_time: Vec<Ps>,
    /// log2 of recorder lines in a machine line.
    shift: u32,
    /// Emit hits, too.
    emit_hits: bool,
    /// Units whose next touch somebody waits for.
    touches: Touches,
}

impl Caches {
    /// Empty caches of `machine`, thread *i* running on `cpus[i]` from start to end. Several
    /// threads may share a CPU.
    ///
    /// # Errors
    /// [`CachesError::Shape`], [`CachesError::TooManyCpus`].
    pub fn new(machine: &Topology, cpus: &[CpuId]) -> Result<Self, CachesError> {
        let shape = CacheShape::new(machine, cpus).map_err(CachesError::Shape)?;
        let engine = Engine::new(&shape).map_err(CachesError::TooManyCpus)?;
        let mut hit_time = vec![Ps::ZERO];
        for cache in &machine.caches[1..] {
            hit_time.push(hit_time[hit_time.len() - 1] + cache.hit.ps());
        }
        let bound = |agent: &Agent| Bound { agent: *agent, cache_time: Ps::ZERO, counts: Counts::default() };
        Ok(Self {
            engine,
            threads: shape.agent_of().iter().map(bound).collect(),
            hit_time,
            shift: shape.line_shift(),
            emit_hits: machine.needs_hits(),
            touches: Touches::default(),
        })
    }

    /// From the next region on, tells of the first touch of each unit after a region begins.
    /// Whoever does not care for these items skips them; they change nothing else.
    pub const fn tell_region_touches(&mut self) {
        self.touches.tell_regions();
    }

    /// Takes the next step of the canonical order and appends what follows from it to `out`.
    ///
    /// # Errors
    /// [`CachesError::Unbound`], [`CachesError::Full`]; the caches are of no use afterwards.
    #[inline]
    pub fn step(&mut self, step: &TraceStep, out: &mut MemChunk) -> Result<(), CachesError> {
        let what = match step.what {
            What::Access { line, write } => {
                return self.access(step.thread, step.tick, line, write, out).map(drop);
            }
            What::Sync(sync) => {
                if let Sync::Signal(id) = sync
                    && let Some(created) = id.created(self.threads.len())
                {
                    name(created, out);
                }
                MemWhat::Sync(sync)
            }
            What::Mark(mark) => {
                match mark {
                    Mark::NextTouch { range } => self.touches.ask(range),
                    Mark::RegionBegin { .. } => self.touches.begin_region(),
                    _ => {}
                }
                MemWhat::Mark(mark)
            }
        };
        let bound = self.threads.len();
        let Some(thread) = self.threads.get_mut(step.thread.index()) else {
            return Err(CachesError::Unbound { thread: step.thread, bound });
        };
        thread.emit(step.thread, step.tick, what, out);
        Ok(())
    }

    /// As [`Caches::step`] for an access to the recorder's line `line` (64 B). Whether nobody had
    /// touched it before.
    ///
    /// # Errors
    /// As [`Caches::step`].
    #[inline]
    pub fn access(
        &mut self,
        thread: ThreadId,
        tick: Ticks,
        line: LineNo,
        write: bool,
        out: &mut MemChunk,
    ) -> Result<bool, CachesError> {
        let bound = self.threads.len();
        let Some(state) = self.threads.get_mut(thread.index()) else {
            return Err(CachesError::Unbound { thread, bound });
        };
        if self.touches.awaited()
            && let Some(touch) = self.touches.take(line)
        {
            state.emit(thread, tick, touch, out);
        }
        let line = Line(line.0 >> self.shift);
        let outcome = each!(&mut self.engine, h => h.access(state.agent, line, write));
        let outcome = outcome.map_err(CachesError::Full)?;
        if outcome == AccessOutcome::FRONT && !self.emit_hits {
            state.counts.hits[0] += 1;
            return Ok(false);
        }
        self.emit(thread, tick, line, write, outcome, out);
        Ok(outcome.miss == Some(Miss::Cold))
    }

    fn emit(
        &mut self,
        thread: ThreadId,
        tick: Ticks,
        line: Line,
        write: bool,
        outcome: AccessOutcome,
        out: &mut MemChunk,
    ) {
        let state = &mut self.threads[thread.index()];
        let cause = match outcome.miss {
            Some(Miss::Cold) => Some(Cause::Cold),
            Some(Miss::Capacity) => Some(Cause::Capacity),
            Some(Miss::Coherence) => Some(Cause::Coherence),
            Some(Miss::Upgrade) => Some(Cause::Upgrade),
            None => {
                state.counts.hits[usize::from(outcome.level)] += 1;
                state.cache_time += self.hit_time[usize::from(outcome.level)];
                self.emit_hits.then_some(Cause::Uncached)
            }
        };
        let mut push = |line: Line, write, cause: Cause| {
            state.counts.causes[cause as usize] += 1;
            let line = LineNo(line.0 << self.shift);
            state.emit(thread, tick, MemWhat::Access { line, write, cause }, out);
        };
        if let Some(cause) = cause {
            push(line, write, cause);
        }
        if outcome.write_backs > 0 {
            let lines = each!(&self.engine, h => h.write_backs());
            for line in lines {
                push(*line, true, Cause::WriteBack);
            }
        }
    }

    /// What each thread's accesses have met so far, by thread.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = Counts> + '_ {
        self.threads.iter().map(|t| t.counts)
    }
}

/// From this chunk on the thread exists. Stage 3 waits for the items of each thread that does.
#[inline]
fn name(thread: ThreadId, out: &mut MemChunk) {
    if out.threads.len() <= thread.index() {
        out.threads.resize_with(thread.index() + 1, Vec::new);
    }
}

impl Bound {
    fn emit(&mut self, thread: ThreadId, tick: Ticks, what: MemWhat, out: &mut MemChunk) {
        let at = thread.index();
        name(thread, out);
        let items = &mut out.threads[at];
        if self.cache_time != Ps::ZERO {
            items.push(MemItem { tick, what: MemWhat::CacheTime(self.cache_time) });
            self.cache_time = Ps::ZERO;
            out.items += 1;
        }
        items.push(MemItem { tick, what });
        out.items += 1;
    }
}
