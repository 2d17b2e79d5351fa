//! The papers' tables: theirs beside ours, cell by cell.

#![forbid(unsafe_code)]

pub mod lof;
mod numbers;
pub mod robertson;
mod runs;
pub mod series;
pub mod tao;
