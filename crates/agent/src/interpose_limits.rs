//! Limits of the process's memory that the program sets itself.
//!
//! Beyond such a limit no allocation works, and homenode allocates at times of its own choosing: at
//! the end of a thread, or for a report. The C library or Rust's ends the process then. So homenode
//! ends, with its report, before the program sets a limit of its address space or data.

use std::ffi::c_long;

use homenode_runtime::moving;

use crate::interpose::{front, span};
use crate::leave::leave_for_limit;

front! {
    setrlimit(of: u32, limit: *const libc::rlimit) -> i32, {
        by_limit(of, limit);
        moving::publish(&[span(limit, 1)])
    };
    setrlimit64(of: u32, limit: *const libc::rlimit) -> i32, {
        by_limit(of, limit);
        moving::publish(&[span(limit, 1)])
    };
    prlimit(pid: i32, of: u32, new: *const libc::rlimit, old: *mut libc::rlimit) -> i32, {
        by_limit_of(pid, of, new);
        moving::publish(&[span(new, 1), span(old, 1)])
    };
    prlimit64(pid: i32, of: u32, new: *const libc::rlimit, old: *mut libc::rlimit) -> i32, {
        by_limit_of(pid, of, new);
        moving::publish(&[span(new, 1), span(old, 1)])
    };
}

/// Ends homenode before a system call that sets such a limit.
pub fn by_number(number: c_long, arguments: [usize; 3]) {
    let [a, b, c] = arguments;
    match number {
        libc::SYS_setrlimit => by_limit(a as u32, b as *const _),
        libc::SYS_prlimit64 => by_limit_of(a as i32, b as u32, c as *const _),
        _ => {}
    }
}

fn by_limit_of(pid: i32, of: u32, new: *const libc::rlimit) {
    // SAFETY: no arguments.
    if pid == 0 || pid == unsafe { libc::getpid() } {
        by_limit(of, new);
    }
}

/// A limit that is only asked for changes nothing. Whether a new one is lower stands in the
/// program's memory, which may be none at all: the call will say so.
fn by_limit(of: u32, new: *const libc::rlimit) {
    if matches!(of, libc::RLIMIT_AS | libc::RLIMIT_DATA) && !new.is_null() {
        leave_for_limit();
    }
}
