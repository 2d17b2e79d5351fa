//! Which region runs, and which regions make an iteration.
//!
//! A region is identified by its outlined function and its caller ([`table`]). The sequence of
//! regions is folded into nested loops ([`homenode_rounds::nest`]). The outermost running loop is
//! the iteration ([`homenode_rounds::rounds`]).

pub mod table;

pub use homenode_rounds::{Nest, Round, Rounds};
pub use table::{RegionKey, RegionTable};

/// Dense number of a region of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);
