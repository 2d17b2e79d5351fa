//! The live runtime: what homenode does inside a running program.
//!
//! | task | module |
//! |---|---|
//! | Which region runs, and which regions make an iteration | [`regions`] |
//! | Which node touches which page | [`watch`] |
//! | Moving pages: next touch, moves by the kernel, pretended nodes | [`moving`] |
//! | Between policy and pages: events to the policy, its decisions to [`moving`] | [`driver`] |
//! | The budget of own time, and whether moving pays | [`guard`] |
//! | Facts for the report at the end | [`report`] |
//! | The nodes that this process may use | [`nodes`] |
//! | homenode's own threads | [`own_thread`] |
//! | The stream of a recording | [`stream`] |
//! | What the program places itself, by the C API | [`placing`] |
//!
//! This crate runs in somebody else's process. It never panics across the program's border and
//! never allocates in a signal handler. It keeps `errno`. A failure turns homenode off, never the
//! program.

pub mod driver;
pub mod guard;
pub mod moving;
pub mod nodes;
pub mod own_thread;
pub mod placing;
pub mod regions;
pub mod report;
pub mod stream;
pub mod watch;
