//! Marks of the log to synchronisation and marks of the stream.

use homenode_log::Mark as LogMark;
use homenode_model::{LineNo, ThreadId, Ticks};

use super::{Order, RecordSource, StepSink, WAITS, Wait};
use crate::facts::IterationOrigin;
use crate::step::{Mark, Sync, SyncId};

impl<S: RecordSource> Order<S> {
    /// Processes a mark of thread `t`; false if the thread has to wait, then the mark comes again
    /// when it is woken.
    pub(super) fn mark<K: StepSink>(&mut self, t: usize, tick: Ticks, mark: LogMark, sink: &mut K) -> bool {
        match mark {
            LogMark::ThreadStart { .. }
            | LogMark::ThreadEnd { .. }
            | LogMark::ThreadCreate { .. }
            | LogMark::ThreadJoin { .. } => self.thread_mark(t, tick, mark, sink),
            LogMark::RegionFork { .. }
            | LogMark::TaskBegin { .. }
            | LogMark::TaskEnd { .. }
            | LogMark::RegionJoin { .. }
            | LogMark::Barrier { .. } => self.region_mark(t, tick, mark, sink),
            LogMark::Acquire { .. } | LogMark::Release { .. } | LogMark::Atomic { .. } => {
                self.lock_mark(t, tick, mark, sink)
            }
            _ => {
                self.plain_mark(ThreadId(t as u32), tick, mark, sink);
                true
            }
        }
    }

    /// Start, creation, end and join of threads; false if the thread has to wait.
    fn thread_mark<K: StepSink>(&mut self, t: usize, tick: Ticks, mark: LogMark, sink: &mut K) -> bool {
        let thread = ThreadId(t as u32);
        let now = tick.0.saturating_add(self.threads[t].shift);
        match mark {
            LogMark::ThreadStart { id, stack_low, stack_high } => {
                if id != 0 {
                    let created = self.sync.creates.entry(id).or_default();
                    let Some(sync) = created.id.filter(|_| created.done) else {
                        return self.wait(t, Wait::Create(id));
                    };
                    let time = created.time;
                    self.resume(t, tick, time, sync, 1, sink);
                }
                self.space.stack(thread, stack_low, stack_high);
            }
            LogMark::ThreadEnd { .. } => {
                // libomp's threads learn of a region's end when the next one begins. After the last
                // region they end without it.
                for instance in std::mem::take(&mut self.threads[t].member_of) {
                    self.leave(t, tick, now, instance, sink);
                }
                self.counts.finished += 1;
                let id = self.threads[t].id;
                let sync = self.signal(thread, tick, sink);
                let end = self.sync.ends.entry(id).or_default();
                (end.id, end.done, end.time) = (Some(sync), true, now);
                sink.sync(thread, tick, Sync::End);
                self.wake(Wait::End(id));
            }
            LogMark::ThreadCreate { id } => {
                let sync = self.sync.unborn.remove(&id).unwrap_or_else(|| self.sync.fresh());
                sink.sync(thread, tick, Sync::Signal(sync));
                let create = self.sync.creates.entry(id).or_default();
                (create.id, create.done, create.time) = (Some(sync), true, now);
                self.wake(Wait::Create(id));
            }
            LogMark::ThreadJoin { id } => {
                let end = self.sync.ends.entry(id).or_default();
                let Some(sync) = end.id.filter(|_| end.done) else { return self.wait(t, Wait::End(id)) };
                let time = end.time;
                self.resume(t, tick, time, sync, 1, sink);
            }
            _ => {}
        }
        true
    }

    /// Parallel regions and their barriers; false if the thread has to wait.
    fn region_mark<K: StepSink>(&mut self, t: usize, tick: Ticks, mark: LogMark, sink: &mut K) -> bool {
        let thread = ThreadId(t as u32);
        let now = tick.0.saturating_add(self.threads[t].shift);
        match mark {
            LogMark::RegionFork { instance, pc } => {
                self.symbol(t, tick, sink);
                let region = self.regions.number(pc);
                sink.mark(thread, tick, Mark::RegionBegin { region });
                let sync = self.signal(thread, tick, sink);
                let team = self.sync.teams.entry(instance).or_default();
                (team.forker, team.fork, team.region) = (t, Some((sync, now)), region);
                self.wake(Wait::Fork(instance));
            }
            LogMark::TaskBegin { instance, team: members, .. } => {
                let team = self.sync.teams.entry(instance).or_default();
                let Some((sync, time)) = team.fork else { return self.wait(t, Wait::Fork(instance)) };
                team.members = members;
                if team.forker != t {
                    self.resume(t, tick, time, sync, 1, sink);
                }
                self.threads[t].member_of.push(instance);
            }
            LogMark::TaskEnd { instance } => {
                self.threads[t].member_of.retain(|member| *member != instance);
                self.leave(t, tick, now, instance, sink);
            }
            LogMark::RegionJoin { instance } => {
                let Some(team) = self.sync.teams.get(&instance) else { return true };
                if u64::from(team.joined) < team.members {
                    return self.wait(t, Wait::Join(instance));
                }
                let (region, joined, time, join) = (team.region, team.joined, team.join_time, team.join);
                if let Some(sync) = join {
                    self.resume(t, tick, time, sync, joined, sink);
                }
                self.sync.teams.remove(&instance);
                sink.mark(thread, tick, Mark::RegionEnd { region });
                if t == 0
                    && let Some(number) = self.rounds.join()
                {
                    sink.mark(thread, tick, Mark::Iteration { number });
                }
            }
            LogMark::Barrier { instance, generation } => {
                if !self.barrier(t, tick, now, (instance, generation), sink) {
                    return false;
                }
                self.symbol(t, tick, sink);
            }
            _ => {}
        }
        true
    }

    /// Locks and atomics; false if the thread has to wait.
    fn lock_mark<K: StepSink>(&mut self, t: usize, tick: Ticks, mark: LogMark, sink: &mut K) -> bool {
        let thread = ThreadId(t as u32);
        let now = tick.0.saturating_add(self.threads[t].shift);
        match mark {
            LogMark::Acquire { lock, order } => {
                if !self.take(t, lock, order) {
                    return self.wait(t, Wait::Turn(lock));
                }
                self.follow(t, tick, lock, sink);
            }
            LogMark::Release { lock, .. } => self.release(t, tick, now, lock, sink),
            LogMark::Atomic { address, write, order } => {
                if !self.take(t, address, order) {
                    return self.wait(t, Wait::Turn(address));
                }
                self.follow(t, tick, address, sink);
                let line = self.space.line(LineNo(address >> LineNo::SHIFT), &mut self.threads[t].places);
                self.counts.accesses += 1;
                if sink.access(thread, tick, line, write != 0) {
                    self.firsts.note(line, t, tick, 0);
                }
                let now = tick.0.saturating_add(self.threads[t].shift);
                self.release(t, tick, now, address, sink);
            }
            _ => {}
        }
        true
    }

    /// What lets no thread wait.
    fn plain_mark<K: StepSink>(&mut self, thread: ThreadId, tick: Ticks, mark: LogMark, sink: &mut K) {
        match mark {
            LogMark::Alloc { address, bytes, site, caller, .. } => {
                for (object, range) in self.space.allocate(address, bytes, (site, caller)) {
                    sink.mark(thread, tick, Mark::Alloc { object, range });
                }
            }
            LogMark::Free { address, .. } => {
                for (object, range) in self.space.free(address) {
                    sink.mark(thread, tick, Mark::Free { object, range });
                }
            }
            LogMark::Module { index, base, low, high } => {
                for (object, range) in self.space.module(index, base, low, high) {
                    sink.mark(thread, tick, Mark::Alloc { object, range });
                }
            }
            LogMark::Bypass { lines } => self.counts.bypass.lines = self.counts.bypass.lines.max(lines),
            LogMark::Flush {} => self.counts.bypass.fences += 1,
            LogMark::Totals { bypassed, .. } => {
                self.counts.bypass.accesses += bypassed;
                self.counts.bypass.capped += u64::from(bypassed >= homenode_log::mark::BYPASS_CAP);
            }
            LogMark::Heap { address } => self.space.heap(address),
            LogMark::Iteration { number, .. } => {
                self.iterations = Some(IterationOrigin::Told);
                sink.mark(thread, tick, Mark::Iteration { number: number as u32 });
            }
            LogMark::NextTouch { address, bytes, .. } => {
                for range in self.space.ranges(address, bytes) {
                    sink.mark(thread, tick, Mark::NextTouch { range });
                }
            }
            _ => {}
        }
    }

    /// A region or barrier begins in which rounds were sought: a round may begin with it.
    fn symbol<K: StepSink>(&mut self, t: usize, tick: Ticks, sink: &mut K) {
        if t == 0
            && let Some(number) = self.rounds.symbol()
        {
            self.iterations.get_or_insert(IterationOrigin::Found);
            sink.mark(ThreadId(0), tick, Mark::Iteration { number });
        }
    }

    /// Thread `t` has done its part of a region.
    fn leave<K: StepSink>(&mut self, t: usize, tick: Ticks, now: u64, instance: u64, sink: &mut K) {
        let fresh = self.sync.fresh();
        let team = self.sync.teams.entry(instance).or_default();
        let sync = *team.join.get_or_insert(fresh);
        team.joined += 1;
        team.join_time = team.join_time.max(now);
        let complete = u64::from(team.joined) >= team.members;
        sink.sync(ThreadId(t as u32), tick, Sync::Signal(sync));
        if complete {
            self.wake(Wait::Join(instance));
        }
    }

    fn signal<K: StepSink>(&mut self, thread: ThreadId, tick: Ticks, sink: &mut K) -> SyncId {
        let sync = self.sync.fresh();
        sink.sync(thread, tick, Sync::Signal(sync));
        sync
    }

    fn wait(&mut self, t: usize, what: Wait) -> bool {
        self.threads[t].waits = Some(what);
        false
    }

    /// The thread goes on not before `time`.
    fn resume<K: StepSink>(&mut self, t: usize, tick: Ticks, time: u64, id: SyncId, n: u32, sink: &mut K) {
        let thread = &mut self.threads[t];
        thread.shift = thread.shift.max(time.saturating_sub(tick.0));
        sink.sync(ThreadId(t as u32), tick, Sync::Wait { id, n });
    }

    /// Lets all that wait for `what` try again.
    fn wake(&mut self, what: Wait) {
        for (thread, key) in self.threads.iter_mut().zip(&mut self.keys) {
            if thread.waits == Some(what) {
                thread.waits = None;
                if let Some(r) = thread.next {
                    *key = r.tick.0.saturating_add(thread.shift);
                }
            }
        }
    }

    fn barrier<K: StepSink>(
        &mut self,
        t: usize,
        tick: Ticks,
        now: u64,
        which: (u64, u64),
        sink: &mut K,
    ) -> bool {
        let members = self.sync.teams.get(&which.0).map_or(1, |team| team.members);
        let fresh = self.sync.fresh();
        let wait = Wait::Barrier(which.0, which.1);
        let barrier = self.sync.barriers.entry(which).or_default();
        let first_time = self.threads[t].waits.is_none() && !barrier.arrivals.contains(&(t as u32));
        if first_time {
            barrier.arrivals.push(t as u32);
            barrier.time = barrier.time.max(now);
            let sync = *barrier.id.get_or_insert(fresh);
            sink.sync(ThreadId(t as u32), tick, Sync::Signal(sync));
        }
        let arrived = barrier.arrivals.len() as u64;
        if arrived < members {
            return self.wait(t, wait);
        }
        let (id, time) = (barrier.id.unwrap_or(fresh), barrier.time);
        barrier.left += 1;
        let last = u64::from(barrier.left) >= members;
        self.resume(t, tick, time, id, arrived as u32, sink);
        if last {
            self.sync.barriers.remove(&which);
        }
        self.wake(wait);
        true
    }

    /// Takes the lock if it is free, or held by this thread, and this thread's turn.
    fn take(&mut self, t: usize, lock: u64, order: u64) -> bool {
        let state = self.sync.locks.entry(lock).or_default();
        let free = state.holder.is_none() || state.holder == Some(t);
        if !free || !self.sync.turns.is_next(lock, order) {
            return false;
        }
        self.sync.turns.pass(lock);
        state.holder = Some(t);
        state.depth += 1;
        true
    }

    /// Waits, in modelled time, for the last holder's release.
    fn follow<K: StepSink>(&mut self, t: usize, tick: Ticks, lock: u64, sink: &mut K) {
        let released = self.sync.locks.get(&lock).and_then(|l| l.released);
        if let Some((sync, time, by)) = released
            && by != t
        {
            self.resume(t, tick, time, sync, 1, sink);
        }
    }

    fn release<K: StepSink>(&mut self, t: usize, tick: Ticks, now: u64, lock: u64, sink: &mut K) {
        let sync = self.signal(ThreadId(t as u32), tick, sink);
        let state = self.sync.locks.entry(lock).or_default();
        state.depth = state.depth.saturating_sub(1);
        if state.depth == 0 {
            state.holder = None;
        }
        state.released = Some((sync, now, t));
        self.wake(Wait::Turn(lock));
    }

    /// Nothing can go on: the recording was cut off. Grants what the earliest waiting thread waits
    /// for.
    pub(super) fn let_go<K: StepSink>(&mut self, sink: &mut K) {
        self.counts.cut_off += 1;
        let time = |t: &super::Thread<S>| t.next.map_or(WAITS, |r| r.tick.0.saturating_add(t.shift));
        let waiting = self.threads.iter().enumerate().filter(|(_, t)| t.waits.is_some() && !t.ended);
        let Some((t, _)) = waiting.min_by_key(|(i, t)| (time(t), *i)) else {
            for thread in &mut self.threads {
                thread.ended = true;
            }
            return;
        };
        let Some(what) = self.threads[t].waits else { return };
        let tick = self.threads[t].next.map_or(Ticks::ZERO, |r| r.tick);
        match what {
            Wait::Fork(instance) => {
                let sync = self.signal(ThreadId(t as u32), tick, sink);
                self.sync.teams.entry(instance).or_default().fork = Some((sync, 0));
            }
            Wait::Join(instance) => {
                if let Some(team) = self.sync.teams.get_mut(&instance) {
                    team.members = u64::from(team.joined);
                }
            }
            Wait::Barrier(instance, generation) => {
                let arrived = self.sync.barriers.get(&(instance, generation)).map_or(0, |b| b.arrivals.len());
                if let Some(team) = self.sync.teams.get_mut(&instance) {
                    team.members = arrived as u64;
                }
            }
            Wait::Turn(lock) => {
                let state = self.sync.locks.entry(lock).or_default();
                if state.holder.take().is_none() {
                    self.sync.turns.pass(lock);
                }
                state.depth = 0;
            }
            Wait::Create(id) => {
                let sync = self.signal(ThreadId(t as u32), tick, sink);
                let create = self.sync.creates.entry(id).or_default();
                (create.id, create.done) = (Some(sync), true);
            }
            Wait::End(id) => {
                let sync = self.signal(ThreadId(t as u32), tick, sink);
                let end = self.sync.ends.entry(id).or_default();
                (end.id, end.done) = (Some(sync), true);
            }
        }
        self.wake(what);
    }
}
