//! The lab's monitor: a plug-in of QEMU's code generator that sees every access of the guest with its physical address,
//! passes it through the modelled caches and counts what reaches main memory, by page, node and load or store.
//!
//! | module | one idea |
//! |---|---|
//! | [`api`] | QEMU's functions, found at run time; versions 1 and later from one binary |
//! | [`hook`] | what QEMU calls |
//! | [`decode`] | instructions after which a translation may be another one |
//! | [`translate`] | virtual to physical, kept for each virtual CPU until such an instruction |
//! | [`front`] | the accesses that change nothing in the caches, found without a lock |
//! | [`monitor`] | caches, counts, modelled time, behind one lock |
//! | [`count`] | counts by page |
//! | [`config`] | the machine, as the launcher writes it down |
//! | [`control`] | beginning and end, as the launcher says |
//!
//! # What is counted
//! Main-memory accesses: demand misses of the outermost modelled cache, with the causes of [`homenode_cache::Miss`], and
//! not write-backs. An access belongs to the program's side when the instruction that makes it lies in the lower half of
//! the address space, to the kernel's otherwise. Instruction fetches and the processor's page-table walks are not seen by a
//! plug-in and not counted.
//!
//! # What is modelled
//! Time: for each CPU the sum of its accesses' base cost, of outer caches' hits and of latencies by (node of the CPU, node
//! of the page). One miss at a time; no contention of controllers or links.

pub mod api;
pub mod config;
pub mod control;
pub mod count;
pub mod decode;
pub mod emulator;
pub mod front;
pub mod hook;
pub mod monitor;
pub mod translate;
