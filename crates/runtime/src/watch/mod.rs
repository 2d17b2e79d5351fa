//! What the program's memory is, and which node touches what.

pub mod numbers;
pub mod objects;

pub use numbers::PageNumbers;
pub use objects::{Object, Objects, Origin};
