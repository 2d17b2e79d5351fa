//! Reads a memory stream and keeps the epochs apart.

use homenode_model::{Bytes, CpuId, LineNo, PageNo, PageRange, Ps, Rows, Ticks, Topology, TopologyError};

use super::bound::Bound;
use super::costs::{Costs, Counts};
use super::epoch::Epoch;
use super::path::{HomePath, Path};
use super::search::Search;
use crate::memory::streams::Streams;
use crate::memory::window::SinceItem;
use crate::memory::{MAX_PAGES, MemoryOptions};
use crate::stream::{Cause, MemChunk, MemItem, MemWhat};
use homenode_order::step::{ByteRange, Mark, Sync};

/// Why there are no yardsticks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TallyError {
    /// The machine makes no sense.
    #[error("the machine cannot be simulated: {0}")]
    Topology(TopologyError),
    /// A thread is not bound, or to a CPU that the machine lacks.
    #[error("the stream's {threads} threads are not all bound to CPUs")]
    Binding {
        /// Threads of the stream.
        threads: usize,
    },
    /// An address beyond all canonical ones: the stream is damaged.
    #[error("address {address:#x} is beyond all canonical ones: the recording is damaged")]
    Address {
        /// The first byte.
        address: u64,
    },
}

/// What a tally yields; times of the timed part.
#[derive(Clone, Debug)]
pub struct Yardsticks {
    /// Nothing at all can be faster: every access local, nothing queues, nothing moves.
    pub floor: Ps,
    /// No policy without replication is faster.
    pub bound: Ps,
    /// Each page's own cheapest way; `None` when there were too many epochs to keep it.
    pub way: Option<HomePath>,
    /// The counts of the whole timed part, to search good placements in.
    pub search: Search,
    /// Epochs.
    pub epochs: usize,
    /// Accesses that other threads had still to do when an iteration was marked: `floor` and
    /// `bound` may be a little off.
    pub approximate: u64,
}

/// A thread's place in the stream.
#[derive(Clone, Debug)]
struct Thread {
    tick: Ticks,
    streams: Streams,
    /// The last mark that it knows of, through synchronisation.
    epoch: u64,
    ended: bool,
    /// Items from `at` on are still to be done.
    items: Vec<MemItem>,
    at: usize,
    since: SinceItem,
}

impl Thread {
    fn new(line_step: u64) -> Self {
        Self {
            tick: Ticks::ZERO,
            streams: Streams::new(line_step),
            epoch: 0,
            ended: false,
            items: Vec::new(),
            at: 0,
            since: SinceItem::default(),
        }
    }
}

/// A one-shot counter of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counter {
    count: u32,
    epoch: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Tally {
    costs: Costs,
    threads: Vec<Thread>,
    counters: Rows<Counter>,
    page_shift: u32,
    /// Marks so far; 0 is before the first.
    marks: u64,
    numbers: Vec<u32>,
    epoch: Epoch,
    floor: u64,
    bound: Bound,
    path: Path,
    search: Search,
    epochs: usize,
    approximate: u64,
}

impl Tally {
    /// The machine `machine` with pages of `page` bytes, thread i on CPU `binding[i]`, and CPUs
    /// that wait as `options` says.
    ///
    /// # Errors
    /// The machine makes no sense, or a CPU is not there.
    pub fn new(
        machine: &Topology,
        binding: &[CpuId],
        page: Bytes,
        options: &MemoryOptions,
    ) -> Result<Self, TallyError> {
        machine.check().map_err(TallyError::Topology)?;
        if binding.iter().any(|c| c.index() >= machine.cpus.len()) {
            return Err(TallyError::Binding { threads: binding.len() });
        }
        let costs = Costs::new(machine, binding, page, options);
        Ok(Self {
            threads: vec![Thread::new(costs.line_step); binding.len()],
            counters: Rows::new(1, Counter { count: 0, epoch: 0 }),
            page_shift: page.0.trailing_zeros(),
            marks: 0,
            numbers: Vec::new(),
            epoch: Epoch::new(binding.len()),
            floor: 0,
            bound: Bound::new(&costs),
            path: Path::new(&costs),
            search: Search::new(&costs),
            epochs: 0,
            approximate: 0,
            costs,
        })
    }

    /// Takes the next piece of the stream.
    ///
    /// # Errors
    /// See [`TallyError`].
    pub fn feed(&mut self, chunk: &MemChunk) -> Result<(), TallyError> {
        if chunk.threads.len() > self.threads.len() {
            return Err(TallyError::Binding { threads: chunk.threads.len() });
        }
        for (thread, items) in self.threads.iter_mut().zip(&chunk.threads) {
            if thread.at * 2 >= thread.items.len() {
                thread.items.drain(..thread.at);
                thread.at = 0;
            }
            thread.items.extend_from_slice(items);
        }
        // The canonical order is a valid schedule, so that somebody always gets on until all items
        // are done.
        let mut progress = true;
        while progress {
            progress = false;
            for t in 0..self.threads.len() {
                progress |= self.advance(t)?;
            }
        }
        Ok(())
    }

    /// The result.
    pub fn finish(mut self) -> Yardsticks {
        if self.marks <= 1 {
            self.close();
        }
        Yardsticks {
            floor: Ps(self.floor),
            bound: Ps(self.bound.total().max(self.floor)),
            way: self.path.finish(&self.costs, &self.numbers),
            search: self.search,
            epochs: self.epochs,
            approximate: self.approximate,
        }
    }

    /// Does what thread `t` can do without waiting; whether that was anything.
    fn advance(&mut self, t: usize) -> Result<bool, TallyError> {
        let begun = self.threads[t].at;
        while !self.threads[t].ended
            && let Some(&item) = self.threads[t].items.get(self.threads[t].at)
        {
            let thread = &mut self.threads[t];
            if let MemWhat::Sync(Sync::Wait { id, n }) = item.what {
                let counter = self.counters.row(id.0 as usize).map_or((0, 0), |r| (r[0].count, r[0].epoch));
                if counter.0 < n {
                    break;
                }
                thread.epoch = thread.epoch.max(counter.1);
            }
            thread.at += 1;
            let ticks = (item.tick - thread.tick).0;
            thread.tick = thread.tick.max(item.tick);
            let computed = ticks.saturating_mul(self.costs.tick);
            self.epoch.compute(t, computed);
            thread.since.computed(computed);
            self.step(t, item.what)?;
        }
        Ok(self.threads[t].at != begun)
    }

    fn step(&mut self, t: usize, what: MemWhat) -> Result<(), TallyError> {
        if !matches!(what, MemWhat::CacheTime(_) | MemWhat::RegionTouch { .. }) {
            let waits = self.threads[t].since.waits(self.costs.outstanding);
            self.epoch.compute(t, waits);
        }
        match what {
            MemWhat::Access { line, cause, .. } => return self.access(t, line, cause),
            MemWhat::CacheTime(time) => self.threads[t].since.hits(time.0),
            MemWhat::Sync(Sync::Signal(id)) => {
                let epoch = self.threads[t].epoch;
                let counter = &mut self.counters.row_mut(id.0 as usize)[0];
                counter.count = counter.count.saturating_add(1);
                counter.epoch = counter.epoch.max(epoch);
            }
            MemWhat::Sync(Sync::End) => self.threads[t].ended = true,
            MemWhat::Mark(Mark::Iteration { number }) => self.iteration(t, number),
            MemWhat::Mark(Mark::Free { range, .. }) => self.free(range)?,
            MemWhat::Sync(Sync::Wait { .. })
            | MemWhat::Touch { .. }
            | MemWhat::RegionTouch { .. }
            | MemWhat::Mark(_) => {}
        }
        Ok(())
    }

    #[inline]
    fn access(&mut self, t: usize, line: LineNo, cause: Cause) -> Result<(), TallyError> {
        let page = PageNo(line.0 >> self.costs.lines);
        if page.0 >= MAX_PAGES {
            return Err(TallyError::Address { address: line.0.saturating_mul(LineNo::BYTES) });
        }
        let none = Counts::NONE;
        let what = match cause {
            Cause::Cold | Cause::Capacity | Cause::Coherence => {
                let streamed = self.threads[t].streams.follows(line).into();
                Counts { misses: 1, streamed, ..none }
            }
            Cause::Upgrade => Counts { upgrades: 1, ..none },
            Cause::WriteBack => Counts { write_backs: 1, ..none },
            // Where remote memory is cached a hit costs nothing.
            Cause::Uncached if self.costs.remote_cacheable => return Ok(()),
            Cause::Uncached => Counts { hits: 1, ..none },
        };
        self.approximate += u64::from(self.threads[t].epoch != self.marks);
        self.epoch.add(&self.costs, t, page, what);
        Ok(())
    }

    fn iteration(&mut self, t: usize, number: u32) {
        if self.numbers.last() == Some(&number) {
            return; // several threads may say the same
        }
        match self.marks {
            0 => self.epoch.clear(),
            _ => self.close(),
        }
        self.marks += 1;
        self.numbers.push(number);
        self.threads[t].epoch = self.marks;
    }

    fn free(&mut self, range: ByteRange) -> Result<(), TallyError> {
        let end = range.first.checked_add(range.bytes).filter(|e| *e <= MAX_PAGES << self.page_shift);
        let end = end.ok_or(TallyError::Address { address: range.first })?;
        let first = range.first.div_ceil(1 << self.page_shift);
        let count = (end >> self.page_shift).saturating_sub(first);
        self.epoch.free(PageRange { first: PageNo(first), count });
        Ok(())
    }

    /// The epoch is over: its counts go into everything that is kept.
    fn close(&mut self) {
        let floor = self.epoch.floors(self.costs.outstanding).max().unwrap_or(0);
        self.floor = self.floor.saturating_add(floor);
        self.epoch.sort();
        self.bound.close(&self.costs, &self.epoch);
        self.path.close(&self.costs, &self.epoch);
        self.search.absorb(&self.epoch);
        self.epoch.clear();
        self.epochs += 1;
    }
}
