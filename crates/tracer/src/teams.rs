//! Teams of OpenMP: their numbers, and which front end reports them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static INSTANCES: AtomicU64 = AtomicU64::new(0);
static LIBOMP: AtomicBool = AtomicBool::new(false);

/// A number for a new team.
pub fn new_instance() -> u64 {
    INSTANCES.fetch_add(1, Ordering::Relaxed) + 1
}

/// libomp reports its teams from now on.
pub fn leave_to_libomp() {
    LIBOMP.store(true, Ordering::Relaxed);
}

/// Whether libomp reports its teams, so that no other front end must.
#[inline]
pub fn are_libomps() -> bool {
    LIBOMP.load(Ordering::Relaxed)
}
