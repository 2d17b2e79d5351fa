//! The rounds of a program's outer loop, found in the sequence of its regions and barriers.
//!
//! | module | what | used by |
//! |---|---|---|
//! | [`nest`] | folds a sequence of symbols into nested loops, as they come | both below |
//! | [`rounds`] | which of the loops that run is the program's iteration | the live runtime |
//! | [`hindsight`] | the rounds of a sequence that is known to its end | recordings |
//!
//! No I/O and no clock. [`nest`] and [`rounds`] take all memory that they need at the start: they
//! run inside programs.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod hindsight;
pub mod nest;
pub mod rounds;

pub use hindsight::{Begins, Hindsight};
pub use nest::Nest;
pub use rounds::{Round, Rounds};
