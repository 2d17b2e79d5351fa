//! Cache and directory models: what a machine's caches do with one canonical order of accesses.
//!
//! | module | one idea |
//! |---|---|
//! | [`tags`] | one set-associative cache with LRU replacement |
//! | [`directory`] | who knows the current version of a line, dense over canonical lines |
//! | [`shape`] | which cache of each level a CPU uses, from a [`Topology`](homenode_model::Topology) |
//! | [`hierarchy`] | the protocol over both |
//!
//! No I/O, no clock, no floating point; `no_std` with `alloc`. The simulator, the tracer and the
//! QEMU plug-in use it.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod directory;
pub mod hierarchy;
pub mod shape;
pub mod tags;

pub use directory::{Directory, Full, Sharers, Words};
pub use hierarchy::{AccessOutcome, Hierarchy, Miss};
pub use shape::{CacheShape, ShapeError};
pub use tags::Tags;

/// A line in units of the modelled machine's line size (64 B or more): address divided by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Line(pub u64);

/// A first-level cache and the CPUs behind it, dense from 0 within a [`CacheShape`]: what the
/// directory calls a sharer. CPUs that share a first-level cache (hardware threads of a core) are
/// one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Agent(pub u32);

impl Agent {
    /// As an index into a dense table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
