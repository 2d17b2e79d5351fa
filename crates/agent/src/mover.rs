//! The mover of this process.

use homenode_runtime::driver::{Mover, Settings};

/// Makes it, for real or pretended nodes.
///
/// # Errors
/// There is nothing to move to.
pub fn make(settings: &Settings) -> Result<Box<dyn Mover>, String> {
    homenode_runtime::moving::make(settings)
}
