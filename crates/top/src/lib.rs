//! A run under way in the terminal: nodes, remote share, objects by remote traffic, moves now, and
//! homenode's own cost. The numbers and words are those of the page that `homenode view --live`
//! serves.
//!
//! | step | module |
//! |---|---|
//! | the recording that a process writes, or what the kernel says of the process | [`process`] |
//! | whether a process lives | [`alive`] |
//! | read a recording again and again while it grows | [`watch`] |
//! | what is shown at one moment, as data and as JSON | [`glance`] |
//! | that as lines for a terminal of a given width | [`lines`] |
//! | the terminal: raw keys, the other screen, everything as it was at the end | [`screen`] |
//! | keys, lines and screen together; a table a second where there is no terminal | [`display`] |
//! | the program's own output while its terminal is in use | [`output`] |

#![forbid(unsafe_code)]

pub mod alive;
pub mod display;
pub mod glance;
pub mod lines;
pub mod output;
pub mod process;
pub mod screen;
pub mod watch;

pub use display::{Display, DisplayForm, End};
pub use glance::{Glance, State};
pub use watch::{SharedPicture, Watch};
