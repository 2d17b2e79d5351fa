//! What every command uses.

use std::path::PathBuf;

/// What a command returns: nothing, or why it failed.
pub type Outcome = Result<(), String>;

/// The repository's root.
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// Refuses arguments.
pub fn none(args: &[String]) -> Outcome {
    if args.is_empty() { Ok(()) } else { Err(format!("takes no arguments, got '{}'", args.join(" "))) }
}
