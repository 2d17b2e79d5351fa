//! Samples of what threads do: `perf_event_open` and its ring (include/uapi/linux/perf_event.h).
//!
//! | what | where |
//! |---|---|
//! | what to count, for whom; opening, enabling, reading | [`event`] |
//! | the memory that the kernel writes samples to | [`ring`] |
//! | the buffer beside it that a processor writes to by itself | [`aux`] |
//! | a record as bytes, decoded | [`record`] |
//! | a ring without a kernel, to try readers out | [`pretend`] |
//!
//! An event of a process that inherits to new threads can have a ring only for each CPU: who wants
//! all threads of a program opens one event a CPU, from the program's first thread, before it
//! starts others.

pub mod aux;
pub mod event;
pub mod pretend;
pub mod record;
pub mod ring;

pub use event::{Event, Fields, Kind, Rate, Spec, Target};
pub use pretend::Pretend;
pub use record::{DataSource, Record, Sample, Stretch};
pub use ring::Ring;
