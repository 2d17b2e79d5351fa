//! Ctrl-C. The first one asks homenode to stop. The second one may end it at once ([`Second`]).
//!
//! A handler does nothing but set a flag. Long loops poll [`Interrupt::asked`] and stop with the
//! results so far ([`crate::exit::Exit::Partial`]).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What the second Ctrl-C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// Ends homenode at once, with the status of a program ended by that signal.
    Ends,
    /// Does nothing: the program gets the signal, and homenode waits for the program.
    IsThePrograms,
}

/// A flag that Ctrl-C (or SIGTERM) sets. Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that no signal sets: for tests, and for callers that stop for their own reasons.
    pub fn never() -> Self {
        Self::default()
    }

    /// Takes over SIGINT and SIGTERM. Programs started later get the default handling back by
    /// `exec`.
    ///
    /// # Errors
    /// The system does not take the handler.
    pub fn install(second: Second) -> io::Result<Self> {
        let this = Self::default();
        for signal in [SIGINT, SIGTERM] {
            if second == Second::Ends {
                // Runs before the flag is set below: hence only from the second signal on.
                flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&this.0))?;
            }
            flag::register(signal, Arc::clone(&this.0))?;
        }
        Ok(this)
    }

    /// Whether somebody asked homenode to stop.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks homenode to stop.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_sets_the_flag_of_all_clones() {
        let flag = Interrupt::install(Second::IsThePrograms).unwrap();
        let clone = flag.clone();
        assert!(!clone.asked());
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(clone.asked());
    }

    #[test]
    fn it_can_be_asked_without_a_signal() {
        let flag = Interrupt::never();
        flag.clone().ask();
        assert!(flag.asked());
    }
}
