//! Deterministic simulator: one trace, many machines, many placements. See [`stream`] for what flows between stages.

pub mod memory;
pub mod order;
pub mod stream;
