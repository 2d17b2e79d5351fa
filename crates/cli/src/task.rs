//! A task of a library, seen from the terminal: its lines and its progress on stderr, Ctrl-C,
//! signals for a program.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homenode_error::{Context as _, Result};
use homenode_task::{Signal, Signals, Task};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::interrupt::{Interrupt, Second};
use crate::output::say;
use crate::progress::TerminalProgress;

/// Whoever sits at the terminal.
#[derive(Clone, Debug, Default)]
pub struct Terminal {
    /// Progress and remarks are not wanted.
    pub quiet: bool,
    /// Ctrl-C.
    pub interrupt: Interrupt,
}

impl Terminal {
    /// Somebody who stops the task with Ctrl-C.
    ///
    /// # Errors
    /// The system refuses to tell of signals.
    pub fn watching(quiet: bool) -> Result<Self> {
        let interrupt = Interrupt::install(Second::Ends).context(|| "cannot watch for Ctrl-C".into())?;
        Ok(Self { quiet, interrupt })
    }
}

impl Task for Terminal {
    fn say(&self, line: &dyn Display) {
        say(line);
    }

    fn remark(&self, line: &dyn Display) {
        if !self.quiet {
            say(line);
        }
    }

    fn progress(&self, what: &str, total: Option<u64>) -> Box<dyn homenode_task::Progress> {
        Box::new(if self.quiet { TerminalProgress::hidden() } else { TerminalProgress::new(what, total) })
    }

    fn stop_asked(&self) -> bool {
        self.interrupt.asked()
    }

    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        Ok(Box::new(Passed::watch()?))
    }
}

/// Signals that must not end homenode while a program runs.
struct Passed {
    passed: [(Signal, Arc<AtomicBool>); 2],
    ids: Vec<signal_hook::SigId>,
}

impl Passed {
    fn watch() -> io::Result<Self> {
        let flag = || Arc::new(AtomicBool::new(false));
        let passed = [(Signal::Terminate, flag()), (Signal::HangUp, flag())];
        let mut ids = Vec::new();
        for (number, flag) in [(SIGTERM, Arc::clone(&passed[0].1)), (SIGHUP, Arc::clone(&passed[1].1))] {
            ids.push(signal_hook::flag::register(number, flag)?);
        }
        for number in [SIGINT, SIGQUIT] {
            ids.push(signal_hook::flag::register(number, flag())?);
        }
        Ok(Self { passed, ids })
    }
}

impl Signals for Passed {
    fn next(&mut self) -> Option<Signal> {
        self.passed.iter().find(|(_, flag)| flag.swap(false, Ordering::Relaxed)).map(|(signal, _)| *signal)
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
