//! A thread: its clock, what it has still to do, and where its time went.

use homenode_model::{NodeId, Ps, Ticks};

use super::outcome::ThreadTime;
use super::pending::Pending;
use super::streams::Streams;
use super::window::{SinceItem, Window};
use crate::stream::{MemItem, MemWhat};
use homenode_order::step::Mark;

/// What a thread is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its next item is not here yet; its clock is a lower bound of when that happens.
    Starved,
    /// Its next item happens at its clock.
    Ready,
    /// It waits for a counter to reach this.
    Waiting(u32),
    /// It is over.
    Ended,
}

/// Where a region began.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRegion {
    pub(super) region: u32,
    pub(super) begun: u64,
    pub(super) local: u64,
    pub(super) remote: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) node: NodeId,
    pub(super) state: State,
    /// Picoseconds of virtual time.
    pub(super) now: u64,
    pub(super) window: Window,
    pub(super) streams: Streams,
    pub(super) spent: TimeSpent,
    pub(super) local: u64,
    pub(super) remote: u64,
    /// The next thread that waits for the same counter.
    pub(super) next_waiter: u32,
    pub(super) regions: Vec<OpenRegion>,
    /// The policy wants first touches after a region's start.
    region_touches: bool,
    tick: Ticks,
    pending: Pending,
    since: SinceItem,
}

/// Where a thread's time went, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeSpent {
    /// It computed.
    busy: u64,
    /// It waited for memory.
    memory: u64,
    /// It waited for other threads.
    wait: u64,
    /// It moved pages, or stood still while another thread did.
    pub(super) moving: u64,
}

impl Thread {
    pub(super) fn new(
        node: NodeId,
        outstanding: u32,
        streams: Streams,
        region_touches: bool,
        pending: Pending,
    ) -> Self {
        Self {
            node,
            state: State::Starved,
            now: 0,
            window: Window::new(outstanding),
            streams,
            spent: TimeSpent::default(),
            local: 0,
            remote: 0,
            next_waiter: u32::MAX,
            regions: Vec::new(),
            region_touches,
            tick: Ticks::ZERO,
            pending,
            since: SinceItem::default(),
        }
    }
    /// Adds `items` to what it has to do.
    pub(super) fn extend(&mut self, items: &[MemItem]) {
        self.pending.extend(items);
    }
    /// The item at hand of a thread that is ready.
    #[inline]
    pub(super) fn item(&self) -> MemWhat {
        self.pending.at_hand().what
    }
    /// The item at hand is done.
    #[inline]
    pub(super) fn done(&mut self) {
        self.pending.pass();
    }
    /// Computes until the next item that others can notice, and says when that is. `access` is the
    /// time of a tick.
    #[inline]
    pub(super) fn advance(&mut self, access: u64) -> u64 {
        while let Some(item) = self.pending.first() {
            let computed = (item.tick - self.tick).0.saturating_mul(access);
            self.tick = self.tick.max(item.tick);
            self.compute(computed);
            self.since.computed(computed);
            match item.what {
                MemWhat::CacheTime(extra) => {
                    self.since.hits(extra.0);
                    self.pending.pass();
                    continue;
                }
                // Not even a turn is taken: whose stream this is beside must not show.
                MemWhat::RegionTouch { .. } if !self.region_touches => {
                    self.pending.pass();
                    continue;
                }
                MemWhat::Access { .. }
                | MemWhat::Touch { .. }
                | MemWhat::RegionTouch { .. }
                | MemWhat::Mark(Mark::Alloc { .. } | Mark::Free { .. }) => self.wait_for_hits(),
                MemWhat::Sync(_) | MemWhat::Mark(_) => {
                    self.wait_for_hits();
                    self.drain();
                }
            }
            self.state = State::Ready;
            return self.now;
        }
        self.state = State::Starved;
        self.now
    }
    #[inline]
    fn compute(&mut self, time: u64) {
        self.now = self.now.saturating_add(time);
        self.spent.busy = self.spent.busy.saturating_add(time);
    }
    /// Waits for hits in the caches since the last item, beyond what it computed.
    #[inline]
    fn wait_for_hits(&mut self) {
        let waits = self.since.waits(self.window.outstanding());
        self.compute(waits);
    }
    /// Waits for all accesses under way.
    #[inline]
    pub(super) fn drain(&mut self) {
        let done = self.window.drain(self.now);
        self.spent.memory += done - self.now;
        self.now = done;
    }
    /// An access issued now is done at `done`.
    #[inline]
    pub(super) fn issue(&mut self, done: u64) {
        let next = self.window.issue(self.now, done);
        self.spent.memory += next - self.now;
        self.now = next;
    }
    /// Stands still for `time`, with all that it has under way, because another moves pages.
    pub(super) fn stand_still(&mut self, time: u64) {
        self.now = self.now.saturating_add(time);
        self.spent.moving = self.spent.moving.saturating_add(time);
        self.window.delay(time);
    }
    /// Waits for another thread until `time`.
    pub(super) fn wait_until(&mut self, time: u64) {
        let until = self.now.max(time);
        self.spent.wait += until - self.now;
        self.now = until;
    }
    #[cfg(test)]
    pub(super) fn items_in_memory(&self) -> usize {
        self.pending.items_in_memory()
    }
    /// The thread is over.
    pub(super) fn end(&mut self) {
        self.drain();
        self.state = State::Ended;
        self.pending.clear();
    }
    pub(super) fn times(&self) -> ThreadTime {
        ThreadTime {
            busy: Ps(self.spent.busy),
            memory: Ps(self.spent.memory),
            wait: Ps(self.spent.wait),
            moving: Ps(self.spent.moving),
            end: Ps(self.now),
            local: self.local,
            remote: self.remote,
        }
    }
}
