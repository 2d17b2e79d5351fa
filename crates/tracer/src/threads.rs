//! Threads: who creates whom, who waits for whose end, and who can be cancelled at any instruction.
//! Interposed for the whole process, because C++ and OpenMP libraries create their threads
//! themselves.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use homenode_log::Mark;
use homenode_recorder::{process, state};

use crate::cancel::{ASYNCHRONOUS, SetCancelType};
use crate::next::next;
use crate::tls::tls;
use crate::{cancel, thread};

type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> i32;

struct Child {
    start: Start,
    arg: *mut c_void,
    id: u64,
}

/// `pthread_t` and number of threads that may still be joined.
static NAMES: [(AtomicU64, AtomicU64); 1024] = [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 1024];
static IDS: AtomicU64 = AtomicU64::new(0);

unsafe extern "C-unwind" fn run(child: *mut c_void) -> *mut c_void {
    // Nothing that needs a destructor is left in this frame: `pthread_exit` and cancellation unwind
    // through it.
    // SAFETY: made by `pthread_create` below for this thread alone.
    let Child { start, arg, id } = unsafe { *Box::from_raw(child.cast::<Child>()) };
    // SAFETY: this thread's block.
    unsafe { (*tls()).id = id };
    thread::with(|_| ());
    // SAFETY: the program's own function and argument.
    unsafe { start(arg) }
}

/// `pthread_create`.
///
/// # Safety
/// As `pthread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    out: *mut libc::pthread_t,
    attr: *const libc::pthread_attr_t,
    start: Start,
    arg: *mut c_void,
) -> i32 {
    let Some(real) = next!(pthread_create: Create) else { return libc::EAGAIN };
    if !state::recording() {
        // SAFETY: the caller's arguments.
        return unsafe { real(out, attr, start, arg) };
    }
    let errno = process::errno();
    let id = IDS.fetch_add(1, Ordering::Relaxed) + 1;
    thread::mark(|| Mark::ThreadCreate { id });
    process::set_errno(errno);
    let child = Box::into_raw(Box::new(Child { start, arg, id }));
    // SAFETY: the caller's arguments, and a start function that takes the child over.
    unsafe {
        let code = real(out, attr, run, child.cast());
        if code != 0 {
            drop(Box::from_raw(child));
            return code;
        }
        if let Some(place) = NAMES.iter().find(|(name, _)| name.load(Ordering::Relaxed) == 0) {
            place.1.store(id, Ordering::Relaxed);
            place.0.store(*out, Ordering::Release);
        }
        code
    }
}

/// `pthread_join`.
///
/// # Safety
/// As `pthread_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_join(name: libc::pthread_t, out: *mut *mut c_void) -> i32 {
    type Join = unsafe extern "C-unwind" fn(libc::pthread_t, *mut *mut c_void) -> i32;
    let Some(real) = next!(pthread_join: Join) else { return libc::EINVAL };
    let place = NAMES.iter().find(|(n, _)| n.load(Ordering::Acquire) == name);
    let id = place.map(|p| p.1.load(Ordering::Relaxed));
    // SAFETY: the caller's arguments.
    let code = unsafe { real(name, out) };
    if let (0, Some(id), Some(place)) = (code, id, place) {
        place.0.store(0, Ordering::Release);
        thread::with(|t| {
            t.mark(&Mark::ThreadJoin { id });
            t.synchronise();
        });
    }
    code
}

/// `pthread_setcanceltype`. The recorder learns of it before the call.
///
/// # Safety
/// As `pthread_setcanceltype`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_setcanceltype(kind: i32, old: *mut i32) -> i32 {
    let Some(real) = next!(pthread_setcanceltype: SetCancelType) else { return libc::EINVAL };
    if kind == ASYNCHRONOUS && !cancel::asked() {
        // Makes the recorder while the thread cannot be cancelled, not at its first access.
        thread::be_careful();
        cancel::ask();
    }
    // SAFETY: the caller's arguments.
    unsafe { real(kind, old) }
}
