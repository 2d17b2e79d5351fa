//! What a loop is known by.

use crate::space::Space;

/// Shapes that are remembered. A loop whose trip count changes with every execution has a shape for
/// each.
pub const SHAPES: usize = 1 << 12;

/// A loop as it is executed: what has to be the same for a recorded schedule to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Where the program starts the loop: a return address.
    pub site: usize,
    /// Its iterations.
    pub space: Space,
    /// The program's chunk size.
    pub chunk: u64,
    /// Threads of the team.
    pub team: u32,
}
