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

/// `PTHREAD_CANCEL_DEFERRED` of glibc's <pthread.h>.
const DEFERRED: i32 = 0;
/// `PTHREAD_CANCEL_ASYNCHRONOUS` of glibc's <pthread.h>.
pub const ASYNCHRONOUS: i32 = 1;

/// Whether any thread has asked for it.
static ANY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether the calling thread has asked for it.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// `pthread_setcanceltype`.
pub type SetCancelType = unsafe extern "C-unwind" fn(i32, *mut i32) -> i32;

/// Whether the calling thread can be cancelled at any instruction of the program's.
pub fn asked() -> bool {
    ANY.load(Ordering::Relaxed) && ASKED.get()
}

/// Notes that the calling thread can be cancelled so from now on.
pub fn ask() {
    ANY.store(true, Ordering::Relaxed);
    ASKED.set(true);
}

/// Runs `f` to its end. A thread that is cancelled meanwhile ends afterwards, through the caller's
/// frames, which must allow that (`extern "C-unwind"`).
#[inline]
pub fn deferred<R: Copy>(f: impl FnOnce() -> R) -> R {
    if ANY.load(Ordering::Relaxed) { deferred_if_asked(f) } else { f() }
}

#[cold]
fn deferred_if_asked<R: Copy>(f: impl FnOnce() -> R) -> R {
    let Some(set) = next!(pthread_setcanceltype: SetCancelType).filter(|_| ASKED.get()) else { return f() };
    let mut before = DEFERRED;
    // SAFETY: a number of the caller's own. Nothing in this frame needs a destructor.
    unsafe {
        set(DEFERRED, &raw mut before);
        let result = f();
        set(before, std::ptr::null_mut());
        result
    }
}
