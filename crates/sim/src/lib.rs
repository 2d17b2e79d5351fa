//! Deterministic simulator.

pub mod memory;
pub mod stream;
