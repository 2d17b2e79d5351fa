//! Errors as a person reads them: what went wrong, what was tried and what the system said, what to do now.

use std::fmt;

use crate::exit::Exit;

/// An error for the terminal.
///
/// ```text
/// homenode: cannot read the recording cg.hnrec
///   tried: open cg.hnrec/meta.json: No such file or directory
///   help: 'homenode record -o cg.hnrec -- APP' makes one
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    /// What went wrong, on what. No full stop.
    pub message: String,
    /// What was tried, each with what the system said.
    pub tried: Vec<String>,
    /// What the user can do.
    pub hint: Option<String>,
    /// How homenode ends.
    pub code: Exit,
}

/// What commands return.
pub type Result<T> = std::result::Result<T, CliError>;

impl CliError {
    /// homenode itself failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), tried: Vec::new(), hint: None, code: Exit::Failed }
    }

    /// A word of the command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: Exit::Usage, ..Self::failed(message) }
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

    /// Ends with another status.
    #[must_use]
    pub fn code(mut self, code: Exit) -> Self {
        self.code = code;
        self
    }
}

impl fmt::Display for CliError {
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

impl std::error::Error for CliError {}

/// Turns any error into a [`CliError`] that says what was being done.
pub trait Context<T> {
    /// `message` is what failed, on what; the error itself becomes what was tried.
    ///
    /// # Errors
    /// The [`CliError`], when there was one.
    fn context(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::error::Error> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| {
            let mut cli = CliError::failed(message()).tried(&error);
            let mut cause = error.source();
            while let Some(c) = cause {
                cli = cli.tried(c);
                cause = c.source();
            }
            cli
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_as_message_tried_help() {
        let error = CliError::failed("cannot read x").tried("open x: not there").hint("make it");
        assert_eq!(error.to_string(), "cannot read x\n  tried: open x: not there\n  help: make it");
        assert_eq!(error.code, Exit::Failed);
        assert_eq!(CliError::usage("x").code, Exit::Usage);
    }

    #[test]
    fn context_keeps_what_the_system_said() {
        let io: std::io::Result<()> = Err(std::io::ErrorKind::NotFound.into());
        let error = io.context(|| "cannot read x".to_owned()).unwrap_err();
        assert_eq!(error.message, "cannot read x");
        assert_eq!(error.tried, ["entity not found"]);
    }
}
