//! What this machine offers, what follows from it, and what to change: `homenode doctor`.
//!
//! | step | where |
//! |---|---|
//! | trying things out, in a process of its own | [`probe`] |
//! | looking into a program | [`app`] |
//! | what follows, from plain data alone | [`judge`] |
//! | what `homenode --version` says | [`version`] |

#![forbid(unsafe_code)]

pub mod app;
pub mod judge;
mod launcher;
pub mod probe;
pub mod version;
mod wheels;
