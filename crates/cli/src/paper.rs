//! The papers' tables: theirs beside ours, cell by cell.

pub mod lof;
mod numbers;
mod runs;
pub mod series;
