//! The viewer: a data set as one page, in a file or from a server on this machine.
//!
//! | module | what |
//! |---|---|
//! | [`tiles`] | pictures at several resolutions, made from the tables |
//! | [`model`] | everything that the page is told |
//! | [`findings`] | what to change in the source, in the words of `homenode explain` |
//! | [`source`] | lines of the source beside them, from a folder that the user names |
//! | [`opened`] | a recording that was read, and what the page gets of it and of another beside it |
//! | [`glance`] | a first look at a large recording, before all of it is read |
//! | [`cache`] | what was drawn, kept beside the recording |
//! | [`job`] | reads, draws, explains, and serves the page or writes it |
//! | [`live`] | a recording under way: read again and again while the program runs |
//! | [`pulse`] | what the program did until now, in a few sums |
//! | [`history`] | the way of one page of memory |
//! | [`page`] | the page: one file without a reference to any other |
//! | [`browser`] | starts the user's browser |
//! | [`server`] | the same page from a server on the loopback interface, which draws finer pictures when asked |
//!
//! The page's program is `assets/viewer.js`. `scripts/viewer.sh` makes it from `viewer/`; a build
//! of this crate needs no JavaScript tools.

#![forbid(unsafe_code)]

pub mod browser;
pub mod cache;
pub mod findings;
pub mod glance;
pub mod history;
pub mod job;
pub mod live;
pub mod model;
pub mod opened;
pub mod page;
pub mod pulse;
pub mod server;
pub mod source;
pub mod tiles;

pub use model::PageModel;
pub use opened::Opened;
pub use tiles::build::{PyramidBudget, build};
