//! Finding, preparing and starting programs, and the recordings that they leave.
//!
//! | step | where |
//! |---|---|
//! | homenode's own files | [`places`] |
//! | find a program, look at how it is linked | [`program`] |
//! | what can be loaded into it, what stands in the way | [`loadable`] |
//! | programs that make system calls past the C library | [`raw_calls`] |
//! | programs built with a sanitizer | [`sanitized`] |
//! | recorded schedules of loops, from a run to a later one | [`schedule`] |
//! | run it and wait, passing signals on | [`child`] |
//! | what share of its time it waits for input and output | `io_wait` |
//! | record it | [`mod@record`] |
//! | which rank of a job this is | [`rank`](mod@rank) |
//! | a folder for recordings that a command makes for itself | [`folder`] |

#![forbid(unsafe_code)]

pub mod child;
pub mod folder;
mod io_wait;
pub mod loadable;
pub mod places;
pub mod preload;
pub mod program;
pub mod rank;
pub mod raw_calls;
pub mod record;
pub mod sanitized;
pub mod schedule;
