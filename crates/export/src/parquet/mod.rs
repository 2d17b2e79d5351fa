//! A Parquet file, written column by column.
//!
//! The format: <https://parquet.apache.org/docs/file-format/>. What is used of it:
//!
//! | column | type | encoding |
//! |---|---|---|
//! | integer | `INT64`, signed | `DELTA_BINARY_PACKED` |
//! | boolean | `BOOLEAN` | `PLAIN` |
//! | word, text | `BYTE_ARRAY`, UTF-8 | `RLE_DICTIONARY`; `PLAIN` once the words are too many |
//! | list | the three-level `LIST` | as its elements |
//!
//! Pages are of version 1 and packed with zstd. Row groups and columns have counts of missing
//! values; integers have bounds, by which readers skip row groups.

mod column;
mod compact;
mod encode;
mod file;
mod pack;

pub use file::{FileWriter, WrittenFile};
