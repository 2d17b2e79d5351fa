//! Deterministic simulator.

pub mod caches;
pub mod stream;
