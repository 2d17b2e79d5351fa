//! A recorded thread: its filter, its buffer, its log.
//!
//! Two front ends feed it: the recorder inside a program that was built with `homenode-cc`
//! (`homenode_trace`), where instrumented code looks into the filter itself, and the emulator's
//! plug-in (`homenode_monitor`), which sees the accesses of a program as it is. What passes the
//! filter and the marks go to a buffer and from there, encoded and compressed, to the thread's log.
//!
//! | module | one idea |
//! |---|---|
//! | [`block`] | what the check of the filter needs, in one line of a cache |
//! | [`recorder`] | a thread's filter, buffer and log |
//! | [`bypass`] | lines that several threads use between two barriers, and no filter may hide |
//! | [`state`] | the whole process: on or off, where the recording is, which threads exist |
//! | [`channel`] | how marks get from an emulated program to the plug-in |
//! | [`io`], [`memory`], [`process`] | system calls, mappings, errno and clock |
//!
//! It may live in somebody else's process: it keeps `errno`, and on any failure of its own switches
//! itself off.

pub mod block;
pub mod bypass;
pub mod channel;
pub mod io;
pub mod memory;
pub mod process;
pub mod recorder;
pub mod state;

pub use block::Block;
pub use recorder::Recorder;
