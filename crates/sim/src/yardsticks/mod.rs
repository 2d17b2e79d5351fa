//! What no placement can beat, and what a very good one reaches: the yardsticks beside every
//! policy.
//!
//! A [`Tally`] reads the memory stream of one machine and binding, like
//! [`Memory`](crate::memory::Memory) does, but keeps no clock: it counts who accesses which page in
//! each *epoch* (between two iteration marks) and how long each thread computes. From that follow:
//!
//! - **floor**: every access at the latency of the toucher's nearest memory, no queue, nothing
//!   moves: Σ over epochs of the slowest thread. Replication cannot beat it either.
//! - **bound**: no policy without replication ends earlier, whatever it knows (module [`bound`]).
//! - **oracle**: the cheapest way of each page by itself through the epochs ([`path`]), to be
//!   simulated by a [`Script`]. A policy that balances load over nodes may beat it.
//! - **search**: a placement at first use found by local search ([`search`]), to be simulated
//!   likewise.
//!
//! All is over the *timed part*, as [`Outcome`](crate::memory::Outcome) defines it: from the first
//! iteration mark to the last; with one, from there to the end; without, everything. Where pages
//! lie when it begins is free.
//!
//! *Limit:* epochs are cut where the thread that marks iterations says so. Where other threads are
//! still at work then (a mark inside a parallel region), their accesses may be counted an epoch
//! off; [`Yardsticks::approximate`] says so.
//!
//! Memory: 32 bytes a page and thread for counts, 8 a page, node and lane of the bound, 16 a page
//! and epoch for the oracle's way, which is given up beyond [`path::MAX_STEPS`].

mod bound;
mod costs;
mod epoch;
pub mod path;
mod script;
pub mod search;
mod tally;
#[cfg(test)]
mod tests;

pub use script::Script;
pub use search::{Meets, Search};
pub use tally::{Tally, TallyError, Yardsticks};
