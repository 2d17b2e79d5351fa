//! The mover of this process.

use homenode_runtime::driver::{Live, Mover, Settings};

/// Makes it, for real or pretended nodes.
///
/// # Errors
/// There is nothing to move to.
pub fn make(settings: &Settings) -> Result<Box<dyn Mover>, String> {
    if settings.machine.nodes() < 2 {
        return Err("this machine has one node: nothing to do".into());
    }
    Ok(Box::new(Live::start(settings)))
}
