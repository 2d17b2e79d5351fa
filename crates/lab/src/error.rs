//! What goes wrong in the lab, as a person reads it.

use std::fmt;
use std::io;
use std::path::Path;

use homenode_error::Failure;

/// What kind of failure it is, for the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The lab failed.
    Failed,
    /// What was asked for makes no sense.
    Usage,
    /// The program is there and cannot be run.
    CannotRun,
    /// There is no such program.
    NotFound,
    /// Somebody sent this signal.
    Signalled(i32),
}

/// A failure: what, what was tried and what the system said, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What went wrong, on what. No full stop.
    pub message: String,
    /// What was tried, each with what the system said.
    pub tried: Vec<String>,
    /// What the user can do.
    pub help: Option<String>,
    /// For the exit status.
    pub kind: Kind,
}

/// What the lab's functions return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The lab failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), tried: Vec::new(), help: None, kind: Kind::Failed }
    }

    /// What was asked for makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, ..Self::failed(message) }
    }

    /// An operation on a file failed: `doing` reads as in "write".
    pub fn io(doing: &str, path: &Path, e: &io::Error) -> Self {
        let error = Self::failed(format!("cannot {doing} {}", path.display())).tried(format!("{doing}: {e}"));
        if e.kind() == io::ErrorKind::StorageFull || e.kind() == io::ErrorKind::QuotaExceeded {
            error.help("the disk is full: free some space, or set TMPDIR to a folder on another disk")
        } else {
            error
        }
    }

    /// Adds something that was tried and what came of it.
    #[must_use]
    pub fn tried(mut self, what: impl Into<String>) -> Self {
        self.tried.push(what.into());
        self
    }

    /// Says what the user can do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Changes the kind.
    #[must_use]
    pub const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for tried in &self.tried {
            write!(f, "\n  tried: {tried}")?;
        }
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for homenode_error::Error {
    fn from(e: Error) -> Self {
        let kind = match e.kind {
            Kind::Failed => Failure::Failed,
            Kind::Usage => Failure::Usage,
            Kind::CannotRun => Failure::CannotRun,
            Kind::NotFound => Failure::NotFound,
            Kind::Signalled(signal) => Failure::Signalled(signal as u8),
        };
        Self { message: e.message, tried: e.tried, hint: e.help, kind }
    }
}
