//! The program's memory, and which node touches which page.
//!
//! | part | module |
//! |---|---|
//! | The program's large objects, and numbers for their pages | [`objects`], [`numbers`] |
//! | Of an object: where its pages are, what has happened to them, what homenode does | [`places`], [`history`], [`treatment`] |
//! | The best source of this machine that tells who touches what | [`choice`] |
//! | The draws of each block, until they are enough for a decision | [`draws`] |
//! | The order in which blocks have their turn | [`turns`] |
//! | Who was seen at which page, for a recording | [`sightings`] |
//! | The thread that asks for pages at times that the program does not know | [`thread`] |

pub mod choice;
pub mod draws;
pub mod history;
pub mod numbers;
pub mod objects;
pub mod places;
pub mod sightings;
pub mod thread;
pub mod treatment;
pub mod turns;

pub use choice::{ChosenSource, Wanted};
pub use draws::Draws;
pub use numbers::PageNumbers;
pub use objects::{Object, Origin, SMALLEST, WatchedObjects};
pub use sightings::Sightings;
