//! What flows between the stages of the simulator.
//!
//! ```text
//! recording ──order──► steps ──caches (once a machine)──► memory stream ──memory (once a
//! policy)──► times ```
//!
//! *Steps* ([`homenode_order::step`]) are the program's passed accesses and marks in one canonical
//! total order, (epoch, tick, thread, sequence), with canonical addresses. The *memory stream*
//! keeps, per thread and in program order, only what leaves the caches, and the same
//! synchronisation and marks.

use homenode_model::{LineNo, Ticks};
use homenode_order::step::{Mark, Sync};

/// Why an access left the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Nobody had touched the line before.
    Cold = 0,
    /// This CPU's caches held it once and evicted it.
    Capacity = 1,
    /// Another CPU wrote it since, or holds it modified.
    Coherence = 2,
    /// A store to a line that is present but shared: needs the directory at the home, carries no
    /// data.
    Upgrade = 3,
    /// A dirty line goes back to memory: bandwidth, no waiting.
    WriteBack = 4,
    /// A hit in the modelled caches of a machine where hits matter: every access is an item there.
    /// Where remote memory is not cached (`remote_cacheable` is false), it costs an access if the
    /// page is remote. Otherwise it costs nothing, and the policy's counts see it.
    Uncached = 5,
}

impl Cause {
    /// Whether data is fetched into a cache.
    pub const fn is_miss(self) -> bool {
        matches!(self, Self::Cold | Self::Capacity | Self::Coherence)
    }
}

/// An item of a thread's memory stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemItem {
    /// The thread's clock at the item.
    pub tick: Ticks,
    /// What it is.
    pub what: MemWhat,
}

/// What an item of the memory stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemWhat {
    /// An access to main memory.
    Access {
        /// Canonical line number in units of the machine's last-level line size, expressed as the
        /// first 64-byte line.
        line: LineNo,
        /// Store.
        write: bool,
        /// Why.
        cause: Cause,
    },
    /// The first access, hit or miss, to one of the 4 KiB units for which the program asked for
    /// next touch, since it asked. It comes before the access's own item and is no access itself: a
    /// page fault does not depend on caches.
    Touch {
        /// The line.
        line: LineNo,
    },
    /// The first access, hit or miss, to a 4 KiB unit since a region began, where no
    /// [`MemWhat::Touch`] says the same. It is in the stream when one of the policies that share it
    /// arms pages at region starts, and nothing at all to the others.
    RegionTouch {
        /// The line.
        line: LineNo,
    },
    /// Synchronisation, passed through.
    Sync(Sync),
    /// A mark, passed through.
    Mark(Mark),
    /// Latencies of hits in cache levels behind the first since the last item, added up, in
    /// picoseconds. Stage 3 lets them overlap.
    CacheTime(homenode_model::Ps),
}

/// A piece of the memory stream: what happened between two cuts of the canonical order, per thread
/// in program order.
///
/// Cuts lie anywhere. Stage 3 may run a thread only as far as its items reach and keeps the rest
/// for the next chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemChunk {
    /// Items by thread index; threads that appear later extend it.
    pub threads: Vec<Vec<MemItem>>,
    /// Items of all threads together, for statistics.
    pub items: u64,
    /// True for the last chunk.
    pub last: bool,
}
