//! The papers' tables and figures: theirs beside ours, cell by cell.
//!
//! [`catalogue`] lists them and runs one, [`report`] runs all of them and writes one page. What an
//! experiment yields is a [`verdict::Shown`]: a table, and what the paper concludes from it.

#![forbid(unsafe_code)]

pub mod ask;
pub mod catalogue;
pub mod lof;
pub mod niko;
mod numbers;
pub mod report;
pub mod robertson;
mod runs;
pub mod series;
pub mod tao;
pub mod verdict;
