//! Samples of what threads do: `perf_event_open` and its ring (include/uapi/linux/perf_event.h).
//!
//! | part | module |
//! |---|---|
//! | What to count, and for whom; opening, enabling, reading | [`event`] |
//! | The memory that the kernel writes samples to | [`ring`] |
//! | The buffer beside it that a processor writes by itself | [`aux`] |
//! | A record, decoded from bytes | [`record`] |
//! | A ring without a kernel, to test readers | [`pretend`] |
//!
//! An event of a process that new threads inherit can have a ring only for each CPU. To watch all
//! threads of a program, open one event a CPU from the program's first thread, before it starts
//! others.

pub mod aux;
pub mod event;
pub mod pretend;
pub mod record;
pub mod ring;

pub use event::{CounterSpec, EventKind, EventTarget, PerfEvent, Rate, STACK_WORDS, SampleFields};
pub use pretend::Pretend;
pub use record::{AuxSpan, DataSource, PerfRecord, Sample};
pub use ring::Ring;
