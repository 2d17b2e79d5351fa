//! The data set of a simulated recording: what the simulator did, and to which page.
//!
//! | module | what |
//! |---|---|
//! | [`names`] | names for what a recording has addresses of |
//! | [`places`] | from canonical pages to pages of objects |
//! | [`rows`] | the rows of each table |
//! | [`missing`](mod@missing) | what a recording lacks |
//! | [`run`] | from a recording to its data set, in one call |
//!
//! A caller that simulates many schemes sets [`MemoryOptions::collect`](homenode_sim::memory::MemoryOptions) and makes a
//! [`Simulated`] of each outcome. A caller that wants one data set calls [`dataset`].
//!
//! # Properties
//! - The sum over the timed rows of `accesses` is the outcome's `timed_counts`: what `compare` prints.
//! - The same recording, machine and policy give the same bytes, whatever the number of workers.

#![forbid(unsafe_code)]

pub mod missing;
pub mod names;
pub mod places;
pub mod rows;
pub mod run;

pub use missing::{gaps, members_without_log, missing};
pub use names::Names;
pub use rows::Simulated;
pub use run::{Error, Request, dataset};
