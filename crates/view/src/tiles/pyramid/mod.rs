//! Sums of a recording at many resolutions, on disk: any window is drawn in milliseconds.
//!
//! # Problem
//!
//! The tables are in the order of time. A picture of a few pages over all time, or of all pages for
//! a moment, needs rows from everywhere. Reading 1 GiB of accesses takes a minute.
//!
//! # Approach
//!
//! One pass over the tables adds each row to the finest sums. A full buffer of sums is sorted by
//! page and written as a run of blocks. A second pass merges the runs, page after page, into
//! coarser sums: what belongs to one coarse cell is near together there, and far apart in the
//! tables. A window reads the blocks that it overlaps, of the coarsest sums that still tell its
//! cells apart.
//!
//! # Terms
//!
//! | term | what |
//! |---|---|
//! | [`SumKind`] | what is summed: touches, homes, or moves |
//! | [`Resolution`] | a cell is `1 << page_shift` pages × `1 << time_shift` intervals |
//! | [`sums::Sum`] | a cell, a node, and two numbers |
//! | [`block`] | up to [`block::MOST`] sums of one object, in the order of pages |
//! | run | the blocks of one full buffer of the finest sums, in the order of pages |
//!
//! # Sums
//!
//! | kind | first number | second number | node |
//! |---|---|---|---|
//! | touches | accesses or sightings | remote ones among them | who touched |
//! | homes | pages that came minus pages that left | the same, times intervals since the cell's begin | the home |
//! | moves | pages that moved | pages that moved back | – |
//!
//! The two numbers of homes give the exact page-intervals of every coarser cell: a page that comes
//! `o` intervals after a cell of `w` intervals begins lives there for `w − o` of them.
//!
//! # Properties
//!
//! - A window from the sums equals the same window from the tables. Only rows that lie in several
//!   bands may differ by rounding: equal rows are added before they are shared out.
//! - A cell may have several sums, in several runs: the order of rows changes the size of the file
//!   and nothing else.
//! - A row of more pages than a cell stays whole. So a single row is a single sum at every
//!   resolution.
//! - Memory is bounded by [`write::BUFFERED`] sums, a block of each run that is merged, and one
//!   entry of the index for each block.
//! - The file is data: a reader checks the checksum of each block and every number in it.

pub mod block;
mod format;
pub mod gather;
mod merge;
mod out;
pub mod read;
mod shelf;
pub mod sums;
pub mod write;

use homenode_model::Bytes;
use homenode_text::human::bytes;

pub use read::Pyramid;
pub use write::{PyramidWriter, Recipe};

/// What is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SumKind {
    /// Who touched.
    Touches,
    /// Where pages lived.
    Homes,
    /// What moved.
    Moves,
}

impl SumKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Touches, Self::Homes, Self::Moves];
}

/// The size of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resolution {
    /// A cell holds `1 << page_shift` pages.
    pub page_shift: u32,
    /// A cell holds `1 << time_shift` intervals.
    pub time_shift: u32,
}

/// Why a pyramid cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum PyramidError {
    /// The system refuses.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// The recording has more than the file's numbers can say.
    #[error("the recording has more {0} than the file can tell apart")]
    TooMany(&'static str),
    /// The disk has less room than the file may take.
    #[error("it may take {}, and the disk has {} left", bytes(*needed), bytes(*room))]
    NoRoom {
        /// What it may take.
        needed: Bytes,
        /// What may still be written.
        room: Bytes,
    },
    /// Somebody asked to stop.
    #[error("somebody asked to stop")]
    Stopped,
    /// The file is damaged, of another version, or of other tables.
    #[error("{0}")]
    Damaged(&'static str),
}
