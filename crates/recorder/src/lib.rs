//! A recorded thread: its filter, its buffer, its log.
//!
//! Two front ends feed it. One is the recorder inside a program that was built with `homenode-cc`
//! (`homenode_trace`), where instrumented code checks the filter itself. The other one is the
//! emulator's plug-in (`homenode_monitor`), which sees the accesses of an unmodified program.
//! Accesses that pass the filter, and marks, go to a buffer, and from there, encoded and
//! compressed, to the thread's log.
//!
//! | module | one idea |
//! |---|---|
//! | [`recorder`] | a recorded thread: its block in one cache line, its filter, buffer and log |
//! | [`filter`] | the lines that a thread has used since it last synchronised |
//! | [`unrecorded`] | filters of threads that are not recorded |
//! | [`bypass`] | lines that several threads use between two barriers, which no filter may hide |
//! | [`registry`] | the threads by number |
//! | [`state`] | the whole process: on or off, and where the recording is |
//! | [`channel`] | marks from an emulated program to the plug-in |
//! | [`io`], [`memory`], [`process`] | system calls, mappings, errno and clock |
//!
//! This crate may run in somebody else's process. It keeps `errno`, and switches itself off on any
//! failure of its own.

pub mod bypass;
pub mod channel;
pub mod filter;
pub mod io;
pub mod memory;
pub mod process;
pub mod recorder;
pub mod registry;
pub mod state;
pub mod unrecorded;

pub use recorder::{FastPath, Recorder, stop};
