//! The calls on the calling thread's stack. Their return addresses tell the source lines of an
//! allocation.

use std::ffi::c_void;

use homenode_runtime::watch::objects::FRAMES;

use crate::modules;

unsafe extern "C" {
    fn _Unwind_Backtrace(f: extern "C" fn(*mut c_void, *mut c_void) -> i32, data: *mut c_void) -> i32;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

struct Walk {
    own: (usize, usize),
    frames: [u64; FRAMES],
    found: usize,
    left: usize,
}

extern "C" fn frame(context: *mut c_void, walk: *mut c_void) -> i32 {
    const GO_ON: i32 = 0;
    const STOP: i32 = 4; // _URC_NORMAL_STOP
    // SAFETY: the unwinder's own context; the walk of `callers`, whose frame lives on.
    let (walk, pc) = unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(context)) };
    if !(walk.own.0..walk.own.1).contains(&pc) {
        walk.frames[walk.found] = pc as u64;
        walk.found += 1;
    }
    walk.left -= 1;
    if walk.found == FRAMES || walk.left == 0 || pc == 0 { STOP } else { GO_ON }
}

/// Return addresses of the calls that led here, without homenode's own.
pub fn callers() -> [u64; FRAMES] {
    let mut walk = Walk { own: modules::own_code(), frames: [0; FRAMES], found: 0, left: 32 };
    // SAFETY: the unwinder walks this thread's stack and calls `frame` with our walk.
    unsafe { _Unwind_Backtrace(frame, (&raw mut walk).cast()) };
    walk.frames
}
