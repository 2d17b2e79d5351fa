//! The driver stands between policy and pages: it gives the policy events, and carries out its
//! decisions by the [`mover`].

mod arming;
mod clocks;
mod first_touches;
mod full_nodes;
mod journal;
mod judging;
pub mod live;
mod machine;
pub mod mover;
mod moves;
mod planning;
mod probing;
mod recorded;
mod run;
pub mod settings;
mod state;
mod threads;
mod trial;
mod turns;
mod watching;

pub use clocks::Clocks;
pub use homenode_wire::facts::Arming;
pub use homenode_wire::facts::Counters;
pub use live::Live;
pub use machine::Machine;
pub use mover::{Armed, Mover, Touch};
pub use run::Driver;
pub use settings::Settings;
pub use state::marks::{RegionStats, RoundTimes};
pub use state::{plan, team_size};
