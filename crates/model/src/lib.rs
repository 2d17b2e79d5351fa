//! The vocabulary of homenode: ids, units, the machine, what happens to pages and what is decided
//! about them.
//!
//! No I/O, no clock, no randomness; `no_std` with `alloc`. Every other crate speaks in these types,
//! so that a page number is never taken for an address nor a node for a CPU.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod code;
mod decision;
mod event;
mod histogram;
mod ids;
pub mod json;
mod library;
mod placement;
mod rows;
mod topology;
mod units;
mod ways;

pub use decision::{Decision, DecisionBuf, MoveOutcome, MoveResult};
pub use event::{AccessKind, Event, Interest, PageRange};
pub use histogram::Histogram;
pub use ids::{CpuId, LineNo, NodeId, ObjectId, PageNo, ThreadId};
pub use library::is_runtime_library;
pub use placement::Placement;
pub use rows::Rows;
pub use topology::{Cache, CacheScope, Core, Matrix, MigrationCost, Node, Topology, TopologyError, Writes};
pub use units::{Bytes, MbPerS, Ns, Ps, Ticks};
pub use ways::{Way, Ways};
