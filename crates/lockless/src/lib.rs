//! What the live runtime's threads share without locks.
//!
//! | module | what | written by | read by |
//! |---|---|---|---|
//! | [`claims`] | who owns which block of memory, and the state of each block | arming, disarming, fault handlers | front ends, fault handlers |
//! | [`flights`] | buffers of system calls that have not returned | front ends | the thread that arms |
//! | [`changes`] | memory that the program has changed | front ends | the thread that arms |
//! | [`ring`] | the touches of armed pages | fault handlers | the driver |
//!
//! All functions are safe in signal handlers: they allocate nothing and make no system calls. A
//! function that waits calls the caller's function between two looks.
//!
//! `tests/models` compiles these files a second time, with loom's atomic types in the place of
//! [`sync`]. Loom then runs each test in every order of the threads' steps, and with every value
//! that the memory orderings allow a thread to read. So the modules take their atomic types from
//! `super::sync`, and the constructors are in `new.rs`: those of loom's types are not `const`.

#![no_std]
#![forbid(unsafe_code)]

pub mod changes;
pub mod claims;
pub mod flights;
mod new;
pub mod ring;

pub use changes::Changes;
pub use claims::Claims;
pub use flights::{Flights, InFlight};
pub use ring::TouchRing;

/// The atomic types of the product.
mod sync {
    pub use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
}
