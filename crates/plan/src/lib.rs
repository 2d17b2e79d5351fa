//! Plans: a home for each page of a program's objects, worked out from a recording for a later run.
//!
//! | what | where |
//! |---|---|
//! | the file | [`mod@file`] |
//! | the best plan of a recording, and with which schedule | [`choose`] |
//! | from a simulation's homes by page to homes by object | [`make`] |
//! | from a plan to what the library in the program needs | [`apply`] |
//! | threads of the run and of the plan | [`threads`] |

#![forbid(unsafe_code)]

pub mod apply;
pub mod choose;
pub mod file;
pub mod make;
pub mod threads;
