//! Threads that can be cancelled at any instruction (`PTHREAD_CANCEL_ASYNCHRONOUS`).
//!
//! Such a thread may do nothing but compute. In an instrumented program its accesses are calls of
//! the recorder's, which must not be left in the middle. So while the recorder works for the
//! thread, cancellation waits until the end of the access ([`deferred`]). At the program's own
//! instructions it happens at once. The fast path changes only the clock and may be left anywhere.
//! For that, the recorder of such a thread keeps no shortcut
//! ([`homenode_recorder::Recorder::be_careful`]).
//!
//! In a program without such threads this costs one load.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::next::next;
use crate::thread;

/// `PTHREAD_CANCEL_DEFERRED` and `PTHREAD_CANCEL_ASYNCHRONOUS` of glibc's <pthread.h>.
const DEFERRED: i32 = 0;
const ASYNCHRONOUS: i32 = 1;

/// Whether any thread has asked for it.
static ANY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether the calling thread has asked for it.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

type Real = unsafe extern "C-unwind" fn(i32, *mut i32) -> i32;

/// Whether the calling thread can be cancelled at any instruction of the program's.
pub fn asked() -> bool {
    ANY.load(Ordering::Relaxed) && ASKED.get()
}

/// Runs `f` to its end. A thread that is cancelled meanwhile ends afterwards, through the caller's
/// frames, which must allow that (`extern "C-unwind"`).
#[inline]
pub fn deferred<R: Copy>(f: impl FnOnce() -> R) -> R {
    if ANY.load(Ordering::Relaxed) { deferred_if_asked(f) } else { f() }
}

#[cold]
fn deferred_if_asked<R: Copy>(f: impl FnOnce() -> R) -> R {
    let Some(set) = next!(pthread_setcanceltype: Real).filter(|_| ASKED.get()) else { return f() };
    let mut before = DEFERRED;
    // SAFETY: a number of the caller's own. Nothing in this frame needs a destructor.
    unsafe {
        set(DEFERRED, &raw mut before);
        let result = f();
        set(before, std::ptr::null_mut());
        result
    }
}

/// `pthread_setcanceltype`. The recorder learns of it before the call.
///
/// # Safety
/// As `pthread_setcanceltype`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_setcanceltype(kind: i32, old: *mut i32) -> i32 {
    let Some(real) = next!(pthread_setcanceltype: Real) else { return libc::EINVAL };
    if kind == ASYNCHRONOUS && !ASKED.get() {
        // Makes the recorder while the thread cannot be cancelled, not at its first access.
        thread::be_careful();
        ANY.store(true, Ordering::Relaxed);
        ASKED.set(true);
    }
    // SAFETY: the caller's arguments.
    unsafe { real(kind, old) }
}
