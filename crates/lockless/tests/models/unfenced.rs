//! The product's files, without fences and without a total order of `SeqCst` accesses.

#[path = "../../src/changes.rs"]
pub mod changes;
#[path = "../../src/claims.rs"]
pub mod claims;
#[path = "../../src/flights.rs"]
pub mod flights;
#[path = "new.rs"]
mod new;
#[path = "../../src/ring.rs"]
pub mod ring;
#[path = "scenarios.rs"]
pub mod scenarios;

mod sync {
    use crate::atomics::Plant;

    atomics! { Plant::Unfenced }
}
