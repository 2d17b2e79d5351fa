//! Why an export was not made.

use std::io;
use std::path::PathBuf;

/// Why an export was not made. Nothing is left of it then.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The system refused something.
    #[error("cannot {tried} {}: {error}", path.display())]
    Io {
        /// What was tried, a verb.
        tried: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Something is at the place already.
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    /// What is at the place is not an export, or holds more than one.
    #[error("{} cannot be replaced: {why}", path.display())]
    NotAnExport {
        /// The place.
        path: PathBuf,
        /// What is there.
        why: String,
    },
    /// Two members have the same host, job and rank.
    #[error("two members are both {0}")]
    Twice(String),
    /// Somebody asked to stop.
    #[error("it was stopped")]
    Stopped,
}

impl ExportError {
    pub(crate) fn io(tried: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { tried, path, error }
    }
}
