//! The parts of the driver: each has its own state and narrow inputs, and knows no driver.

pub mod account;
pub mod areas;
pub mod arming;
pub mod evidence;
pub mod licence;
pub mod marks;
pub mod memory;
pub mod moves;
pub mod overlap;
pub mod pace;
pub mod pilots;
pub mod plan;
pub mod postponed;
pub mod probes;
pub mod recording;
pub mod team_size;
pub mod waiting;
pub mod watching;
