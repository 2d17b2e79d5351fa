//! Files by their paths: the kernel reads the path, and writes what it knows of the file.
//!
//! Paths of interpreters lie in the same large blocks as their data.

use std::ffi::{CStr, c_char, c_void};

use homenode_runtime::moving::{self, InFlight};

use crate::interpose::{buffers, front, span, text};

type Stat = *mut libc::stat;
type Stat64 = *mut libc::stat64;

buffers! {
    // SAFETY of all: the caller's strings.
    stat(path: *const c_char, out: Stat) -> i32, [unsafe { text(path) }, span(out, 1)];
    stat64(path: *const c_char, out: Stat64) -> i32, [unsafe { text(path) }, span(out, 1)];
    lstat(path: *const c_char, out: Stat) -> i32, [unsafe { text(path) }, span(out, 1)];
    lstat64(path: *const c_char, out: Stat64) -> i32, [unsafe { text(path) }, span(out, 1)];
    fstat(fd: i32, out: Stat) -> i32, [span(out, 1)];
    fstat64(fd: i32, out: Stat64) -> i32, [span(out, 1)];
    fstatat(at: i32, path: *const c_char, out: Stat, flags: i32) -> i32, [unsafe { text(path) }, span(out, 1)];
    fstatat64(at: i32, path: *const c_char, out: Stat64, flags: i32) -> i32, [unsafe { text(path) }, span(out, 1)];
    statx(at: i32, path: *const c_char, flags: i32, mask: u32, out: *mut libc::statx) -> i32,
        [unsafe { text(path) }, span(out, 1)];
    statfs(path: *const c_char, out: *mut libc::statfs) -> i32, [unsafe { text(path) }, span(out, 1)];
    statvfs(path: *const c_char, out: *mut libc::statvfs) -> i32, [unsafe { text(path) }, span(out, 1)];
    statfs64(path: *const c_char, out: *mut libc::statfs64) -> i32, [unsafe { text(path) }, span(out, 1)];
    statvfs64(path: *const c_char, out: *mut libc::statvfs64) -> i32, [unsafe { text(path) }, span(out, 1)];
    fstatfs(fd: i32, out: *mut libc::statfs) -> i32, [span(out, 1)];
    fstatfs64(fd: i32, out: *mut libc::statfs64) -> i32, [span(out, 1)];
    access(path: *const c_char, mode: i32) -> i32, [unsafe { text(path) }];
    faccessat(at: i32, path: *const c_char, mode: i32, flags: i32) -> i32, [unsafe { text(path) }];
    readlink(path: *const c_char, out: *mut c_char, n: usize) -> isize, [unsafe { text(path) }, span(out, n)];
    readlinkat(at: i32, path: *const c_char, out: *mut c_char, n: usize) -> isize,
        [unsafe { text(path) }, span(out, n)];
    unlink(path: *const c_char) -> i32, [unsafe { text(path) }];
    unlinkat(at: i32, path: *const c_char, flags: i32) -> i32, [unsafe { text(path) }];
    truncate(path: *const c_char, length: i64) -> i32, [unsafe { text(path) }];
    truncate64(path: *const c_char, length: i64) -> i32, [unsafe { text(path) }];
    rmdir(path: *const c_char) -> i32, [unsafe { text(path) }];
    chdir(path: *const c_char) -> i32, [unsafe { text(path) }];
    mkdir(path: *const c_char, mode: u32) -> i32, [unsafe { text(path) }];
    mkdirat(at: i32, path: *const c_char, mode: u32) -> i32, [unsafe { text(path) }];
    chmod(path: *const c_char, mode: u32) -> i32, [unsafe { text(path) }];
    rename(from: *const c_char, to: *const c_char) -> i32, [unsafe { text(from) }, unsafe { text(to) }];
    link(from: *const c_char, to: *const c_char) -> i32, [unsafe { text(from) }, unsafe { text(to) }];
    symlink(from: *const c_char, to: *const c_char) -> i32, [unsafe { text(from) }, unsafe { text(to) }];
    renameat(at: i32, from: *const c_char, to_at: i32, to: *const c_char) -> i32,
        [unsafe { text(from) }, unsafe { text(to) }];
    renameat2(at: i32, from: *const c_char, to_at: i32, to: *const c_char, flags: u32) -> i32,
        [unsafe { text(from) }, unsafe { text(to) }];
    linkat(at: i32, from: *const c_char, to_at: i32, to: *const c_char, flags: i32) -> i32,
        [unsafe { text(from) }, unsafe { text(to) }];
    symlinkat(from: *const c_char, to_at: i32, to: *const c_char) -> i32,
        [unsafe { text(from) }, unsafe { text(to) }];
    remove(path: *const c_char) -> i32, [unsafe { text(path) }];
    creat(path: *const c_char, mode: u32) -> i32, [unsafe { text(path) }];
    creat64(path: *const c_char, mode: u32) -> i32, [unsafe { text(path) }];
    mkfifo(path: *const c_char, mode: u32) -> i32, [unsafe { text(path) }];
    mkstemp(path: *mut c_char) -> i32, [unsafe { text(path) }];
    mkstemp64(path: *mut c_char) -> i32, [unsafe { text(path) }];
    mkostemp(path: *mut c_char, flags: i32) -> i32, [unsafe { text(path) }];
    mkstemps(path: *mut c_char, n: i32) -> i32, [unsafe { text(path) }];
    mkdtemp(path: *mut c_char) -> *mut c_char, [unsafe { text(path) }];
    chown(path: *const c_char, user: u32, group: u32) -> i32, [unsafe { text(path) }];
    lchown(path: *const c_char, user: u32, group: u32) -> i32, [unsafe { text(path) }];
    fchownat(at: i32, path: *const c_char, user: u32, group: u32, flags: i32) -> i32, [unsafe { text(path) }];
    fchmodat(at: i32, path: *const c_char, mode: u32, flags: i32) -> i32, [unsafe { text(path) }];
    euidaccess(path: *const c_char, mode: i32) -> i32, [unsafe { text(path) }];
    eaccess(path: *const c_char, mode: i32) -> i32, [unsafe { text(path) }];
    realpath(path: *const c_char, out: *mut c_char) -> *mut c_char,
        [unsafe { text(path) }, span(out, if out.is_null() { 0 } else { libc::PATH_MAX as usize })];
    utime(path: *const c_char, times: *const libc::utimbuf) -> i32, [unsafe { text(path) }, span(times, 1)];
    utimes(path: *const c_char, times: *const libc::timeval) -> i32, [unsafe { text(path) }, span(times, 2)];
    utimensat(at: i32, path: *const c_char, times: *const libc::timespec, flags: i32) -> i32,
        [unsafe { text(path) }, span(times, 2)];
    futimens(fd: i32, times: *const libc::timespec) -> i32, [span(times, 2)];
    getxattr(path: *const c_char, name: *const c_char, out: *mut c_void, n: usize) -> isize,
        [unsafe { text(path) }, unsafe { text(name) }, span(out, n)];
    lgetxattr(path: *const c_char, name: *const c_char, out: *mut c_void, n: usize) -> isize,
        [unsafe { text(path) }, unsafe { text(name) }, span(out, n)];
    fgetxattr(fd: i32, name: *const c_char, out: *mut c_void, n: usize) -> isize,
        [unsafe { text(name) }, span(out, n)];
    listxattr(path: *const c_char, out: *mut c_char, n: usize) -> isize, [unsafe { text(path) }, span(out, n)];
    inotify_add_watch(fd: i32, path: *const c_char, mask: u32) -> i32, [unsafe { text(path) }];
    opendir(path: *const c_char) -> *mut c_void, [unsafe { text(path) }];
    // The C library's buffer follows its struct.
    readdir(folder: *mut u8) -> *mut c_void, [span(folder, FOLDER)];
    readdir64(folder: *mut u8) -> *mut c_void, [span(folder, FOLDER)];
    fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE, [unsafe { text(path) }];
    fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE, [unsafe { text(path) }];
    freopen(path: *const c_char, mode: *const c_char, file: *mut libc::FILE) -> *mut libc::FILE,
        [unsafe { text(path) }];
    freopen64(path: *const c_char, mode: *const c_char, file: *mut libc::FILE) -> *mut libc::FILE,
        [unsafe { text(path) }];
}

/// What glibc takes for an open folder: 32 KiB and a little.
const FOLDER: usize = (32 << 10) + 128;

/// What a program opens by its path.
///
/// # Safety
/// Null or a string.
unsafe fn opened(path: *const c_char) -> InFlight {
    // SAFETY: the caller's string.
    unsafe {
        if !path.is_null() {
            moving::see_path(CStr::from_ptr(path).to_bytes());
        }
        moving::publish(&[text(path)])
    }
}

// The mode is there only where a file is made; an argument that was not passed is any number, and is not looked at.
front! {
    open(path: *const c_char, flags: i32, mode: u32) -> i32, unsafe { opened(path) };
    open64(path: *const c_char, flags: i32, mode: u32) -> i32, unsafe { opened(path) };
    openat(at: i32, path: *const c_char, flags: i32, mode: u32) -> i32, unsafe { opened(path) };
    openat64(at: i32, path: *const c_char, flags: i32, mode: u32) -> i32, unsafe { opened(path) };
    /// Without a mode, under `_FORTIFY_SOURCE`.
    __open_2(path: *const c_char, flags: i32) -> i32, unsafe { opened(path) };
    /// Without a mode, under `_FORTIFY_SOURCE`.
    __open64_2(path: *const c_char, flags: i32) -> i32, unsafe { opened(path) };
    /// Without a mode, under `_FORTIFY_SOURCE`.
    __openat_2(at: i32, path: *const c_char, flags: i32) -> i32, unsafe { opened(path) };
    /// Without a mode, under `_FORTIFY_SOURCE`.
    __openat64_2(at: i32, path: *const c_char, flags: i32) -> i32, unsafe { opened(path) };
}
