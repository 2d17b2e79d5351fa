//! Deterministic simulator.

pub mod order;
pub mod stream;
