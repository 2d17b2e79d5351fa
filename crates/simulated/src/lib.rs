//! The data set of a simulated recording: what the simulator did, and to which page.
//!
//! | module | what |
//! |---|---|
//! | [`names`] | names for what a recording has addresses of |
//! | [`places`] | from canonical pages to pages of objects |
//! | [`rows`] | the rows of each table |
//! | [`missing`](mod@missing) | what a recording lacks |
//!
//! A caller sets [`MemoryOptions::collect`](homenode_sim::memory::MemoryOptions), simulates, and
//! makes a [`Simulated`] of each outcome.
//!
//! # Properties
//! - The sum over the timed rows of `accesses` is the outcome's `timed_counts`: what `compare`
//!   prints.
//! - The same recording, machine and policy give the same bytes, whatever the number of workers.

#![forbid(unsafe_code)]

pub mod missing;
pub mod names;
pub mod places;
pub mod rows;

pub use missing::{gaps, members_without_log, missing};
pub use names::{Names, is_system};
pub use rows::Simulated;
