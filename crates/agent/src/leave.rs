//! homenode ends before the program does.
//!
//! A program can do some things only in a process without other threads; beside a thread of
//! homenode's they would fail or hang. Its first thread ends and the others go on, it changes its
//! user or its name spaces, it gives up privileges, or it limits its memory. Before such a call,
//! homenode puts all memory in place, writes the report, and ends its own threads. Afterwards the
//! program runs as without homenode.

use std::ffi::c_void;

use homenode_runtime::moving;
use homenode_runtime::own_thread::own_threads;

use crate::{finish, first_thread, state};

/// Ends homenode for good. `why`: what the program is about to do, for the report.
fn leave(why: &str) {
    if state::inside() || !state::is_own_process() {
        return;
    }
    state::with(|d| d.note(format!("it ended before the program did, for {why}")));
    finish::stop();
    state::guarded(moving::leave);
}

/// As [`leave`], but only if a thread of homenode's runs. Without one, nothing is in the program's
/// way, and homenode goes on.
pub fn leave_if_threads() {
    if own_threads::any() {
        leave("the program changed its privileges");
    }
}

/// The program is about to set a limit of its memory.
pub fn leave_for_limit() {
    leave("the program limited its memory");
}

/// The calling thread ends past the C library.
pub fn thread_exits() {
    if first_thread::is_calling() {
        leave(FIRST_THREAD);
    }
}

const FIRST_THREAD: &str = "the program's first thread ended";

/// The first thread ends through the C library ([`first_thread::at_its_end`]).
pub unsafe extern "C" fn first_thread_ends(_: *mut c_void) {
    leave(FIRST_THREAD);
}
