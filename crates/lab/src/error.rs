//! Errors of the lab, as texts for a person.

use std::io;
use std::path::Path;

pub use homenode_error::{Error, FailureKind, Result};

/// What the user of a cache that cannot be written does.
pub const ANOTHER_CACHE: &str = "set XDG_CACHE_HOME to a folder to write in";

/// An operation on a file failed. `doing` is a verb such as "write".
pub fn of_file(doing: &str, path: &Path, e: &io::Error) -> Error {
    let error = Error::failed(format!("cannot {doing} {}", path.display())).tried(format!("{doing}: {e}"));
    if e.kind() == io::ErrorKind::StorageFull || e.kind() == io::ErrorKind::QuotaExceeded {
        error.hint("the disk is full: free some space, or set TMPDIR to a folder on another disk")
    } else {
        error
    }
}
