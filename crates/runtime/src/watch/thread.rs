//! The thread that looks at what was told, and asks anew, at times that have nothing to do with the
//! program's phases.
//!
//! Who asks at the start of a region is answered by who comes first in that region, again and
//! again; who asks at random times draws a fair sample.

use homenode_model::Ns;
use homenode_sys::own_threads;

use crate::own_thread;

/// Shortest sleep: more often would cost more than it tells.
const SHORTEST: Ns = Ns(1_000_000);
/// Longest sleep: rings must not run over.
const LONGEST: Ns = Ns(100_000_000);

/// Starts it: it calls `tick`, sleeps for as long as that says, and ends when it says nothing, or
/// has to. `false`: no thread could be made.
pub fn start(tick: fn() -> Option<Ns>) -> bool {
    let run = move || {
        while tick().is_some_and(|sleep| own_threads::sleep(sleep.clamp(SHORTEST, LONGEST))) {}
    };
    own_thread::start("homenode-watch", 256 << 10, run).is_ok()
}
