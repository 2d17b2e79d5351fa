//! Allocations under their own names. The allocator is the program's: each function does its work
//! through the one of the same name behind this library. C++'s `new` and Fortran's `allocate` come
//! through `malloc`; the stack tells where they stand.

use std::cell::Cell;
use std::ffi::c_void;

use homenode_hooks::early;
use homenode_trace::alloc::{born, dies};
use homenode_trace::next::next;
use homenode_trace::python::is_arena;

thread_local! {
    /// The thread looks one of the functions up.
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// The allocator's own function; `None` while it is being looked up.
macro_rules! allocator {
    ($name:ident : $ty:ty) => {{
        if LOOKING.replace(true) {
            None
        } else {
            let f = next!($name: $ty);
            LOOKING.set(false);
            f
        }
    }};
}

homenode_hooks::with_caller! {
    malloc, "rsi", allocate;
    calloc, "rdx", allocate_zeroed;
    realloc, "rdx", reallocate;
    posix_memalign, "rcx", allocate_for;
    aligned_alloc, "rdx", allocate_aligned;
    memalign, "rdx", allocate_at;
    mremap, "r9", remap;
}

extern "C" fn allocate(bytes: usize, site: usize) -> *mut c_void {
    let Some(f) = allocator!(malloc: unsafe extern "C" fn(usize) -> *mut c_void) else {
        return early::give(bytes, 16);
    };
    // SAFETY: the next function of this name and type, with the caller's arguments.
    let p = unsafe { f(bytes) };
    born(p, bytes, site);
    p
}

extern "C" fn allocate_zeroed(n: usize, size: usize, site: usize) -> *mut c_void {
    let Some(f) = allocator!(calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void) else {
        return early::give(n.saturating_mul(size), 16);
    };
    // SAFETY: the next function of this name and type, with the caller's arguments.
    let p = unsafe { f(n, size) };
    born(p, n.saturating_mul(size), site);
    p
}

extern "C" fn reallocate(p: *mut c_void, bytes: usize, site: usize) -> *mut c_void {
    if early::is(p) {
        // Nothing says how long it was; what follows it is ours as well.
        let new = allocate(bytes, site);
        if !new.is_null() {
            // SAFETY: `p` is of the early memory; the new memory has `bytes` bytes.
            unsafe { early::copy(p, new, bytes) };
        }
        return new;
    }
    let Some(f) = allocator!(realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void) else {
        return std::ptr::null_mut();
    };
    dies(p);
    // SAFETY: the next function of this name and type, with the caller's arguments.
    let new = unsafe { f(p, bytes) };
    born(new, bytes, site);
    new
}

/// `free`.
///
/// # Safety
/// As `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(p: *mut c_void) {
    if p.is_null() || early::is(p) {
        return;
    }
    dies(p);
    if let Some(f) = allocator!(free: unsafe extern "C" fn(*mut c_void)) {
        // SAFETY: the next function of this name and type, with the caller's arguments.
        unsafe { f(p) }
    }
}

extern "C" fn allocate_for(out: *mut *mut c_void, align: usize, bytes: usize, site: usize) -> i32 {
    let f = allocator!(posix_memalign: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> i32);
    let Some(f) = f else { return libc::ENOMEM };
    // SAFETY: the next function of this name and type, with the caller's arguments.
    let code = unsafe { f(out, align, bytes) };
    if code == 0 {
        // SAFETY: the function succeeded, so it wrote to `out`.
        born(unsafe { *out }, bytes, site);
    }
    code
}

macro_rules! aligned {
    ($($body:ident $name:ident;)*) => { $(
        extern "C" fn $body(align: usize, bytes: usize, site: usize) -> *mut c_void {
            let Some(f) = allocator!($name: unsafe extern "C" fn(usize, usize) -> *mut c_void) else {
                return early::give(bytes, align);
            };
            // SAFETY: the next function of this name and type, with the caller's arguments.
            let p = unsafe { f(align, bytes) };
            born(p, bytes, site);
            p
        }
    )* };
}

aligned! {
    allocate_aligned aligned_alloc;
    allocate_at memalign;
}

/// `mmap`. Its objects have no call site: six arguments leave no register for it.
///
/// # Safety
/// As `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    prot: i32,
    flags: i32,
    fd: i32,
    offset: i64,
) -> *mut c_void {
    type Map = unsafe extern "C" fn(*mut c_void, usize, i32, i32, i32, i64) -> *mut c_void;
    let Some(f) = next!(mmap: Map) else { return libc::MAP_FAILED };
    // SAFETY: the next function of this name and type, with the caller's arguments.
    let p = unsafe { f(at, bytes, prot, flags, fd, offset) };
    if p != libc::MAP_FAILED && prot & libc::PROT_EXEC == 0 && !is_arena(bytes, prot, flags) {
        born(p, bytes, 0);
    }
    p
}

/// `munmap`. Ends the object that starts there; a part of one goes on counting as the object.
///
/// # Safety
/// As `munmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, bytes: usize) -> i32 {
    let Some(f) = next!(munmap: unsafe extern "C" fn(*mut c_void, usize) -> i32) else { return -1 };
    dies(at);
    // SAFETY: the next function of this name and type, with the caller's arguments.
    unsafe { f(at, bytes) }
}

extern "C" fn remap(
    old: *mut c_void,
    old_bytes: usize,
    bytes: usize,
    flags: i32,
    at: *mut c_void,
    site: usize,
) -> *mut c_void {
    type Remap = unsafe extern "C" fn(*mut c_void, usize, usize, i32, *mut c_void) -> *mut c_void;
    let Some(f) = next!(mremap: Remap) else { return libc::MAP_FAILED };
    dies(old);
    // SAFETY: the next function of this name and type, with the caller's arguments.
    let p = unsafe { f(old, old_bytes, bytes, flags, at) };
    if p == libc::MAP_FAILED {
        born(old, old_bytes, site);
    } else {
        born(p, bytes, site);
    }
    p
}
