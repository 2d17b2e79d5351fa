//! Passes calls on to OpenMP's run-times.

use std::ffi::CStr;

use crate::{callers, state};

/// Every entry point, called with more arguments than it has: those beyond are never looked at.
pub type Real = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> usize;

/// The program calls a function that no loaded run-time system has: it could not run without us
/// either.
#[cold]
pub fn missing(name: &CStr) -> ! {
    state::complain(&format!("no loaded OpenMP run-time system has {}", name.to_string_lossy()));
    std::process::abort()
}

/// Calls a function of a run-time with the words of a call.
///
/// # Safety
/// The words are the caller's arguments of this function, or others that it takes.
#[inline(always)]
pub unsafe fn call(function: Real, [a, b, c, d, e, f, g, h]: [usize; 8]) -> usize {
    // SAFETY: the caller's promise.
    unsafe { function(a, b, c, d, e, f, g, h) }
}

/// The target as a function that takes the words of a call.
pub fn real(target: callers::Target) -> Real {
    // SAFETY: the loader's address of the function of that name; the ABI lets a caller pass more
    // arguments than it takes.
    unsafe { std::mem::transmute::<usize, Real>(target.function) }
}
