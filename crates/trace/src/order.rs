//! From logs to one canonical order of steps.
//!
//! Every thread's records are in program order; this stage merges the threads. The order is total
//! and depends on the recording alone: (epoch, tick, thread, sequence). A thread's *time* here is
//! its tick plus what it has waited; waits end when the awaited has happened in this same order,
//! never when it happened natively:
//!
//! * a team's member starts when its fork has been processed, the fork's thread goes on when all
//!   members have ended;
//! * a barrier is left when all members of the team have arrived;
//! * locks and atomics on one address change hands in the recorded order ([`turns`](crate::turns));
//! * a thread starts when it has been created, a join waits for its end.
//!
//! Runnable threads proceed by (time, thread). The recorded execution satisfies all these
//! constraints, so they cannot deadlock; only a recording that was cut off can leave threads
//! waiting for something that never comes. Those are let go in order, and counted
//! ([`Order::cut_off`]).
//!
//! Addresses become canonical on the way ([`space`](crate::space)): two runs of one program give
//! the same steps whatever the loader and the kernel did with addresses.

mod marks;

use std::collections::HashMap;

use homenode_log::decode::Access;
use homenode_log::{LogError, Record, RecordKind, Wrong};
use homenode_model::{LineNo, ThreadId, Ticks};
use homenode_rounds::Begins;

use crate::facts::{BypassRecord, IterationOrigin, Trace};
use crate::firsts::UnitFirstTouches;
use crate::found::Pending;
use crate::rank::rank;
use crate::space::{AddressSpace, SegmentCache};
use crate::step::{Mark, Sync, SyncId};
use crate::turns::LockTurns;

/// Where a thread's records come from.
pub trait RecordSource {
    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// The log is damaged from here on.
    fn next(&mut self) -> Result<Option<Record>, LogError>;

    /// Appends up to `most` accesses that come before the next mark; none is always right.
    fn accesses(&mut self, _out: &mut Vec<Access>, _most: usize) {}

    /// The program counter of one of the accesses appended last, by its `place`; 0 where it is
    /// unknown.
    fn pc(&self, _place: u16) -> u64 {
        0
    }
}

impl<R: std::io::Read> RecordSource for homenode_log::file::LogReader<R> {
    #[inline]
    fn next(&mut self) -> Result<Option<Record>, LogError> {
        self.next_record()
    }
    #[inline]
    fn accesses(&mut self, out: &mut Vec<Access>, most: usize) {
        self.next_accesses(out, most);
    }
    fn pc(&self, place: u16) -> u64 {
        Self::pc(self, place)
    }
}

/// Where the steps go.
pub trait StepSink {
    /// An access. Whether nobody had touched the line before, as far as the sink knows: of lines
    /// that are touched for the first time the order remembers by whom.
    fn access(&mut self, thread: ThreadId, tick: Ticks, line: LineNo, write: bool) -> bool;
    /// Synchronisation.
    fn sync(&mut self, thread: ThreadId, tick: Ticks, sync: Sync);
    /// A mark.
    fn mark(&mut self, thread: ThreadId, tick: Ticks, mark: Mark);
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Fork(u64),
    Join(u64),
    Barrier(u64, u64),
    Turn(u64),
    Create(u64),
    End(u64),
}

struct Thread<S> {
    source: S,
    /// Records read ahead to number the threads.
    head: std::vec::IntoIter<Record>,
    /// Accesses to be processed next, from `at` on: threads take turns every few accesses, logs are
    /// read in longer pieces.
    ahead: Vec<Access>,
    at: usize,
    /// The record to be processed when there is none ahead.
    next: Option<Record>,
    /// Time minus tick.
    shift: u64,
    waits: Option<Wait>,
    /// Number its creator gave it.
    id: u64,
    places: SegmentCache,
    /// Regions whose team it is in, the innermost last.
    member_of: Vec<u64>,
    ended: bool,
}

#[derive(Default)]
struct Team {
    forker: usize,
    fork: Option<(SyncId, u64)>,
    join: Option<SyncId>,
    joined: u32,
    join_time: u64,
    members: u64,
    region: u32,
}

#[derive(Default)]
struct Barrier {
    id: Option<SyncId>,
    arrivals: Vec<u32>,
    left: u32,
    time: u64,
}

#[derive(Default)]
struct Lock {
    holder: Option<usize>,
    depth: u32,
    released: Option<(SyncId, u64, usize)>,
}

#[derive(Default)]
struct Event {
    id: Option<SyncId>,
    done: bool,
    time: u64,
}

/// The merger.
pub struct Order<S> {
    threads: Vec<Thread<S>>,
    /// Time of each thread's next record; `MAX` if it waits or has ended.
    keys: Vec<u64>,
    space: AddressSpace,
    sync: Synchronisation,
    regions: Regions,
    counts: Counts,
    firsts: UnitFirstTouches,
    /// Rounds that were found beforehand.
    rounds: Pending,
    iterations: Option<IterationOrigin>,
}

/// What threads wait for, and what they signal.
struct Synchronisation {
    turns: LockTurns,
    teams: HashMap<u64, Team>,
    barriers: HashMap<(u64, u64), Barrier>,
    locks: HashMap<u64, Lock>,
    creates: HashMap<u64, Event>,
    /// [`SyncId::of_creation`] of each thread that does not exist yet, by the number that its
    /// creator gives it.
    unborn: HashMap<u64, SyncId>,
    ends: HashMap<u64, Event>,
    /// Number of counters so far.
    counters: u32,
}

impl Synchronisation {
    /// With a counter for the creation of each of `threads`.
    fn new(turns: LockTurns, unborn: HashMap<u64, SyncId>, threads: u32) -> Self {
        Self {
            turns,
            teams: HashMap::new(),
            barriers: HashMap::new(),
            locks: HashMap::new(),
            creates: HashMap::new(),
            counters: threads,
            unborn,
            ends: HashMap::new(),
        }
    }

    /// A counter that nobody has used.
    fn fresh(&mut self) -> SyncId {
        self.counters += 1;
        SyncId(self.counters - 1)
    }
}

/// Dense numbers of the regions' program counters.
#[derive(Default)]
struct Regions {
    numbers: HashMap<u64, u32>,
    pcs: Vec<u64>,
}

impl Regions {
    /// The number of the region at a program counter: the next one if the region is new.
    fn number(&mut self, pc: u64) -> u32 {
        let next = self.pcs.len() as u32;
        let number = *self.numbers.entry(pc).or_insert(next);
        if number == next {
            self.pcs.push(pc);
        }
        number
    }
}

/// What was counted while the logs were read.
#[derive(Default)]
struct Counts {
    /// Times a thread was let go although what it waited for never came.
    cut_off: u64,
    /// Accesses passed on.
    accesses: u64,
    bypass: BypassRecord,
    /// Logs without a record.
    empty: u64,
    /// Threads whose logs have a record of their end.
    finished: u64,
}

const WAITS: u64 = u64::MAX;
/// Accesses that are read at once.
const AHEAD: usize = 256;

impl<S: RecordSource> Order<S> {
    /// Over the logs of a recording. `turns` comes from the same logs. Threads are numbered by the
    /// number of their first team and their number in it (then by creation), so that thread `n` is
    /// OpenMP's thread `n`.
    ///
    /// # Errors
    /// A log's first records cannot be read.
    pub fn new(sources: Vec<S>, turns: LockTurns, space: AddressSpace) -> Result<Self, LogError> {
        let mut heads = Vec::new();
        let mut empty = 0;
        for mut source in sources {
            let mut first = Vec::new();
            while first.len() < 4 {
                match source.next() {
                    Ok(Some(r)) => first.push(r),
                    Ok(None) => break,
                    // Cut off inside of its first chunk, it holds nothing yet.
                    Err(e) if first.is_empty() && matches!(e.wrong, Wrong::Truncated { .. }) => break,
                    Err(e) => return Err(e),
                }
            }
            if first.is_empty() {
                empty += 1;
            } else {
                heads.push((rank(&first), first, source));
            }
        }
        heads.sort_by_key(|(rank, _, _)| *rank);
        let threads: Vec<_> = heads
            .into_iter()
            .map(|((_, _, _, id), first, source)| Thread {
                source,
                head: first.into_iter(),
                ahead: Vec::with_capacity(AHEAD),
                at: 0,
                next: None,
                shift: 0,
                waits: None,
                id,
                places: SegmentCache::default(),
                member_of: Vec::new(),
                ended: false,
            })
            .collect();
        let creation = |(n, thread): (u32, &Thread<S>)| (thread.id, SyncId::of_creation(ThreadId(n)));
        let unborn = (0u32..).zip(&threads).map(creation).collect();
        let mut order = Self {
            keys: vec![WAITS; threads.len()],
            sync: Synchronisation::new(turns, unborn, threads.len() as u32),
            threads,
            space,
            regions: Regions::default(),
            counts: Counts { empty, ..Counts::default() },
            firsts: UnitFirstTouches::default(),
            rounds: Pending::default(),
            iterations: None,
        };
        for t in 0..order.threads.len() {
            order.fetch(t)?;
        }
        Ok(order)
    }

    /// Passes on these rounds as if the program had marked them. The program must not mark any.
    #[must_use]
    pub fn with_rounds(mut self, found: Begins) -> Self {
        self.rounds = Pending::new(found);
        self
    }

    /// Counts further logs without a record.
    #[must_use]
    pub const fn with_empty(mut self, more: u64) -> Self {
        self.counts.empty += more;
        self
    }

    /// Threads in the recording.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }
    /// Times a thread was let go although what it waited for never came: the recording was cut off.
    pub const fn cut_off(&self) -> u64 {
        self.counts.cut_off
    }
    /// Threads without a record of their end, as far as the logs have been read: at their end,
    /// those that were cut off.
    pub const fn unfinished(&self) -> u64 {
        (self.threads.len() as u64).saturating_sub(self.counts.finished)
    }
    /// Logs without a record: their threads are not among the others.
    pub const fn empty(&self) -> u64 {
        self.counts.empty
    }
    /// Lines that bypass the filter, as far as the logs have been read.
    pub const fn bypass(&self) -> BypassRecord {
        self.counts.bypass
    }
    /// Accesses passed on so far.
    pub const fn accesses(&self) -> u64 {
        self.counts.accesses
    }
    /// Program counter of each region, by the dense number that marks carry.
    pub fn region_pcs(&self) -> &[u64] {
        &self.regions.pcs
    }
    /// First touches so far, as far as the sinks reported new lines.
    pub const fn firsts(&self) -> &UnitFirstTouches {
        &self.firsts
    }
    /// How the iterations that were passed on are known; `None` while there was none.
    pub const fn iterations(&self) -> Option<IterationOrigin> {
        self.iterations
    }
    /// The canonical address space as it is now.
    pub const fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// What is known of the recording, as far as it has been read. Its `damage` is left to who met
    /// it.
    pub fn trace(&self) -> Trace {
        Trace {
            threads: self.threads.len(),
            accesses: self.counts.accesses,
            cut_off: self.counts.cut_off,
            unfinished: self.unfinished(),
            empty: self.empty(),
            bypass: self.counts.bypass,
            damage: None,
            objects: self.space.objects().to_vec(),
            ranges: self.space.object_ranges().to_vec(),
            births: self.space.births().to_vec(),
            stacks: self.space.stacks().to_vec(),
            region_pcs: self.regions.pcs.clone(),
            iterations: self.iterations(),
            firsts: self.firsts().clone(),
        }
    }

    /// Passes on about `budget` steps; false when there are no more.
    ///
    /// # Errors
    /// A log is damaged. What came before has been passed on; the caller may stop there and say so.
    pub fn advance<K: StepSink>(&mut self, sink: &mut K, budget: u64) -> Result<bool, LogError> {
        let mut left = budget;
        while left > 0 {
            let Some((t, limit)) = self.first() else {
                if self.threads.iter().all(|t| t.ended) {
                    return Ok(false);
                }
                self.let_go(sink);
                continue;
            };
            left = left.saturating_sub(self.run(t, limit, left, sink)?.max(1));
        }
        Ok(true)
    }

    /// Ends every thread here and now, because its log cannot be read further: the others must not
    /// wait for it.
    pub fn end<K: StepSink>(&mut self, sink: &mut K) {
        for t in 0..self.threads.len() {
            let thread = &mut self.threads[t];
            if !std::mem::replace(&mut thread.ended, true) {
                let ahead = thread.ahead.get(thread.at).map(|a| a.tick);
                let tick = ahead.or(thread.next.map(|r| r.tick)).unwrap_or(Ticks::ZERO);
                sink.sync(ThreadId(t as u32), tick, Sync::End);
            }
        }
    }

    /// The thread that goes first, and its limit: the thread may run as long as its key is below.
    /// The limit follows from the key of the second thread. Of equal keys, the lower number goes
    /// first.
    fn first(&self) -> Option<(usize, u64)> {
        let (mut best, mut second) = ((WAITS, 0), (WAITS, 0));
        // Numbers ascend, so a later thread goes first only if its key is less.
        for (t, &key) in self.keys.iter().enumerate() {
            if key < best.0 {
                second = best;
                best = (key, t);
            } else if key < second.0 {
                second = (key, t);
            }
        }
        let limit = second.0.saturating_add(u64::from(best.1 < second.1));
        (best.0 != WAITS).then_some((best.1, limit))
    }

    /// Runs thread `t` until it waits, ends, is no longer first, or has made `most` steps.
    fn run<K: StepSink>(&mut self, t: usize, limit: u64, most: u64, sink: &mut K) -> Result<u64, LogError> {
        let mut done = 0;
        while done < most && self.keys[t] < limit {
            done += self.run_ahead(t, limit, most - done, sink);
            let thread = &mut self.threads[t];
            if thread.at < thread.ahead.len() {
                break;
            }
            let Some(record) = thread.next else {
                if thread.ended {
                    break;
                }
                self.fetch(t)?;
                continue;
            };
            if done == most || record.tick.0.saturating_add(thread.shift) >= limit {
                break;
            }
            done += 1;
            match record.what {
                RecordKind::Access { line, write, pc } => {
                    let line = self.space.line(line, &mut thread.places);
                    self.counts.accesses += 1;
                    if sink.access(ThreadId(t as u32), record.tick, line, write) {
                        self.firsts.note(line, t, record.tick, pc);
                    }
                    self.fetch(t)?;
                }
                RecordKind::Mark(mark) => {
                    // A mark may wake others, which then may go first.
                    if self.mark(t, record.tick, mark, sink) {
                        self.fetch(t)?;
                    } else {
                        self.keys[t] = WAITS;
                    }
                    break;
                }
            }
        }
        Ok(done)
    }

    /// The same for the accesses ahead; the thread's key is right afterwards if there still are
    /// any.
    #[inline]
    fn run_ahead<K: StepSink>(&mut self, t: usize, limit: u64, most: u64, sink: &mut K) -> u64 {
        let Thread { ahead, at, shift, places, source, .. } = &mut self.threads[t];
        let mut done = 0;
        while let Some(access) = ahead.get(*at) {
            let key = access.tick.0.saturating_add(*shift);
            if done == most || key >= limit {
                self.keys[t] = key;
                break;
            }
            *at += 1;
            done += 1;
            let line = self.space.line(access.line, places);
            if sink.access(ThreadId(t as u32), access.tick, line, access.write) {
                self.firsts.note(line, t, access.tick, source.pc(access.place));
            }
        }
        self.counts.accesses += done;
        done
    }

    /// Reads on; everything read before has been processed.
    fn fetch(&mut self, t: usize) -> Result<(), LogError> {
        let thread = &mut self.threads[t];
        thread.next = thread.head.next();
        if thread.next.is_none() {
            thread.ahead.clear();
            thread.at = 0;
            thread.source.accesses(&mut thread.ahead, AHEAD);
            if let Some(first) = thread.ahead.first() {
                self.keys[t] = first.tick.0.saturating_add(thread.shift);
                return Ok(());
            }
            thread.next = thread.source.next()?;
        }
        match thread.next {
            Some(r) => self.keys[t] = r.tick.0.saturating_add(thread.shift),
            None => {
                self.keys[t] = WAITS;
                thread.ended = true;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
