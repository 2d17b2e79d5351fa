//! The process's first thread.

use std::ffi::c_void;

use homenode_runtime::own_thread::thread_id;

/// A value for the C library that is not null.
static WATCHED: u8 = 0;

/// Whether the calling thread is the process's first. (`gettid` of the C library is younger than
/// the oldest glibc that homenode runs with.)
pub fn is_calling() -> bool {
    // SAFETY: no arguments.
    thread_id() == unsafe { libc::getpid() }
}

/// Has the C library call `ends` when the calling thread ends by `pthread_exit` or by cancellation,
/// but not when it returns. The calling thread is the first one of the process, or represents it.
pub fn at_its_end(ends: unsafe extern "C" fn(*mut c_void)) {
    let mut key = 0;
    // SAFETY: a function of this library, which is never unloaded; any value but null will do.
    unsafe {
        if libc::pthread_key_create(&raw mut key, Some(ends)) == 0 {
            libc::pthread_setspecific(key, (&raw const WATCHED).cast());
        }
    }
}
