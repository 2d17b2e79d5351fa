//! Placement schemes tried for real, not simulated: a program runs once for each scheme and
//! repetition, and a table says what came of it.
//!
//! | where | module | what is measured |
//! |---|---|---|
//! | this machine | [`host`] | wall time, in pairs; page homes and nodes of threads as proof |
//! | the virtual NUMA machine | [`lab`] | memory accesses, by a monitor outside of the guest |
//!
//! [`scheme`] has the ways to place pages.

#![forbid(unsafe_code)]

pub mod host;
pub mod lab;
pub mod scheme;
