//! Accesses of more than one word: ranges, unaligned accesses, and the C library's block functions
//! and reads. The compiler drivers redirect these functions here (`--wrap`), because the C library
//! is not instrumented.

use std::arch::naked_asm;
use std::ffi::c_void;

use homenode_hooks::with_caller;
use homenode_recorder::process;

use crate::thread;

extern "C-unwind" fn read_range(address: usize, bytes: usize, pc: usize) {
    thread::range(address, bytes, false, pc);
}
extern "C-unwind" fn write_range(address: usize, bytes: usize, pc: usize) {
    thread::range(address, bytes, true, pc);
}

with_caller! {
    __tsan_read_range, "rdx", read_range;
    __tsan_write_range, "rdx", write_range;
    __tsan_memcpy, "rcx", memcpy;
    __tsan_memmove, "rcx", memmove;
    __tsan_memset, "rcx", memset;
    __wrap_memcpy, "rcx", memcpy;
    __wrap_memmove, "rcx", memmove;
    __wrap_memset, "rcx", memset;
    __wrap_read, "rcx", read;
    __wrap_pread, "r8", pread;
    __wrap_fread, "r8", fread;
}

macro_rules! unaligned {
    ($($name:ident $bytes:literal $function:ident;)*) => { $(
        /// An access that may lie in two lines.
        ///
        /// # Safety
        /// Any address may be passed.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name(_address: *const c_void) {
            naked_asm!(
                ".cfi_startproc",
                concat!("mov esi, ", $bytes),
                "mov rdx, qword ptr [rsp]",
                "jmp {f}",
                ".cfi_endproc",
                f = sym $function,
            )
        }
    )* };
}

unaligned! {
    __tsan_unaligned_read2 2 read_range;
    __tsan_unaligned_read4 4 read_range;
    __tsan_unaligned_read8 8 read_range;
    __tsan_unaligned_read16 16 read_range;
    __tsan_unaligned_write2 2 write_range;
    __tsan_unaligned_write4 4 write_range;
    __tsan_unaligned_write8 8 write_range;
    __tsan_unaligned_write16 16 write_range;
    __tsan_unaligned_read_write2 2 write_range;
    __tsan_unaligned_read_write4 4 write_range;
    __tsan_unaligned_read_write8 8 write_range;
    __tsan_unaligned_read_write16 16 write_range;
    __tsan_unaligned_volatile_read2 2 read_range;
    __tsan_unaligned_volatile_read4 4 read_range;
    __tsan_unaligned_volatile_read8 8 read_range;
    __tsan_unaligned_volatile_read16 16 read_range;
    __tsan_unaligned_volatile_write2 2 write_range;
    __tsan_unaligned_volatile_write4 4 write_range;
    __tsan_unaligned_volatile_write8 8 write_range;
    __tsan_unaligned_volatile_write16 16 write_range;
}

extern "C-unwind" fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize, pc: usize) -> *mut c_void {
    thread::range(from as usize, bytes, false, pc);
    thread::range(to as usize, bytes, true, pc);
    // SAFETY: the caller's promise.
    unsafe { libc::memcpy(to, from, bytes) }
}

extern "C-unwind" fn memmove(to: *mut c_void, from: *const c_void, bytes: usize, pc: usize) -> *mut c_void {
    thread::range(from as usize, bytes, false, pc);
    thread::range(to as usize, bytes, true, pc);
    // SAFETY: the caller's promise.
    unsafe { libc::memmove(to, from, bytes) }
}

extern "C-unwind" fn memset(to: *mut c_void, value: i32, bytes: usize, pc: usize) -> *mut c_void {
    thread::range(to as usize, bytes, true, pc);
    // SAFETY: the caller's promise.
    unsafe { libc::memset(to, value, bytes) }
}

// Reading is a cancellation point: a cancelled thread unwinds through these frames.

/// What the kernel or the library has written into the program's memory on behalf of the calling
/// thread.
fn filled(to: *mut c_void, bytes: isize, pc: usize) {
    if bytes > 0 {
        let errno = process::errno();
        thread::range(to as usize, bytes as usize, true, pc);
        process::set_errno(errno);
    }
}

extern "C-unwind" fn read(fd: i32, to: *mut c_void, bytes: usize, pc: usize) -> isize {
    // SAFETY: the caller's promise.
    let n = unsafe { real::read(fd, to, bytes) };
    filled(to, n, pc);
    n
}

extern "C-unwind" fn pread(fd: i32, to: *mut c_void, bytes: usize, at: i64, pc: usize) -> isize {
    // SAFETY: the caller's promise.
    let n = unsafe { real::pread(fd, to, bytes, at) };
    filled(to, n, pc);
    n
}

extern "C-unwind" fn fread(
    to: *mut c_void,
    size: usize,
    n: usize,
    file: *mut libc::FILE,
    pc: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let got = unsafe { real::fread(to, size, n, file) };
    filled(to, (got * size) as isize, pc);
    got
}

/// The functions behind the wraps, declared so that they may unwind: `read` is a cancellation
/// point. Newer compilers know how the standard library declares it and refuse another declaration;
/// older ones do not know that they do.
#[allow(unknown_lints, invalid_runtime_symbol_definitions)]
mod real {
    use std::ffi::c_void;

    unsafe extern "C-unwind" {
        pub fn read(fd: i32, to: *mut c_void, bytes: usize) -> isize;
        pub fn pread(fd: i32, to: *mut c_void, bytes: usize, at: i64) -> isize;
        pub fn fread(to: *mut c_void, size: usize, n: usize, file: *mut libc::FILE) -> usize;
    }
}
