//! The budget of homenode's own time, and whether moving pays.

pub mod holdback;
pub mod per_region;

pub use holdback::{Group, HoldBack};
pub use homenode_wire::facts::Verdict;
pub use per_region::RegionGuard;
