//! A recording as one canonical order of steps, with canonical addresses.
//!
//! | what | where |
//! |---|---|
//! | a recording's logs, opened, and what is known of it | [`open`], [`Trace`] |
//! | the merger of the threads' logs | [`Order`] |
//! | steps: accesses, synchronisation, marks | [`step`] |
//! | addresses relative to objects | [`space`] |
//! | rows of arrays on pages of their own | [`padding`] |
//! | the recorded order of locks | [`turns`] |
//! | who touched what first | [`firsts`] |
//! | rounds of programs that do not tell of them | [`found`] |

#![forbid(unsafe_code)]

mod facts;
pub mod firsts;
pub mod found;
mod order;
pub mod padding;
mod rank;
mod recording;
pub mod space;
pub mod step;
pub mod turns;

pub use facts::{BypassRecord, Trace};
pub use order::{Order, RecordSource, StepSink};
pub use recording::{OpenError, ProgramFacts, open};
