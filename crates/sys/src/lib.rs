//! Raw Linux system calls for memory, nodes, page faults and samples.
//!
//! All calls here bypass the C library: they are no cancellation points, leave `errno` alone,
//! allocate nothing and take no lock. So signal handlers may call them, and so may functions that
//! stand in front of the C library's own. Calls that may break a program's memory are `unsafe`;
//! calls that only ask are not.
//!
//! | part | module |
//! |---|---|
//! | The calls themselves, and their failures | [`call`], [`Error`] |
//! | Mappings: make, move, protect, advise | [`memory`] |
//! | Nodes: where pages are, moving them, policies, CPUs | [`numa`] |
//! | The CPUs that a thread may run on | [`affinity`] |
//! | Owned memory, and the loops that measure it: pointers, streams | [`block`], [`ring`], [`mod@stream`] |
//! | User-space page faults | [`uffd`] |
//! | Samples: page faults with their addresses, samples of processors | [`perf`] |
//! | The counter that stamps the samples of Arm's processors | [`counter`] |
//! | homenode's own descriptors | [`descriptor`] |
//! | homenode's own threads | [`own_threads`] |
//! | Reading files and folders of `/proc` | [`mod@file`] |
//! | The process's mappings, and which parts are locked or huge | [`maps`] |
//! | Whether performance events open | [`probe`] |
//! | The kind of a descriptor's socket | [`socket`] |
//! | Signals: masks, handlers | [`signal`] |
//! | Marks that the lab's monitor sees | [`mark`] |

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
