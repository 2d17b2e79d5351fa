//! The driver stands between policy and pages: it gives the policy events, and carries out its
//! decisions by the [`mover`].

mod areas;
mod arming;
mod clocks;
mod firsts;
pub mod fit;
mod journal;
mod later;
pub mod live;
mod loads;
mod machine;
pub mod mover;
pub mod plan;
mod probing;
mod recorded;
mod room;
mod run;
pub mod settings;
mod threads;
mod told;
mod trial;
mod waiting;
mod watching;

pub use clocks::Clocks;
pub use homenode_wire::facts::Arming;
pub use homenode_wire::facts::Counters;
pub use live::Live;
pub use machine::Machine;
pub use mover::{Armed, Mover, Touch};
pub use run::{Driver, RegionStats};
pub use settings::Settings;
