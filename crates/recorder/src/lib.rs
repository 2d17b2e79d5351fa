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
//! | [`block`] | the data that a check of the filter needs, in one cache line |
//! | [`filter`] | the lines that a thread has used since it last synchronised |
//! | [`recorder`] | a thread's filter, buffer and log |
//! | [`bypass`] | lines that several threads use between two barriers, which no filter may hide |
//! | [`state`] | the whole process: on or off, where the recording is, which threads exist |
//! | [`channel`] | marks from an emulated program to the plug-in |
//! | [`io`], [`memory`], [`process`] | system calls, mappings, errno and clock |
//!
//! This crate may run in somebody else's process. It keeps `errno`, and switches itself off on any
//! failure of its own.

pub mod block;
pub mod bypass;
pub mod channel;
pub mod filter;
pub mod io;
pub mod memory;
pub mod process;
pub mod recorder;
pub mod state;

pub use block::FastPath;
pub use recorder::Recorder;
