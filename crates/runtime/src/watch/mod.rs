//! What the program's memory is, and which node touches what.
//!
//! | what | where |
//! |---|---|
//! | the program's large objects, and numbers for their pages | [`objects`], [`numbers`] |
//! | what this machine has to tell who touches what: the best of it | [`choice`] |
//! | what was told of each block, until it is enough to say whose it is | [`draws`] |
//! | who was seen at which page, for a recording | [`sightings`] |
//! | the thread that asks at times that the program does not know | [`thread`] |

pub mod choice;
pub mod draws;
pub mod numbers;
pub mod objects;
pub mod sightings;
pub mod thread;

pub use choice::{Chosen, Wanted};
pub use draws::Draws;
pub use numbers::PageNumbers;
pub use objects::{Object, Objects, Origin, SMALLEST};
pub use sightings::Sightings;
