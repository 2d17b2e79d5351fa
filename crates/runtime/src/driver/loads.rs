//! Program files that are loaded and unloaded at run time.

use super::run::Driver;

impl Driver {
    /// Looks through files for static objects. This takes longer for larger files, and counts as
    /// homenode's own time.
    pub fn look_up<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.timed(|d, _| d.heavy(f))
    }
}
