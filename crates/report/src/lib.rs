//! Answers made from a data set: what is remote, which array, who touched it first, what moved and
//! whether that paid, what changed between two recordings.
//!
//! An answer is plain data that serialises. It has no colours, no widths and no sentences: those
//! belong to whoever shows it.
//!
//! | answer | module |
//! |---|---|
//! | the whole recording, its objects, its moves | [`RecordingReport`] |
//! | what it is, whether it is whole, what is remote | [`summary`] |
//! | one object | [`objects`] |
//! | what moved and whether it paid | [`moves`] |
//! | where pages lived, as a picture | [`map`] |
//! | before and after | [`diff`] |
//! | two results of `homenode compare --json` | [`compared`] |
//!
//! # What is read
//!
//! [`RecordingReport::of`] reads every table once, row by row. Memory grows with objects, nodes and
//! intervals, and with a bounded number of blocks ([`blocks`]), not with rows. [`map::Map::of`]
//! reads `residency` once more; where that table is empty, `accesses`.
//!
//! # What counts
//!
//! Results count timed intervals. Where no interval is timed, they count all of them, and
//! [`summary::Scope`] says which. A recording of presence has no counts: its shares are shares of
//! sightings, and [`Share::of`](amount::Share) says so.
//!
//! Results are ordered by whole numbers, with a tie-break each, so that the same data set gives the
//! same bytes.

#![forbid(unsafe_code)]

pub mod amount;
pub mod blocks;
pub mod compared;
pub mod diff;
pub mod machine;
pub mod map;
pub mod matching;
pub mod moves;
pub mod objects;
mod report;
mod serial;
pub mod summary;
pub mod time;
pub mod touch;

pub use amount::{Amount, Share, Unit};
pub use diff::Diff;
pub use map::Map;
pub use report::{MOST_MOVED, Moved, RecordingReport};
