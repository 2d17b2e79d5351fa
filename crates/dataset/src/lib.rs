//! What happened to which page, as typed tables: one schema for every kind of recording.
//!
//! A [`Dataset`] is what `show`, `diff`, `explain`, the viewer, Python and Parquet read. Every
//! producer fills the same [`tables`]: the simulator under any policy, `homenode run --record`,
//! `homenode record` live, on the lab and under the emulator.
//!
//! | module | what |
//! |---|---|
//! | [`tables`] | the tables and their columns |
//! | [`basis`] | what a number is worth: exact, sampled, presence, emulated |
//! | [`meta`] | the one row about the recording: `dataset.json` |
//! | [`fields`] | the fields of an array's element |
//! | [`schema`] | how a row type names its columns |
//! | [`mod@column`] | columns in memory |
//! | [`file`](mod@file) | a table on disk: append-only chunks with checksums |
//! | [`folder`] | a data set on disk, and its reader |
//! | [`layout`] | the files in its folder |
//! | [`members`], [`merge`](mod@merge) | data sets of several ranks as one |
//! | [`synthetic`] | data sets of any size that stand for no program |
//! | [`memory`] | a data set that was never written |
//! | [`identity`] | the id of an object, the same in every run |
//! | [`homes`] | where pages lived and when they moved, from what a source saw |
//! | [`times`] | times of intervals, of a source that tells none |
//! | [`mod@upgrade`] | recordings of older forms |
//! | [`foreign`] | files and texts of strangers |
//!
//! # On disk
//!
//! A data set is a folder: `dataset.json` and `tables/NAME.hntable`. A table is only appended to.
//! Whatever was flushed is readable after `kill -9`. A damaged chunk costs that chunk alone.
//!
//! # Times and pages
//!
//! Times are nanoseconds since the start of the program, on one clock a recording. A page is
//! numbered within its object: page 0 holds the object's first byte.

#![forbid(unsafe_code)]

pub mod basis;
mod chunks;
mod codec;
pub mod column;
mod error;
pub mod fields;
pub mod file;
pub mod folder;
pub mod foreign;
pub mod homes;
pub mod identity;
pub mod layout;
pub mod members;
pub mod memory;
pub mod merge;
pub mod meta;
mod salvage;
pub mod schema;
pub mod synthetic;
pub mod tables;
pub mod times;
pub mod upgrade;
mod versions;
mod writer;

pub use basis::{Basis, Count, SeenCount};
pub use error::{DatasetError, Missing};
pub use folder::Dataset;
pub use memory::MemoryDataset;
pub use meta::{DatasetMeta, Ended, RecordingKind};
pub use schema::{RowSink, TableRow};
pub use upgrade::upgrade;
pub use writer::DatasetWriter;
