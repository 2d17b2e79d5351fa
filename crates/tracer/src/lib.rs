//! The exact recorder, inside the recorded program.
//!
//! `homenode-cc` compiles with the thread sanitiser's instrumentation and links this library
//! instead of the sanitiser's. Every access calls [`fast`]. Accesses to lines that the thread's
//! direct-mapped filter has not seen since the thread's last synchronisation go to a buffer
//! ([`thread`]), and from there, encoded and compressed, to the thread's log. Marks come from the
//! OpenMP run-time systems ([`gomp`], [`ompt`], [`kmpc`]), from locks and threads ([`locks`],
//! [`threads`]), from allocations ([`alloc`]) and from the program itself ([`capi`]).
//!
//! This library runs in somebody else's process. It never panics across its border, keeps `errno`,
//! and records nothing in a forked child. On any failure of its own it switches itself off, and the
//! program goes on. Without `HOMENODE_TRACE_DIR` in the environment it does nothing.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the exact recorder is written for x86-64 Linux: its fast path is assembly");

pub mod alloc;
mod atomics;
mod cancel;
mod capi;
pub mod emulator;
mod fast;
mod gomp;
mod kmpc;
mod lab;
pub mod locks;
mod memory;
pub mod modules;
pub mod next;
mod ompt;
mod process;
pub mod python;
pub mod ranges;
mod stack;
mod start;
mod teams;
pub mod thread;
mod threads;
mod tls;
