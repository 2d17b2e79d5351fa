//! The viewer: a data set as one page, in a file or from a server on this machine.
//!
//! | module | what |
//! |---|---|
//! | [`tiles`] | pictures at several resolutions, made from the tables |
//! | [`model`] | everything that the page is told |
//! | [`history`] | the way of one page of memory |
//! | [`page`] | the page: one file without a reference to any other |
//! | [`server`] | the same page from a server on the loopback interface, which draws finer pictures when asked |
//!
//! The page's program is `assets/viewer.js`. `scripts/viewer.sh` makes it from `viewer/`; a build of this
//! crate needs no JavaScript tools.

#![forbid(unsafe_code)]

pub mod history;
pub mod model;
pub mod page;
pub mod server;
pub mod tiles;

pub use model::Model;
pub use tiles::build::{Budget, build};
