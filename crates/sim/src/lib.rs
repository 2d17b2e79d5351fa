//! Deterministic simulator: one trace, many machines, many placements. See [`stream`] for what
//! flows between stages and [`run`] for all of them together.

pub mod caches;
pub mod change;
pub mod collect;
pub mod memory;
pub mod run;
pub mod statistics;
pub mod stream;
pub mod yardsticks;
