//! Raw Linux system calls for memory, nodes, page faults and samples.
//!
//! Everything here is made without the C library: no cancellation point, `errno` untouched, no
//! allocation, no lock. So it may be called from signal handlers and from inside functions that
//! stand in front of the C library's own. What may break a program's memory is `unsafe`; what only
//! asks is not.
//!
//! | what | where |
//! |---|---|
//! | the calls themselves, how they fail | [`call`], [`Error`] |
//! | mappings: make, move, protect, advise | [`memory`] |
//! | nodes: where pages are, moving them, policies, CPUs | [`numa`] |
//! | CPUs that a thread may run on | [`affinity`] |
//! | owned memory, and the loops that measure it: pointers, streams | [`block`], [`ring`], [`mod@stream`] |
//! | user-space page faults | [`uffd`] |
//! | samples: page faults with their addresses, what processors sample | [`perf`] |
//! | the counter that Arm's processors stamp their samples with | [`counter`] |
//! | descriptors of homenode's own | [`descriptor`] |
//! | threads of homenode's own | [`own_threads`] |
//! | reading files and folders of `/proc` | [`mod@file`] |
//! | the process's mappings, what of them is locked or huge | [`maps`] |
//! | whether performance events open | [`probe`] |
//! | what a descriptor's socket is | [`socket`] |
//! | signals: masks, handlers | [`signal`] |
//! | marks that the lab's monitor sees | [`mark`] |

pub mod affinity;
pub mod block;
pub mod call;
pub mod counter;
pub mod descriptor;
mod error;
pub mod file;
pub mod maps;
pub mod mark;
pub mod memory;
pub mod numa;
pub mod own_threads;
pub mod perf;
pub mod probe;
pub mod ring;
pub mod signal;
pub mod socket;
mod span;
pub mod stream;
pub mod thread;
pub mod uffd;

pub use error::{Errno, Error, Result};
pub use span::{HUGE, PAGE, Span};
