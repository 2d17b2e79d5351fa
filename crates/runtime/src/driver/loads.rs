//! Files that come and go while the program runs.

use super::run::Driver;

impl Driver {
    /// Looks through files for objects: it takes as long as they are large, and counts as
    /// homenode's own time.
    pub fn look_up<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.timed(|d, _| d.heavy(f))
    }
}
