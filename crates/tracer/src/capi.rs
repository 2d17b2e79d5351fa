//! The functions of `homenode.h`, by which the program makes marks, and the functions that the
//! sanitiser's instrumentation calls besides accesses.

use std::ffi::{c_char, c_void};

use homenode_log::Mark;
use homenode_model::code::{self, HN_EINVAL, HN_IDLE, HN_OK};

use homenode_recorder::state;

use crate::{emulator, lab, thread};

/// Round `number` of the outer loop begins.
#[unsafe(no_mangle)]
pub extern "C" fn hn_iteration(number: u32) -> i32 {
    if emulator::marks_alone() {
        lab::interval();
    }
    told(Mark::Iteration { number: number.into(), order: 0 })
}

/// The range goes to whoever touches it next.
#[unsafe(no_mangle)]
pub extern "C" fn hn_next_touch(address: *const c_void, length: usize) -> i32 {
    if address.is_null() || (address as usize).checked_add(length).is_none() {
        return HN_EINVAL;
    }
    told(Mark::NextTouch { address: address as u64, bytes: length as u64, order: 0 })
}

fn told(mark: Mark) -> i32 {
    let mark = || match mark {
        Mark::Iteration { number, .. } => Mark::Iteration { number, order: state::order() },
        Mark::NextTouch { address, bytes, .. } => Mark::NextTouch { address, bytes, order: state::order() },
        other => other,
    };
    // The filter is emptied: the next access to a line is a touch again.
    let noted = thread::with(|t| {
        t.mark(&mark());
        t.synchronise();
    });
    if noted.is_some() { HN_OK } else { HN_IDLE }
}

/// Text of a return code.
#[unsafe(no_mangle)]
pub extern "C" fn hn_message(code: i32) -> *const c_char {
    code::message(code).as_ptr()
}

/// Called by each instrumented object's constructor.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {}
/// Not asked for by the wrappers; there for objects compiled otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_func_entry(_pc: *const c_void) {}
/// As [`__tsan_func_entry`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_func_exit() {}
/// As [`__tsan_func_entry`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_begin() {}
/// As [`__tsan_func_entry`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_end() {}

macro_rules! annotations {
    ($($name:ident)*) => { $(
        /// An annotation for the sanitiser, of programs that look for it.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {}
    )* };
}
annotations!(__tsan_acquire __tsan_release __tsan_mutex_create __tsan_mutex_destroy __tsan_mutex_pre_lock
    __tsan_mutex_post_lock __tsan_mutex_pre_unlock __tsan_mutex_post_unlock AnnotateHappensBefore
    AnnotateHappensAfter AnnotateIgnoreReadsBegin AnnotateIgnoreReadsEnd AnnotateIgnoreWritesBegin
    AnnotateIgnoreWritesEnd);
