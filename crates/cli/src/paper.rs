//! The papers' tables: theirs beside ours, cell by cell.

pub mod lof;
mod numbers;
pub mod robertson;
mod runs;
pub mod series;
