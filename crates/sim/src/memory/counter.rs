//! The counters that signals count up and threads wait for.

/// The end of a chain of waiting threads.
pub(super) const NOBODY: u32 = u32::MAX;

/// A one-shot counter: 16 bytes each, for as long as the simulation lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    /// The latest signal's time.
    pub(super) time: u64,
    pub(super) count: u32,
    /// The first of the threads that wait, chained by `Thread::next_waiter`.
    pub(super) waiter: u32,
}

impl Counter {
    pub(super) const NEW: Self = Self { time: 0, count: 0, waiter: NOBODY };
}
