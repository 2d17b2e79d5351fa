//! The one lock for arming and disarming.

use std::sync::atomic::{AtomicU32, Ordering};

use homenode_sys::call;
use homenode_sys::signal::HeldSignals;

use super::running_stack;

/// Held for arming, disarming and settling; never by handlers.
static LOCK: AtomicU32 = AtomicU32::new(0);

/// Whether nobody has the lock.
pub fn nobody_arms() -> bool {
    LOCK.load(Ordering::SeqCst) == 0
}

/// The lock, with signals held back: no handler of this thread can wait for the code that it
/// interrupted.
pub struct Locked {
    _signals: HeldSignals,
}

impl Locked {
    /// Waits for the lock. `None` if this thread has it already (a fork handler within a held
    /// fork).
    pub fn new() -> Option<Self> {
        Self::unless(|| false)
    }

    /// As [`Self::new`], but stops waiting once `done`: the owner may be forking, with the
    /// program's allocator waiting for the caller.
    pub fn unless(done: impl Fn() -> bool) -> Option<Self> {
        running_stack::stand();
        let (signals, me) = (HeldSignals::new(), call::thread_id() as u32);
        let mut wait = call::Wait::default();
        loop {
            match LOCK.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Some(Self { _signals: signals }),
                Err(owner) if owner == me || done() => return None,
                Err(_) => wait.a_moment(),
            }
        }
    }

    /// In a forked child, whose parent held it.
    pub fn break_in_child() {
        LOCK.store(0, Ordering::SeqCst);
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        LOCK.store(0, Ordering::SeqCst);
    }
}
