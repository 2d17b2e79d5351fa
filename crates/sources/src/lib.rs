//! Who touches what in this process, by whatever this machine offers.
//!
//! | part | module |
//! |---|---|
//! | The common interface of all sources, and the kinds of their answers | [`source`] |
//! | The processor's samples of loads and stores, and their encoding | [`pmu`], [`encoding`] |
//! | Who touches a page first, from page faults | [`first_touches`] |
//! | The kernel's NUMA hinting faults, read from a perf ring | [`hinting`] |
//! | Writes to pages that this source has write-protected | [`writes`] |
//! | One event and one ring a CPU, for all threads of a program | [`rings`] |
//! | The same, with a buffer that the processor writes by itself | [`traces`] |
//! | The format of that buffer on Arm's processors | [`spe`] |
//! | Watched memory by address; pages whose next toucher is wanted | [`spans`], [`asked`] |
//! | The cost of a reported page fault | `fault` |
//! | Memory that a source should watch and does not, for the report | `unwatched` |
//! | How many samples the budget allows, and when there are none | [`budget`], [`duty`], [`lull`] |
//! | Samples by page and node, in bounded memory | [`tally`] |
//!
//! A source says either *how often* a node accesses a page, as a sample of known rate, or *that* a
//! node touched a page and in which order (presence). Presence is not a count: the node that
//! touches a page first after an arming need not touch it most. If pages are armed at random times,
//! many draws still show the shares.

#![forbid(unsafe_code)]

pub mod asked;
pub mod budget;
mod callers;
pub mod duty;
pub mod encoding;
mod fault;
pub mod first_touches;
pub mod hinting;
pub mod lull;
pub mod pmu;
pub mod rings;
pub mod source;
pub mod spans;
pub mod spe;
pub mod tally;
pub mod traces;
mod unwatched;
pub mod writes;

pub use source::{AddressTouch, AnswerKind, Cpus, Source};
