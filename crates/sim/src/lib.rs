//! Deterministic simulator.

pub mod stream;
