//! What can go wrong with a data set, and what may be missing of one that is readable.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a data set cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
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
    /// The path does not hold a data set.
    #[error("{} is not a data set of homenode: {why}", path.display())]
    NotADataset {
        /// The path.
        path: PathBuf,
        /// What is missing or wrong.
        why: String,
    },
}

impl DatasetError {
    pub(crate) fn io(tried: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { tried, path, error }
    }
}

/// What a readable data set lacks. Whoever shows the data set says it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The recording has no end: homenode or the machine stopped before it was finished.
    CutOff,
    /// The recording says itself that it is not whole.
    Incomplete(String),
    /// A table's file is damaged from this offset on, or one chunk of it is.
    Damage {
        /// The file, relative to the data set.
        file: String,
        /// Byte at which the damage begins.
        offset: u64,
        /// What is wrong there.
        why: String,
    },
    /// A table has fewer rows than were written.
    Rows {
        /// The file, relative to the data set.
        file: String,
        /// How many are not there.
        rows: u64,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOff => f.write_str("the recording was cut off: it has no end"),
            Self::Incomplete(why) => f.write_str(why),
            Self::Damage { file, offset, why } => {
                write!(f, "{file} is damaged at byte {offset}: {why}")
            }
            Self::Rows { file, rows } => write!(f, "{rows} rows of {file} are missing"),
        }
    }
}
