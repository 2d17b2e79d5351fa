//! Samples of what threads do: `perf_event_open` and its ring (include/uapi/linux/perf_event.h).
//!
//! | what | where |
//! |---|---|
//! | what to count, for whom; opening, enabling, reading | [`event`] |
//! | the memory that the kernel writes samples to | [`ring`] |
//! | a record as bytes, decoded | [`record`] |
//!
//! An event of a process that inherits to new threads can have a ring only for each CPU: who wants all threads of a program
//! opens one event a CPU, from the program's first thread, before it starts others.

pub mod event;
pub mod record;
pub mod ring;

pub use event::{Event, Fields, Kind, Rate, Spec, Target};
pub use record::{DataSource, Record, Sample};
pub use ring::Ring;
