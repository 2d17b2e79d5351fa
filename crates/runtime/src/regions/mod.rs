//! Which region runs, and which of them make an iteration.
//!
//! A region is known by its outlined function and its caller ([`table`]); a program's sequence of regions is folded into
//! nested loops ([`nest`]); the outermost loop that runs is the iteration ([`rounds`]).

pub mod nest;
pub mod rounds;
pub mod table;

pub use nest::Nest;
pub use rounds::{Round, Rounds};
pub use table::{RegionKey, RegionTable};

/// Dense number of a region of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);
