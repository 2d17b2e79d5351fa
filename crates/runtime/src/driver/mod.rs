//! Events to the policy, its decisions to the pages.

mod arming;
mod machine;
pub mod live;
pub mod mover;
mod run;
pub mod settings;

pub use machine::Machine;
pub use live::Live;
pub use mover::{Armed, Counters, Mover, Touch};
pub use run::{Driver, RegionStats};
pub use settings::{Arming, Settings};
