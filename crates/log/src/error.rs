//! What can be wrong with a log.

use std::path::PathBuf;

/// A log that cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
#[error("{}: at byte {offset}: {wrong}", path.display())]
pub struct LogError {
    /// The file.
    pub path: PathBuf,
    /// Byte offset in it.
    pub offset: u64,
    /// What is wrong there.
    pub wrong: Wrong,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// The system refused.
    #[error(transparent)]
    Io(std::io::Error),
    /// Something else than what belongs there.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What belongs there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The file ends inside of something.
    #[error("the file ends inside of {what}, {missing} bytes are missing")]
    Truncated {
        /// Of what.
        what: &'static str,
        /// Bytes missing.
        missing: u64,
    },
    /// The records contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}
