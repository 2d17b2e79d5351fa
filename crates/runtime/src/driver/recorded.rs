//! Watching for a recording: also what is made while no region begins.

use homenode_model::Ns;

use super::run::Driver;
use crate::watch::Sightings;

/// Time between two looks for new objects.
const NEW: Ns = Ns(20_000_000);
/// And at least so many times what a look takes.
const RARELY: u64 = 100;

impl Driver {
    /// For a recording new objects are watched whether regions begin or not.
    pub(super) fn watch_for_recording(&mut self) {
        let now = (self.clocks.wall)();
        if self.watching.as_ref().is_none_or(|w| w.sightings.is_none() || now < w.look_new) {
            return;
        }
        let begin = (self.clocks.thread)();
        self.watch_new(true);
        // What is not there yet is looked at again and again.
        let gap = ((self.clocks.thread)() - begin).times(RARELY).max(NEW);
        if let Some(watching) = &mut self.watching {
            watching.look_new = now + gap;
        }
    }

    /// Who was seen where; `None`: it is not kept.
    pub fn sightings(&self) -> Option<&Sightings> {
        self.watching.as_ref().and_then(|w| w.sightings.as_ref())
    }
}
