//! The guard: judges whether moving pays ([`holdback`]), and which regions are worth an arming
//! ([`per_region`]).

pub mod holdback;
pub mod per_region;

pub use holdback::{Group, HoldBack};
pub use homenode_wire::facts::Verdict;
pub use per_region::RegionGuard;
