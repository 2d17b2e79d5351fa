//! Steps of the canonical order, with canonical addresses.
//!
//! Every synchronisation of the program (fork, join, barrier, lock) is one mechanism:
//! [`Sync::Signal`] and [`Sync::Wait`] on one-shot counters. [`Order`](crate::Order) has matched
//! them, so that no later stage can deadlock: the canonical order is itself a valid schedule.

use homenode_model::{LineNo, ObjectId, ThreadId, Ticks};

/// A one-shot counter: threads signal it, others wait until it has been signalled `n` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncId(pub u32);

impl SyncId {
    /// The counter that the creator of a thread signals: it has the thread's number.
    pub const fn of_creation(thread: ThreadId) -> Self {
        Self(thread.0)
    }

    /// The thread whose creation this counter tells of, in a program of `threads` threads.
    pub fn created(self, threads: usize) -> Option<ThreadId> {
        ((self.0 as usize) < threads).then_some(ThreadId(self.0))
    }
}

/// Synchronisation between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Add one to the counter; never blocks.
    Signal(SyncId),
    /// Continue when the counter has been signalled `n` times. In the canonical order this step
    /// comes after all `n`.
    Wait {
        /// The counter.
        id: SyncId,
        /// How many signals.
        n: u32,
    },
    /// The thread's last step.
    End,
}

/// Canonical byte addresses `first .. first + bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    /// First byte.
    pub first: u64,
    /// Length; a range never wraps.
    pub bytes: u64,
}

/// What the program said or did that policies and reports care about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The bytes now belong to `object`.
    Alloc {
        /// The object.
        object: ObjectId,
        /// Where.
        range: ByteRange,
    },
    /// They no longer do.
    Free {
        /// The object.
        object: ObjectId,
        /// Where.
        range: ByteRange,
    },
    /// A parallel region starts (told by the thread that forks, before it signals its team).
    RegionBegin {
        /// Dense id of the region in the source.
        region: u32,
    },
    /// It has ended (after the join).
    RegionEnd {
        /// As in `RegionBegin`.
        region: u32,
    },
    /// Round `number` of the program's outer loop begins.
    Iteration {
        /// From 0.
        number: u32,
    },
    /// The program asks for next touch.
    NextTouch {
        /// Where.
        range: ByteRange,
    },
}

/// One step of the canonical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// Who.
    pub thread: ThreadId,
    /// The thread's own clock: all accesses it has executed so far, filtered ones included. Never
    /// decreases.
    pub tick: Ticks,
    /// What.
    pub what: What,
}

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An access that passed the recorder's filter.
    Access {
        /// Canonical line (64 B).
        line: LineNo,
        /// Store or atomic read-modify-write.
        write: bool,
    },
    /// Synchronisation.
    Sync(Sync),
    /// A mark.
    Mark(Mark),
}
