//! Calls with a path. The kernel reads the path and writes facts about the file.
//!
//! An interpreter's paths lie in the same large blocks as its data.

use std::ffi::{CStr, c_char, c_long, c_void};

use homenode_runtime::moving;

use crate::interpose::{Absent, buffers, path, span};
use crate::next::next;

type Stat = *mut libc::stat;
type Stat64 = *mut libc::stat64;

buffers! {
    stat(name: *const c_char, out: Stat) -> i32, [path(name), span(out, 1)];
    stat64(name: *const c_char, out: Stat64) -> i32, [path(name), span(out, 1)];
    lstat(name: *const c_char, out: Stat) -> i32, [path(name), span(out, 1)];
    lstat64(name: *const c_char, out: Stat64) -> i32, [path(name), span(out, 1)];
    fstat(fd: i32, out: Stat) -> i32, [span(out, 1)];
    fstat64(fd: i32, out: Stat64) -> i32, [span(out, 1)];
    fstatat(at: i32, name: *const c_char, out: Stat, flags: i32) -> i32, [path(name), span(out, 1)];
    fstatat64(at: i32, name: *const c_char, out: Stat64, flags: i32) -> i32, [path(name), span(out, 1)];
    statx(at: i32, name: *const c_char, flags: i32, mask: u32, out: *mut libc::statx) -> i32,
        [path(name), span(out, 1)];
    statfs(name: *const c_char, out: *mut libc::statfs) -> i32, [path(name), span(out, 1)];
    statvfs(name: *const c_char, out: *mut libc::statvfs) -> i32, [path(name), span(out, 1)];
    statfs64(name: *const c_char, out: *mut libc::statfs64) -> i32, [path(name), span(out, 1)];
    statvfs64(name: *const c_char, out: *mut libc::statvfs64) -> i32, [path(name), span(out, 1)];
    fstatfs(fd: i32, out: *mut libc::statfs) -> i32, [span(out, 1)];
    fstatfs64(fd: i32, out: *mut libc::statfs64) -> i32, [span(out, 1)];
    access(name: *const c_char, mode: i32) -> i32, [path(name)];
    faccessat(at: i32, name: *const c_char, mode: i32, flags: i32) -> i32, [path(name)];
    readlink(name: *const c_char, out: *mut c_char, n: usize) -> isize, [path(name), span(out, n)];
    readlinkat(at: i32, name: *const c_char, out: *mut c_char, n: usize) -> isize,
        [path(name), span(out, n)];
    unlink(name: *const c_char) -> i32, [path(name)];
    unlinkat(at: i32, name: *const c_char, flags: i32) -> i32, [path(name)];
    truncate(name: *const c_char, length: i64) -> i32, [path(name)];
    truncate64(name: *const c_char, length: i64) -> i32, [path(name)];
    rmdir(name: *const c_char) -> i32, [path(name)];
    chdir(name: *const c_char) -> i32, [path(name)];
    mkdir(name: *const c_char, mode: u32) -> i32, [path(name)];
    mkdirat(at: i32, name: *const c_char, mode: u32) -> i32, [path(name)];
    chmod(name: *const c_char, mode: u32) -> i32, [path(name)];
    rename(from: *const c_char, to: *const c_char) -> i32, [path(from), path(to)];
    link(from: *const c_char, to: *const c_char) -> i32, [path(from), path(to)];
    symlink(from: *const c_char, to: *const c_char) -> i32, [path(from), path(to)];
    renameat(at: i32, from: *const c_char, to_at: i32, to: *const c_char) -> i32,
        [path(from), path(to)];
    renameat2(at: i32, from: *const c_char, to_at: i32, to: *const c_char, flags: u32) -> i32,
        [path(from), path(to)];
    linkat(at: i32, from: *const c_char, to_at: i32, to: *const c_char, flags: i32) -> i32,
        [path(from), path(to)];
    symlinkat(from: *const c_char, to_at: i32, to: *const c_char) -> i32,
        [path(from), path(to)];
    remove(name: *const c_char) -> i32, [path(name)];
    creat(name: *const c_char, mode: u32) -> i32, [path(name)];
    creat64(name: *const c_char, mode: u32) -> i32, [path(name)];
    mkfifo(name: *const c_char, mode: u32) -> i32, [path(name)];
    mkstemp(name: *mut c_char) -> i32, [path(name)];
    mkstemp64(name: *mut c_char) -> i32, [path(name)];
    mkostemp(name: *mut c_char, flags: i32) -> i32, [path(name)];
    mkstemps(name: *mut c_char, n: i32) -> i32, [path(name)];
    mkdtemp(name: *mut c_char) -> *mut c_char, [path(name)];
    chown(name: *const c_char, user: u32, group: u32) -> i32, [path(name)];
    lchown(name: *const c_char, user: u32, group: u32) -> i32, [path(name)];
    fchownat(at: i32, name: *const c_char, user: u32, group: u32, flags: i32) -> i32, [path(name)];
    fchmodat(at: i32, name: *const c_char, mode: u32, flags: i32) -> i32, [path(name)];
    euidaccess(name: *const c_char, mode: i32) -> i32, [path(name)];
    eaccess(name: *const c_char, mode: i32) -> i32, [path(name)];
    realpath(name: *const c_char, out: *mut c_char) -> *mut c_char,
        [path(name), span(out, if out.is_null() { 0 } else { libc::PATH_MAX as usize })];
    utime(name: *const c_char, times: *const libc::utimbuf) -> i32, [path(name), span(times, 1)];
    utimes(name: *const c_char, times: *const libc::timeval) -> i32, [path(name), span(times, 2)];
    utimensat(at: i32, name: *const c_char, times: *const libc::timespec, flags: i32) -> i32,
        [path(name), span(times, 2)];
    futimens(fd: i32, times: *const libc::timespec) -> i32, [span(times, 2)];
    getxattr(file: *const c_char, name: *const c_char, out: *mut c_void, n: usize) -> isize,
        [path(file), path(name), span(out, n)];
    lgetxattr(file: *const c_char, name: *const c_char, out: *mut c_void, n: usize) -> isize,
        [path(file), path(name), span(out, n)];
    fgetxattr(fd: i32, name: *const c_char, out: *mut c_void, n: usize) -> isize,
        [path(name), span(out, n)];
    listxattr(name: *const c_char, out: *mut c_char, n: usize) -> isize, [path(name), span(out, n)];
    inotify_add_watch(fd: i32, name: *const c_char, mask: u32) -> i32, [path(name)];
    opendir(name: *const c_char) -> *mut c_void, [path(name)];
    // The C library's buffer follows the struct.
    readdir(folder: *mut u8) -> *mut c_void, [span(folder, FOLDER)];
    readdir64(folder: *mut u8) -> *mut c_void, [span(folder, FOLDER)];
    fopen(name: *const c_char, mode: *const c_char) -> *mut libc::FILE, [path(name)];
    fopen64(name: *const c_char, mode: *const c_char) -> *mut libc::FILE, [path(name)];
    freopen(name: *const c_char, mode: *const c_char, file: *mut libc::FILE) -> *mut libc::FILE,
        [path(name)];
    freopen64(name: *const c_char, mode: *const c_char, file: *mut libc::FILE) -> *mut libc::FILE,
        [path(name)];
}

/// Bytes that glibc allocates for an open folder: 32 KiB and a header.
const FOLDER: usize = (32 << 10) + 128;

buffers! {
    // Programs and libraries that were built for glibc 2.32 or older call these.
    __xstat(version: i32, name: *const c_char, out: Stat) -> i32, [path(name), span(out, 1)];
    __xstat64(version: i32, name: *const c_char, out: Stat64) -> i32, [path(name), span(out, 1)];
    __lxstat(version: i32, name: *const c_char, out: Stat) -> i32, [path(name), span(out, 1)];
    __lxstat64(version: i32, name: *const c_char, out: Stat64) -> i32, [path(name), span(out, 1)];
    __fxstat(version: i32, fd: i32, out: Stat) -> i32, [span(out, 1)];
    __fxstat64(version: i32, fd: i32, out: Stat64) -> i32, [span(out, 1)];
    __fxstatat(version: i32, at: i32, name: *const c_char, out: Stat, flags: i32) -> i32,
        [path(name), span(out, 1)];
    __fxstatat64(version: i32, at: i32, name: *const c_char, out: Stat64, flags: i32) -> i32,
        [path(name), span(out, 1)];
    __xmknod(version: i32, name: *const c_char, mode: u32, device: *mut u64) -> i32, [path(name), span(device, 1)];
}

buffers! {
    setxattr(file: *const c_char, name: *const c_char, p: *const c_void, n: usize, flags: i32) -> i32,
        [path(file), path(name), span(p, n)];
    lsetxattr(file: *const c_char, name: *const c_char, p: *const c_void, n: usize, flags: i32) -> i32,
        [path(file), path(name), span(p, n)];
    fsetxattr(fd: i32, name: *const c_char, p: *const c_void, n: usize, flags: i32) -> i32,
        [path(name), span(p, n)];
    llistxattr(file: *const c_char, out: *mut c_char, n: usize) -> isize, [path(file), span(out, n)];
    flistxattr(fd: i32, out: *mut c_char, n: usize) -> isize, [span(out, n)];
    removexattr(file: *const c_char, name: *const c_char) -> i32, [path(file), path(name)];
    lremovexattr(file: *const c_char, name: *const c_char) -> i32, [path(file), path(name)];
    fremovexattr(fd: i32, name: *const c_char) -> i32, [path(name)];
    mknod(name: *const c_char, mode: u32, device: u64) -> i32, [path(name)];
    mknodat(at: i32, name: *const c_char, mode: u32, device: u64) -> i32, [path(name)];
    mkfifoat(at: i32, name: *const c_char, mode: u32) -> i32, [path(name)];
    mkostemp64(name: *mut c_char, flags: i32) -> i32, [path(name)];
    mkostemps(name: *mut c_char, n: i32, flags: i32) -> i32, [path(name)];
    mkostemps64(name: *mut c_char, n: i32, flags: i32) -> i32, [path(name)];
    mkstemps64(name: *mut c_char, n: i32) -> i32, [path(name)];
    lutimes(name: *const c_char, times: *const libc::timeval) -> i32, [path(name), span(times, 2)];
    futimes(fd: i32, times: *const libc::timeval) -> i32, [span(times, 2)];
    futimesat(at: i32, name: *const c_char, times: *const libc::timeval) -> i32, [path(name), span(times, 2)];
    pathconf(name: *const c_char, what: i32) -> c_long, [path(name)];
    memfd_create(name: *const c_char, flags: u32) -> i32, [path(name)];
    chroot(name: *const c_char) -> i32, [path(name)];
    name_to_handle_at(at: i32, name: *const c_char, handle: *mut [u8; HANDLE], mount: *mut i32, flags: i32) -> i32,
        [path(name), span(handle, 1), span(mount, 1)];
    open_by_handle_at(mount: i32, handle: *mut [u8; HANDLE], flags: i32) -> i32, [span(handle, 1)];
}

/// `struct file_handle` with the longest handle (`MAX_HANDLE_SZ`).
const HANDLE: usize = 8 + 128;

/// Functions that open a file by its path.
macro_rules! opens {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*), $path:ident;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: its path is published, and seen.")]
        $(#[$doc])*
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> i32 {
            let Some(f) = next!($name: unsafe extern "C-unwind" fn($($ty),*) -> i32) else { return Absent::absent() };
            let flight = moving::publish(&[path($path)]);
            // SAFETY: the caller's arguments; what the kernel has opened is the name of something.
            unsafe {
                let fd = f($($arg),*);
                moving::retire(flight);
                if fd >= 0 {
                    moving::see_path(CStr::from_ptr($path).to_bytes());
                }
                fd
            }
        }
    )* };
}

// The caller passes a mode only if a file may be created. Otherwise the argument is any number, and
// the C library ignores it.
opens! {
    open(name: *const c_char, flags: i32, mode: u32), name;
    open64(name: *const c_char, flags: i32, mode: u32), name;
    openat(at: i32, name: *const c_char, flags: i32, mode: u32), name;
    openat64(at: i32, name: *const c_char, flags: i32, mode: u32), name;
    /// Without a mode, under `_FORTIFY_SOURCE`.
    __open_2(name: *const c_char, flags: i32), name;
    /// Without a mode, under `_FORTIFY_SOURCE`.
    __open64_2(name: *const c_char, flags: i32), name;
    /// Without a mode, under `_FORTIFY_SOURCE`.
    __openat_2(at: i32, name: *const c_char, flags: i32), name;
    /// Without a mode, under `_FORTIFY_SOURCE`.
    __openat64_2(at: i32, name: *const c_char, flags: i32), name;
}
