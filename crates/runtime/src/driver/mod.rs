//! The driver stands between policy and pages: it gives the policy events, and carries out its
//! decisions by the [`mover`].
//!
//! `state` has the parts of the driver. Each part keeps its own state, takes narrow inputs, and
//! knows no driver. The files beside it have the driver's steps, which pass from part to part:
//!
//! | step | files | parts |
//! |---|---|---|
//! | what each mark of the program sets off | `run` | `marks`, `account` |
//! | arming, and pages that wait for it | `arming`, `turns` | `arming`, `waiting`, `memory` |
//! | moving pages: now, later, or beside the running team | `moves` | `moves`, `postponed`, `overlap` |
//! | watching who touches what | `watching` | `watching`, `pace` |
//! | whether moving pays | `judging`, `probing`, `trial` | `evidence`, `probes`, `pilots`, `licence` |
//! | following a plan | `planning` | `plan`, `team_size` |
//! | a recording of the run | `recorded`, `first_touches`, `threads` | `recording` |
//!
//! A step uses parts and the mover; a part uses only parts below it and the mover's types.

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
pub use homenode_wire::facts::MoverCounters;
pub use live::Live;
pub use machine::LiveMachine;
pub use mover::{Armed, Mover, Touch};
pub use run::Driver;
pub use settings::DriverSettings;
pub use state::marks::{RegionStats, RoundTimes};
pub use state::{plan, team_size};
