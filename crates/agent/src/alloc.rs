//! Front ends of the allocator. Each function passes the call on to the program's allocator: the
//! function of the same name behind this library. Fortran's `allocate` calls `malloc`, and so does
//! C++'s `new` unless an allocator brings its own ([`crate::cpp`]).

use std::ffi::c_void;

use homenode_hooks::early;
use homenode_runtime::moving;

use crate::allocator::allocator;
use crate::objects::{dies, large};
use crate::{align, clib};

/// The code at `caller` has got this from the allocator.
#[inline]
fn born(p: *mut c_void, bytes: usize, caller: usize) -> *mut c_void {
    large(p, bytes);
    clib::allocated(p, bytes, caller)
}

homenode_hooks::with_caller! {
    malloc, "rsi", malloc_for;
    calloc, "rdx", calloc_for;
    realloc, "rdx", realloc_for;
    posix_memalign, "rcx", posix_memalign_for;
    aligned_alloc, "rdx", aligned_alloc_for;
    memalign, "rdx", memalign_for;
    valloc, "rsi", valloc_for;
    pvalloc, "rsi", pvalloc_for;
}

unsafe extern "C" fn malloc_for(bytes: usize, caller: usize) -> *mut c_void {
    match allocator!(malloc: unsafe extern "C" fn(usize) -> *mut c_void) {
        // SAFETY: the next function of this name and type, with the caller's arguments.
        Some(f) => born(align::page(bytes).unwrap_or_else(|| unsafe { f(bytes) }), bytes, caller),
        None => early::give(bytes, 16),
    }
}

unsafe extern "C" fn calloc_for(n: usize, size: usize, caller: usize) -> *mut c_void {
    let aligned = || n.checked_mul(size).and_then(align::zeroed);
    match allocator!(calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void) {
        // SAFETY: the next function of this name and type, with the caller's arguments.
        Some(f) => born(aligned().unwrap_or_else(|| unsafe { f(n, size) }), n.saturating_mul(size), caller),
        None => early::give(n.saturating_mul(size), 16),
    }
}

unsafe extern "C" fn realloc_for(p: *mut c_void, bytes: usize, caller: usize) -> *mut c_void {
    if early::is(p) {
        // Nothing says how long it was; what follows it is ours as well.
        // SAFETY: the caller's promise for `realloc` covers a call of `malloc`.
        let new = unsafe { malloc_for(bytes, caller) };
        if !new.is_null() {
            // SAFETY: `p` is of the early memory; the new memory has `bytes` bytes.
            unsafe { early::copy(p, new, bytes) };
        }
        return new;
    }
    if p.is_null() {
        // SAFETY: the caller's promise for `realloc` covers a call of `malloc`.
        return unsafe { malloc_for(bytes, caller) };
    }
    let held = dies(p);
    let new = match allocator!(realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void) {
        // SAFETY: the next function of this name and type, with the caller's arguments.
        Some(f) => born(unsafe { f(p, bytes) }, bytes, caller),
        None => early::give(bytes, 16),
    };
    held.into_iter().for_each(moving::retire);
    new
}

/// `free`.
///
/// # Safety
/// As `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(p: *mut c_void) {
    if early::is(p) {
        return;
    }
    let held = dies(p);
    if let Some(f) = allocator!(free: unsafe extern "C" fn(*mut c_void)) {
        // SAFETY: the next function of this name and type, with the caller's arguments.
        unsafe { f(p) }
    }
    held.into_iter().for_each(moving::retire);
}

unsafe extern "C" fn posix_memalign_for(
    out: *mut *mut c_void,
    align: usize,
    bytes: usize,
    caller: usize,
) -> i32 {
    match allocator!(posix_memalign: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> i32) {
        Some(f) => {
            // SAFETY: the next function of this name and type, with the caller's arguments.
            let code = unsafe { f(out, wider(align, bytes), bytes) };
            if code == 0 {
                // SAFETY: the function succeeded, so it wrote to `out`.
                born(unsafe { *out }, bytes, caller);
            }
            code
        }
        None => libc::ENOMEM,
    }
}

/// The alignment for `posix_memalign`, which refuses one that is no power of two.
fn wider(align: usize, bytes: usize) -> usize {
    if align.is_power_of_two() && align >= size_of::<usize>() { align::of(align, bytes) } else { align }
}

macro_rules! aligned {
    ($($f:ident $name:ident)*) => { $(
        unsafe extern "C" fn $f(align: usize, bytes: usize, caller: usize) -> *mut c_void {
            match allocator!($name: unsafe extern "C" fn(usize, usize) -> *mut c_void) {
                // SAFETY: the next function of this name and type, with the caller's arguments.
                Some(f) => born(own(align, bytes).unwrap_or_else(|| unsafe { f(align, bytes) }), bytes, caller),
                None => early::give(bytes, align),
            }
        }
    )* };
}

/// Memory on a page for one that asks for less.
fn own(align: usize, bytes: usize) -> Option<*mut c_void> {
    if align < align::of(align, bytes) && align.is_power_of_two() { align::page(bytes) } else { None }
}

aligned! { aligned_alloc_for aligned_alloc memalign_for memalign }

macro_rules! paged {
    ($($f:ident $name:ident)*) => { $(
        unsafe extern "C" fn $f(bytes: usize, caller: usize) -> *mut c_void {
            // What the loader gets early on is not aligned so far; it does not ask for pages.
            match allocator!($name: unsafe extern "C" fn(usize) -> *mut c_void) {
                // SAFETY: the next function of this name and type, with the caller's arguments.
                Some(f) => born(unsafe { f(bytes) }, bytes, caller),
                None => std::ptr::null_mut(),
            }
        }
    )* };
}

paged! { valloc_for valloc pvalloc_for pvalloc }
