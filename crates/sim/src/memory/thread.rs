//! A thread: its clock, what it has still to do, and where its time went.

use homenode_model::{NodeId, Ps, Ticks};

use super::outcome::ThreadTime;
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
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) node: NodeId,
    pub(super) state: State,
    /// Picoseconds of virtual time.
    pub(super) now: u64,
    pub(super) window: Window,
    pub(super) streams: Streams,
    /// Time it waited for memory.
    pub(super) memory: u64,
    /// Time it waited for others.
    pub(super) wait: u64,
    /// Time it moved pages, or others did that nothing runs beside.
    pub(super) moving: u64,
    pub(super) local: u64,
    pub(super) remote: u64,
    /// The next thread that waits for the same counter.
    pub(super) next_waiter: u32,
    pub(super) regions: Vec<OpenRegion>,
    /// The policy wants first touches after a region's start.
    region_touches: bool,
    busy: u64,
    tick: Ticks,
    /// Items from `at` on are still to be done.
    items: Vec<MemItem>,
    at: usize,
    since: SinceItem,
}

impl Thread {
    pub(super) fn new(node: NodeId, outstanding: u32, streams: Streams, region_touches: bool) -> Self {
        Self {
            node,
            state: State::Starved,
            now: 0,
            window: Window::new(outstanding),
            streams,
            memory: 0,
            wait: 0,
            moving: 0,
            local: 0,
            remote: 0,
            next_waiter: u32::MAX,
            regions: Vec::new(),
            region_touches,
            busy: 0,
            tick: Ticks::ZERO,
            items: Vec::new(),
            at: 0,
            since: SinceItem::default(),
        }
    }
    /// Adds `items` to what it has to do.
    pub(super) fn extend(&mut self, items: &[MemItem]) {
        // What is done goes when it is the greater half: each item is moved at most once more, on
        // average.
        if self.at * 2 >= self.items.len() {
            self.items.drain(..self.at);
            self.at = 0;
        }
        self.items.extend_from_slice(items);
    }
    /// The item at hand of a thread that is ready.
    #[inline]
    pub(super) fn item(&self) -> MemWhat {
        self.items[self.at].what
    }
    /// The item at hand is done.
    #[inline]
    pub(super) fn done(&mut self) {
        self.at += 1;
    }
    /// Computes until the next item that others can notice, and says when that is. `access` is the
    /// time of a tick.
    #[inline]
    pub(super) fn advance(&mut self, access: u64) -> u64 {
        while let Some(&item) = self.items.get(self.at) {
            let computed = (item.tick - self.tick).0.saturating_mul(access);
            self.tick = self.tick.max(item.tick);
            self.compute(computed);
            self.since.computed(computed);
            match item.what {
                MemWhat::CacheTime(extra) => {
                    self.since.hits(extra.0);
                    self.at += 1;
                    continue;
                }
                // Not even a turn is taken: whose stream this is beside must not show.
                MemWhat::RegionTouch { .. } if !self.region_touches => {
                    self.at += 1;
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
        self.busy = self.busy.saturating_add(time);
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
        self.memory += done - self.now;
        self.now = done;
    }
    /// An access issued now is done at `done`.
    #[inline]
    pub(super) fn issue(&mut self, done: u64) {
        let next = self.window.issue(self.now, done);
        self.memory += next - self.now;
        self.now = next;
    }
    /// Stands still for `time`, with all that it has under way, because another moves pages.
    pub(super) fn stand_still(&mut self, time: u64) {
        self.now = self.now.saturating_add(time);
        self.moving = self.moving.saturating_add(time);
        self.window.delay(time);
    }
    /// Waits for another thread until `time`.
    pub(super) fn wait_until(&mut self, time: u64) {
        let until = self.now.max(time);
        self.wait += until - self.now;
        self.now = until;
    }
    /// The thread is over.
    pub(super) fn end(&mut self) {
        self.drain();
        self.state = State::Ended;
        self.items = Vec::new();
        self.at = 0;
    }
    pub(super) fn times(&self) -> ThreadTime {
        ThreadTime {
            busy: Ps(self.busy),
            memory: Ps(self.memory),
            wait: Ps(self.wait),
            moving: Ps(self.moving),
            end: Ps(self.now),
            local: self.local,
            remote: self.remote,
        }
    }
}
