//! More functions of the C library that pass a pointer of the program's to the kernel: identity of
//! the process, file systems, walks through folders, streams opened by a path.

use std::ffi::{c_char, c_int, c_long, c_void};

use crate::interpose::{buffers, path, span};

type Text = *const c_char;
type Time = *const libc::timespec;

/// Bytes of a host's name.
const NAME: usize = 256;
/// Bytes that `ptrace` reads or writes at most: all registers, with vector registers.
const REGISTERS: usize = 16 << 10;

buffers! {
    getresuid(real: *mut u32, effective: *mut u32, saved: *mut u32) -> i32,
        [span(real, 1), span(effective, 1), span(saved, 1)];
    getresgid(real: *mut u32, effective: *mut u32, saved: *mut u32) -> i32,
        [span(real, 1), span(effective, 1), span(saved, 1)];
    gethostname(name: *mut c_char, n: usize) -> i32, [span(name, n)];
    sethostname(name: Text, n: usize) -> i32, [span(name, n)];
    getdomainname(name: *mut c_char, n: usize) -> i32, [span(name, n)];
    setdomainname(name: Text, n: usize) -> i32, [span(name, n)];
    klogctl(what: c_int, text: *mut c_char, n: c_int) -> i32, [span(text, n.max(0) as usize)];
    adjtime(new: *const libc::timeval, old: *mut libc::timeval) -> i32, [span(new, 1), span(old, 1)];
    settimeofday(now: *const libc::timeval, zone: *const c_void) -> i32, [span(now, 1), span(zone, 8)];
    acct(file: Text) -> i32, [path(file)];
    setmntent(file: Text, mode: Text) -> *mut libc::FILE, [path(file), span(mode, NAME)];
    mount(from: Text, to: Text, kind: Text, flags: u64, data: *const c_void) -> i32,
        [path(from), path(to), path(kind), span(data, 4096)];
    umount(at: Text) -> i32, [path(at)];
    umount2(at: Text, flags: c_int) -> i32, [path(at)];
    pivot_root(new: Text, old: Text) -> i32, [path(new), path(old)];
    swapon(file: Text, flags: c_int) -> i32, [path(file)];
    swapoff(file: Text) -> i32, [path(file)];
    quotactl(what: c_int, device: Text, id: c_int, data: *mut c_void) -> i32, [path(device), span(data, 4096)];
    fanotify_mark(fd: c_int, flags: u32, mask: u64, at: c_int, name: Text) -> i32, [path(name)];
    fstatvfs(fd: c_int, out: *mut libc::statvfs) -> i32, [span(out, 1)];
    fstatvfs64(fd: c_int, out: *mut libc::statvfs64) -> i32, [span(out, 1)];
    getdirentries(fd: c_int, p: *mut c_char, n: usize, at: *mut i64) -> isize, [span(p, n), span(at, 1)];
    getdirentries64(fd: c_int, p: *mut c_char, n: usize, at: *mut i64) -> isize, [span(p, n), span(at, 1)];
    mktemp(name: *mut c_char) -> *mut c_char, [path(name)];
    tempnam(folder: Text, begin: Text) -> *mut c_char, [path(folder), path(begin)];
    getwd(to: *mut c_char) -> *mut c_char, [path(to)];
    canonicalize_file_name(name: Text) -> *mut c_char, [path(name)];
    scandir(name: Text, list: *mut c_void, choose: *mut c_void, order: *mut c_void) -> i32, [path(name), span(list, 8)];
    scandir64(name: Text, list: *mut c_void, choose: *mut c_void, order: *mut c_void) -> i32, [path(name), span(list, 8)];
    scandirat(at: c_int, name: Text, list: *mut c_void, choose: *mut c_void, order: *mut c_void) -> i32,
        [path(name), span(list, 8)];
    ftw(name: Text, each: *mut c_void, fds: c_int) -> i32, [path(name)];
    ftw64(name: Text, each: *mut c_void, fds: c_int) -> i32, [path(name)];
    nftw(name: Text, each: *mut c_void, fds: c_int, flags: c_int) -> i32, [path(name)];
    nftw64(name: Text, each: *mut c_void, fds: c_int, flags: c_int) -> i32, [path(name)];
    glob(name: Text, flags: c_int, failed: *mut c_void, out: *mut c_void) -> i32, [path(name)];
    glob64(name: Text, flags: c_int, failed: *mut c_void, out: *mut c_void) -> i32, [path(name)];
    sem_unlink(name: Text) -> i32, [path(name)];
    shm_open(name: Text, flags: c_int, mode: u32) -> i32, [path(name)];
    shm_unlink(name: Text) -> i32, [path(name)];
    utmpname(file: Text) -> i32, [path(file)];
    delete_module(name: Text, flags: u32) -> i32, [path(name)];
    init_module(image: *const c_void, n: usize, words: Text) -> i32, [span(image, n), path(words)];
    pthread_timedjoin_np(thread: libc::pthread_t, out: *mut *mut c_void, wait: Time) -> i32, [span(wait, 1)];
    pthread_clockjoin_np(thread: libc::pthread_t, out: *mut *mut c_void, clock: c_int, wait: Time) -> i32,
        [span(wait, 1)];
    ptrace(what: c_long, process: c_int, at: *mut c_void, data: *mut c_void) -> c_long,
        [span(at, REGISTERS), span(data, REGISTERS)];
}
