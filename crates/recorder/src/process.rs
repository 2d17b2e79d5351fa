//! Small things of the process: errno, number, clock, waiting.

/// The calling thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: glibc's errno of this thread.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// Number of the process.
pub fn id() -> i32 {
    // SAFETY: asks.
    unsafe { libc::getpid() }
}

/// Coarse seconds since boot, from the vDSO.
pub fn seconds() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut t) };
    t.tv_sec
}

/// Waits for another thread. False if that takes so long that this thread may be the one that is
/// waited for, in a signal handler.
pub fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    (0..100_000).any(|_| {
        let so = is_so();
        if !so {
            // SAFETY: it has no arguments.
            unsafe { libc::sched_yield() };
        }
        so
    })
}
