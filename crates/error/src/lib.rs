//! Errors as a person reads them: what went wrong, what was tried and what the system said, what to
//! do now.
//!
//! | what | where |
//! |---|---|
//! | the error and its kind | [`Error`], [`FailureKind`] |
//! | "did you mean" | [`suggest`] |
//! | sizes such as `8KiB` | [`size`] |
//! | whole numbers in groups of three digits | [`digits`] |

#![forbid(unsafe_code)]

pub mod digits;
pub mod size;
pub mod suggest;

use std::{fmt, io};

/// The kind of a failure. The command makes an exit status of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// homenode itself failed.
    Failed,
    /// What the user asked for makes no sense.
    Usage,
    /// What was done is right and not all there is.
    Partial,
    /// A program exists and cannot be run.
    CannotRun,
    /// There is no such program.
    NotFound,
    /// A signal with this number ended the work.
    Signalled(u8),
}

impl FailureKind {
    /// The kind of a failure to start a program.
    pub fn of_start(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::NotFound } else { Self::CannotRun }
    }
}

/// An error for a person.
///
/// ```text
/// homenode: cannot read the recording cg.hnrec
///   tried: open cg.hnrec/meta.json: No such file or directory
///   help: 'homenode record -o cg.hnrec -- APP' makes one
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What went wrong, on what. No full stop.
    pub message: String,
    /// What was tried, each with what the system said.
    pub tried: Vec<String>,
    /// What the user can do.
    pub hint: Option<String>,
    /// What kind of failure it is.
    pub kind: FailureKind,
}

/// What fails in a way that a person reads about.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// homenode itself failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), tried: Vec::new(), hint: None, kind: FailureKind::Failed }
    }

    /// What the user asked for makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Usage, ..Self::failed(message) }
    }

    /// Somebody asked homenode to stop.
    pub fn interrupted() -> Self {
        Self::failed("interrupted").kind(FailureKind::Partial)
    }

    /// Adds something that was tried and what came of it.
    #[must_use]
    pub fn tried(mut self, what: impl fmt::Display) -> Self {
        self.tried.push(what.to_string());
        self
    }

    /// Says what the user can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Is a failure of another kind.
    #[must_use]
    pub fn kind(mut self, kind: FailureKind) -> Self {
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
        if let Some(hint) = &self.hint {
            write!(f, "\n  help: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Turns any error into an [`Error`] that says what was being done.
pub trait Context<T> {
    /// `message` is what failed, on what; the error itself becomes what was tried.
    ///
    /// # Errors
    /// The [`Error`], when there was one.
    fn context(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::error::Error> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| {
            let mut told = Error::failed(message()).tried(&error);
            let mut cause = error.source();
            while let Some(c) = cause {
                told = told.tried(c);
                cause = c.source();
            }
            told
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_as_message_tried_help() {
        let error = Error::failed("cannot read x").tried("open x: not there").hint("make it");
        assert_eq!(error.to_string(), "cannot read x\n  tried: open x: not there\n  help: make it");
        assert_eq!(error.kind, FailureKind::Failed);
        assert_eq!(Error::usage("x").kind, FailureKind::Usage);
    }

    #[test]
    fn context_keeps_what_the_system_said() {
        let io: std::io::Result<()> = Err(std::io::ErrorKind::NotFound.into());
        let error = io.context(|| "cannot read x".to_owned()).unwrap_err();
        assert_eq!(error.message, "cannot read x");
        assert_eq!(error.tried, ["entity not found"]);
    }

    #[test]
    fn a_program_that_does_not_start_is_missing_or_cannot_run() {
        let of = |kind: io::ErrorKind| FailureKind::of_start(&kind.into());
        assert_eq!(of(io::ErrorKind::NotFound), FailureKind::NotFound);
        assert_eq!(of(io::ErrorKind::PermissionDenied), FailureKind::CannotRun);
    }
}
