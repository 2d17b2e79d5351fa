//! The raw log of a recording.
//!
//! A recording is a directory. Each thread of the recorded program has one log file in `threads/`,
//! written by that thread alone and only appended to, so that what was flushed is readable after
//! `kill -9`. A log is a header and a sequence of *chunks*; a chunk is self-contained (own
//! predictor state, own table of program counters), compressed and checked by a CRC, so that damage
//! costs one chunk. [`Record`]s are what the program did: accesses that passed the recorder's
//! filter, and [`Mark`]s.
//!
//! | module | what |
//! |---|---|
//! | [`mark`] | marks and their words |
//! | [`encode`] | records in memory (two words an access) to a chunk |
//! | [`decode`] | a chunk to records |
//! | [`file`](mod@file) | the file: header, frames, CRC, limits |
//! | [`check`] | invariants over a whole log |
//! | [`recording`] | the directory: `meta.json`, `symbols.json`, the threads' logs |
//! | [`sharing`] | what a count of shared cache lines means, in words |
//! | [`regular`] | opening files of strangers |
//!
//! Logs of strangers are hostile input: every length is bounded, nothing in a log is a path that
//! gets opened.

#![forbid(unsafe_code)]

pub mod check;
pub mod decode;
pub mod encode;
mod error;
pub mod file;
pub mod mark;
#[cfg(feature = "recording")]
pub mod recording;
pub mod regular;
pub mod sharing;
pub mod varint;

pub use error::{LogError, Wrong};
pub use mark::Mark;

use homenode_model::{LineNo, Ticks};

/// Version of the log format. Older ones are read by [`file::LogReader`] as long as an upgrader
/// exists for them.
pub const VERSION: u32 = 1;

/// Calls of allocations from this number on are lines of Python code: `python.txt` in the recording
/// says which. No code has such an address.
pub const PYTHON: u64 = 1 << 63;

/// One record of a thread's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The thread's clock: accesses executed so far, filtered ones included.
    pub tick: Ticks,
    /// What happened.
    pub what: RecordKind,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// An access that passed the filter.
    Access {
        /// Line of the virtual address in the recorded process.
        line: LineNo,
        /// Store.
        write: bool,
        /// Return address of the instrumentation call: identifies the source line. 0 where it is
        /// unknown.
        pc: u64,
    },
    /// A mark.
    Mark(Mark),
}
