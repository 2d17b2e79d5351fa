//! Who touches what in this process, from whatever this machine offers.
//!
//! | what | where |
//! |---|---|
//! | what all sources have in common: what they say, and of what kind it is | [`source`] |
//! | the processor's samples of loads and stores, and how they are asked for | [`pmu`], [`encoding`] |
//! | the kernel's NUMA-hinting faults, read from a perf ring | [`hinting`] |
//! | writes to pages that were write-protected for the purpose | [`writes`] |
//! | one event and one ring a CPU, for all threads of a program | [`rings`] |
//! | the same with a buffer that the processor writes to by itself | [`traces`] |
//! | what Arm's processors write there | [`spe`] |
//! | what is watched, by address; pages whose next toucher is wanted | [`spans`], [`asked`] |
//! | what a told page fault costs | `fault` |
//! | what was to be watched and is not, for the report | `unwatched` |
//! | how many samples the budget allows, and when there are none | [`budget`], [`duty`], [`lull`] |
//! | samples by page and node, in bounded memory | [`tally`] |
//!
//! A source says either *how often*, as a sample of known rate, or *that* a node touched a page and
//! in which order (presence). Presence is never called a count: who touches a page first after it
//! was armed is not who touches it most, unless pages are armed at random times, and then many
//! draws are needed for what is not clear-cut.

#![forbid(unsafe_code)]

pub mod asked;
pub mod budget;
pub mod duty;
pub mod encoding;
mod fault;
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

pub use source::{Cpus, Says, Source, Touch};
