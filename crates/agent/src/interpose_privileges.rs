//! Changes of the process's identity and privileges.
//!
//! The C library makes such a change in all threads, and ends the process if one thread cannot
//! follow. The kernel refuses some changes if there is more than one thread. So homenode's own
//! threads end before the change.

use std::ffi::{c_char, c_int, c_long, c_void};

use homenode_runtime::moving;

use crate::interpose::{buffers, front, span};
use crate::leave::{leave_if_threads, thread_exits};

front! {
    setuid(user: u32) -> i32, leave_if_threads();
    seteuid(user: u32) -> i32, leave_if_threads();
    setreuid(real: u32, effective: u32) -> i32, leave_if_threads();
    setresuid(real: u32, effective: u32, saved: u32) -> i32, leave_if_threads();
    setfsuid(user: u32) -> i32, leave_if_threads();
    setgid(group: u32) -> i32, leave_if_threads();
    setegid(group: u32) -> i32, leave_if_threads();
    setregid(real: u32, effective: u32) -> i32, leave_if_threads();
    setresgid(real: u32, effective: u32, saved: u32) -> i32, leave_if_threads();
    setfsgid(group: u32) -> i32, leave_if_threads();
    setgroups(n: usize, p: *const u32) -> i32, {
        leave_if_threads();
        moving::publish(&[span(p, n)])
    };
    initgroups(user: *const c_char, group: u32) -> i32, leave_if_threads();
    capset(header: *mut c_void, data: *const c_void) -> i32, {
        leave_if_threads();
        moving::publish(&[span(header, CAPABILITIES), span(data, CAPABILITIES)])
    };
    unshare(flags: c_int) -> i32, leave_if_threads();
    setns(fd: c_int, kind: c_int) -> i32, leave_if_threads();
}

/// Bytes of the longer of the two structures of `capset`.
const CAPABILITIES: usize = 24;

buffers! {
    capget(header: *mut c_void, data: *mut c_void) -> i32, [span(header, CAPABILITIES), span(data, CAPABILITIES)];
}

/// Ends homenode's threads before an option of `prctl` that applies to one thread and must hold for
/// the whole process.
pub fn by_prctl(what: i32) {
    if matches!(
        what,
        libc::PR_SET_NO_NEW_PRIVS
            | libc::PR_CAPBSET_DROP
            | libc::PR_CAP_AMBIENT
            | libc::PR_SET_SECUREBITS
            | libc::PR_SET_KEEPCAPS
    ) {
        leave_if_threads();
    }
}

/// Ends homenode's threads before a system call that makes such a change.
pub fn by_number(number: c_long) {
    if number == libc::SYS_exit {
        thread_exits();
    }
    if matches!(
        number,
        libc::SYS_setuid
            | libc::SYS_setreuid
            | libc::SYS_setresuid
            | libc::SYS_setfsuid
            | libc::SYS_setgid
            | libc::SYS_setregid
            | libc::SYS_setresgid
            | libc::SYS_setfsgid
            | libc::SYS_setgroups
            | libc::SYS_capset
            | libc::SYS_unshare
            | libc::SYS_setns
            | libc::SYS_landlock_restrict_self
    ) {
        leave_if_threads();
    }
}
