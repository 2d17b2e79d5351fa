//! Front ends for programs that are built with `_FORTIFY_SOURCE`. Each function also takes the size
//! of the buffer, and ends the program if the buffer is too small.

use std::ffi::{c_char, c_void};

use crate::interpose::{buffers, path, span};

type File = libc::FILE;
type Text = *const c_char;

/// `n` bytes of the `room` at `p`.
fn bytes<T>(p: *const T, n: usize, room: usize) -> homenode_runtime::moving::Span {
    span(p.cast::<u8>(), n.min(room))
}

buffers! {
    __read_chk(fd: i32, p: *mut c_void, n: usize, room: usize) -> isize, [bytes(p, n, room)];
    __pread_chk(fd: i32, p: *mut c_void, n: usize, at: i64, room: usize) -> isize, [bytes(p, n, room)];
    __pread64_chk(fd: i32, p: *mut c_void, n: usize, at: i64, room: usize) -> isize, [bytes(p, n, room)];
    __recv_chk(fd: i32, p: *mut c_void, n: usize, room: usize, flags: i32) -> isize, [bytes(p, n, room)];
    __recvfrom_chk(fd: i32, p: *mut c_void, n: usize, room: usize, flags: i32, from: *mut libc::sockaddr,
        length: *mut libc::socklen_t) -> isize, [bytes(p, n, room), span(from, 8), span(length, 1)];
    __fread_chk(p: *mut c_void, room: usize, size: usize, n: usize, file: *mut File) -> usize,
        [bytes(p, size.saturating_mul(n), room)];
    __fread_unlocked_chk(p: *mut c_void, room: usize, size: usize, n: usize, file: *mut File) -> usize,
        [bytes(p, size.saturating_mul(n), room)];
    __fgets_chk(p: *mut c_char, room: usize, n: i32, file: *mut File) -> *mut c_char,
        [bytes(p, n.max(0) as usize, room)];
    __fgets_unlocked_chk(p: *mut c_char, room: usize, n: i32, file: *mut File) -> *mut c_char,
        [bytes(p, n.max(0) as usize, room)];
    __getcwd_chk(p: *mut c_char, n: usize, room: usize) -> *mut c_char,
        [bytes(p, if p.is_null() { 0 } else { n }, room)];
    __getwd_chk(p: *mut c_char, room: usize) -> *mut c_char, [bytes(p, libc::PATH_MAX as usize, room)];
    __getgroups_chk(n: i32, p: *mut libc::gid_t, room: usize) -> i32,
        [bytes(p, span(p, n.max(0) as usize).len(), room)];
    __poll_chk(p: *mut libc::pollfd, n: libc::nfds_t, wait: i32, room: usize) -> i32,
        [bytes(p, span(p, n as usize).len(), room)];
    __ttyname_r_chk(fd: i32, p: *mut c_char, n: usize, room: usize) -> i32, [bytes(p, n, room)];
    __ptsname_r_chk(fd: i32, p: *mut c_char, n: usize, room: usize) -> i32, [bytes(p, n, room)];
}

buffers! {
    __readlink_chk(name: Text, p: *mut c_char, n: usize, room: usize) -> isize,
        [path(name), bytes(p, n, room)];
    __readlinkat_chk(at: i32, name: Text, p: *mut c_char, n: usize, room: usize) -> isize,
        [path(name), bytes(p, n, room)];
    __realpath_chk(name: Text, p: *mut c_char, room: usize) -> *mut c_char,
        [path(name), if p.is_null() { homenode_runtime::moving::Span::EMPTY } else { bytes(p, libc::PATH_MAX as usize, room) }];
}
