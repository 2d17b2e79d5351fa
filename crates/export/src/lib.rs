//! A data set as Parquet, which DuckDB, Polars, Spark and Dask read, and as a trace for Perfetto.
//!
//! [`export`](export()) writes `OUT/TABLE/host=H/job=J/rank=R/part-0.parquet`, one file a table and
//! member, in Hive partitions. It reads and writes chunk by chunk, so that a data set of any size
//! needs the same memory. `docs/dataset.md` lists tables and columns.
//!
//! | module | what |
//! |---|---|
//! | [`mod@export`] | a data set into a folder that appears whole or not at all |
//! | [`partition`] | the folders of host, job and rank |
//! | [`parquet`] | one Parquet file |
//! | [`perfetto`] | a data set as a trace for Perfetto's user interface |
//!
//! # Why a writer of its own
//!
//! The format needs four encodings and a footer here. The crate `parquet` takes 57 s of CPU time to
//! build without Arrow and without zstd's C code, which is more than building all of homenode may
//! grow by. This writer takes 3 s, and real DuckDB and Polars read its files in the tests.

#![forbid(unsafe_code)]

mod error;
pub mod export;
pub mod parquet;
pub mod partition;
pub mod perfetto;

pub use error::ExportError;
pub use export::{ExportOptions, Exported, export};
