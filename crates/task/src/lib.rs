//! How a long task talks to whoever started it: progress, lines for a person, the wish to stop,
//! signals for a program.
//!
//! A library takes a [`Task`] and knows neither terminal nor signal handlers; the command
//! implements it.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::io;

/// Who started a task and waits for it.
pub trait Task {
    /// Says one line.
    fn say(&self, line: &dyn Display);

    /// Says one line that a user who asked for quiet does without.
    fn remark(&self, line: &dyn Display);

    /// Begins to show progress. `what` reads as in "recording nas-cg"; `total` is in whatever
    /// [`Progress::advance`] counts, if it is known.
    fn progress(&self, what: &str, total: Option<u64>) -> Box<dyn Progress>;

    /// Whether somebody asked to stop. Long loops poll it, and stop with what they have.
    fn stop_asked(&self) -> bool;

    /// Takes over the signals that belong to a program which now starts, until the value is
    /// dropped.
    ///
    /// # Errors
    /// What the system said.
    fn signals(&self) -> io::Result<Box<dyn Signals>>;
}

/// Progress of one piece of work.
pub trait Progress {
    /// `more` is done. Cheap, and cheaper still when called every millisecond rather than every
    /// microsecond.
    fn advance(&mut self, more: u64);

    /// Ends it.
    fn finish(self: Box<Self>);
}

/// A signal that homenode passes on to the program that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
}

/// Signals that must not end homenode while a program runs.
pub trait Signals {
    /// The next one that arrived here and is to be passed on.
    fn next(&mut self) -> Option<Signal>;
}

/// Nobody waits: nothing is shown, nothing stops the task. For tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unattended;

impl Task for Unattended {
    fn say(&self, _: &dyn Display) {}
    fn remark(&self, _: &dyn Display) {}
    fn progress(&self, _: &str, _: Option<u64>) -> Box<dyn Progress> {
        Box::new(Self)
    }
    fn stop_asked(&self) -> bool {
        false
    }
    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        Ok(Box::new(Self))
    }
}

impl Progress for Unattended {
    fn advance(&mut self, _: u64) {}
    fn finish(self: Box<Self>) {}
}

impl Signals for Unattended {
    fn next(&mut self) -> Option<Signal> {
        None
    }
}
