//! The product's files, with loom's atomic types.

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

    atomics! { Plant::None }
}
