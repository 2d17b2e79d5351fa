//! The lab's monitor: a plug-in of QEMU's code generator that sees every access of the guest with
//! its physical address, passes it through the modelled caches and counts what reaches main memory,
//! by page, node and load or store.
//!
//! | module | one idea |
//! |---|---|
//! | [`api`] | QEMU's functions, found at run time; versions 1 and later from one binary |
//! | [`hook`] | what QEMU calls |
//! | [`decode`] | instructions after which a translation may be another one; marks |
//! | [`word`] | what QEMU's word for an access says |
//! | [`cpu`] | an access of a virtual CPU |
//! | [`translate`] | virtual to physical, kept for each virtual CPU until such an instruction |
//! | [`front`] | the accesses that change nothing in the caches, found without a lock |
//! | [`pending`] | the others, until the model hears of them |
//! | [`monitor`] | caches, counts, modelled time, behind one lock |
//! | [`contention`] | how long controllers and links are busy, and whom that holds up |
//! | [`count`] | counts by page |
//! | [`firsts`] | first stores to pages: who, and the program's code |
//! | [`calls`] | the calls that a program is in |
//! | [`place`] | physical addresses in the guest's memory, and whose they are |
//! | [`memory`], [`process`] | which process a CPU executes, from the guest's memory |
//! | [`config`] | the machine, as the launcher writes it down |
//! | [`control`] | what the launcher asks |
//!
//! # What is counted
//! Main-memory accesses: demand misses of the outermost modelled cache, with the causes of
//! [`homenode_cache::Miss`], and not write-backs. An access belongs to the kernel when the
//! instruction that makes it lies in the upper half of the address space, otherwise to the process
//! that the kernel has on the CPU. Instruction fetches and the processor's page-table walks are not
//! seen by a plug-in and not counted.
//!
//! # In which order
//! Each CPU's accesses are in the program's order. Between CPUs the order is kept where a program
//! synchronises: before a locked instruction or a system call of a program the model hears of all
//! that the CPU did before. In between it may hear of some hundred accesses of one CPU before those
//! of another that were made at the same time.
//!
//! # What is modelled
//! Time: for each CPU the sum of its accesses' base cost, of outer caches' hits and of latencies by
//! (node of the CPU, node of the page), one miss at a time; in each interval at least as long as
//! the busiest controller, port or link that it uses needs for what all CPUs move.

pub mod api;
pub mod calls;
pub mod config;
pub mod contention;
pub mod control;
pub mod count;
pub mod cpu;
pub mod decode;
pub mod emulator;
pub mod firsts;
pub mod front;
pub mod hook;
pub mod memory;
pub mod monitor;
pub mod pending;
pub mod place;
pub mod process;
pub mod translate;
pub mod word;
