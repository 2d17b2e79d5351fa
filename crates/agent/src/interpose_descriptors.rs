//! Calls that close or replace descriptors. Some programs close all descriptors that they do not
//! know, such as a daemon at its start. Such a call leaves homenode's descriptors open, and tells
//! the program that there is none.

use std::ffi::{c_int, c_uint};

use homenode_runtime::moving::descriptor::{is_own, next_own, stays_own};

use crate::next::next;

/// Fails with `EBADF`: there is no such descriptor.
pub fn bad_descriptor() -> c_int {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = libc::EBADF };
    -1
}

/// `close`.
///
/// # Safety
/// As `close`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if is_own(fd) {
        return bad_descriptor();
    }
    // SAFETY: the caller's argument.
    next!(close: unsafe extern "C-unwind" fn(c_int) -> c_int).map_or(-1, |f| unsafe { f(fd) })
}

/// `dup2`. Onto one of homenode's descriptors it fails with `EBADF`, as for a number beyond the
/// limit.
///
/// # Safety
/// As `dup2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    if stays_own(new) {
        return bad_descriptor();
    }
    // SAFETY: the caller's arguments.
    next!(dup2: unsafe extern "C" fn(c_int, c_int) -> c_int).map_or(-1, |f| unsafe { f(old, new) })
}

/// `dup3`: as `dup2`.
///
/// # Safety
/// As `dup3`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if stays_own(new) {
        return bad_descriptor();
    }
    type Real = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;
    // SAFETY: the caller's arguments.
    next!(dup3: Real).map_or(-1, |f| unsafe { f(old, new, flags) })
}

/// `close_range`. Leaves homenode's descriptors open.
///
/// # Safety
/// As `close_range`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    type Real = unsafe extern "C" fn(c_uint, c_uint, c_int) -> c_int;
    let Some(f) = next!(close_range: Real) else { return -1 };
    // SAFETY: parts of the caller's range.
    between_own(first, last, flags, |first, last, flags| unsafe { f(first, last, flags) })
}

/// Calls `close` for each part of a range that has none of homenode's descriptors, until a call
/// fails.
pub fn between_own(
    first: c_uint,
    last: c_uint,
    mut flags: c_int,
    mut close: impl FnMut(c_uint, c_uint, c_int) -> c_int,
) -> c_int {
    let mut from = first;
    while let Some(own) = c_int::try_from(from).ok().and_then(next_own).map(|own| own as c_uint) {
        if own > last {
            break;
        }
        if own > from {
            if close(from, own - 1, flags) != 0 {
                return -1;
            }
            // One such call is enough.
            flags &= !(libc::CLOSE_RANGE_UNSHARE as c_int);
        }
        if own == last {
            return 0;
        }
        from = own + 1;
    }
    // The rest, or the whole range, even if its bounds are wrong.
    close(from, last, flags)
}

/// `closefrom`.
///
/// # Safety
/// As `closefrom`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    let mut from = first.max(0);
    while let Some(own) = next_own(from) {
        // SAFETY: none of homenode's.
        (from..own).for_each(|fd| unsafe {
            close(fd);
        });
        from = own + 1;
    }
    if let Some(f) = next!(closefrom: unsafe extern "C" fn(c_int)) {
        // SAFETY: nothing of homenode's is left from there on.
        unsafe { f(from) }
    }
}
