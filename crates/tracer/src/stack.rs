//! The start of the initial thread's stack, and the program's arguments on it.
//!
//! The kernel starts the stack at a random multiple of 16 bytes below the environment's strings,
//! whose length varies, too. Which variables share a line, and so the recording, would differ from
//! run to run. So a recorded program's `main` starts a fixed distance below the stack's end, and
//! gets a copy of its arguments. (Other threads' stacks are mappings of whole pages.)

use std::arch::global_asm;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_recorder::{memory, state};

use crate::next::next;
use crate::process;

/// `main` starts at the first free multiple of this below the stack's end.
const STEP: usize = 64 << 10;
/// Room for this function's callees and glibc's, which run above `main`.
const MARGIN: usize = 8 << 10;

type Main = unsafe extern "C-unwind" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<unsafe extern "C" fn()>;
type Start =
    unsafe extern "C-unwind" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

/// The program's `main`.
static MAIN: AtomicUsize = AtomicUsize::new(0);
/// The stack pointer for `main`.
static POINTER: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C-unwind" {
    fn homenode_main(argc: c_int, argv: *mut *mut c_char, envp: *mut *mut c_char) -> c_int;
}

// Calls MAIN with the stack pointer POINTER. The frame pointer is the frame's address, so that
// exceptions and cancellation can walk through.
global_asm!(
    ".pushsection .text",
    ".hidden homenode_main",
    ".globl homenode_main",
    ".type homenode_main, @function",
    "homenode_main:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, qword ptr [rip + {pointer}]",
    "call qword ptr [rip + {main}]",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size homenode_main, . - homenode_main",
    ".popsection",
    pointer = sym POINTER,
    main = sym MAIN,
);

/// The stack pointer for `main`, if the stack ends at `high` and is in use down to `used`; `None`
/// if there is no room above `low`.
fn pointer(low: usize, high: usize, used: usize) -> Option<usize> {
    let steps = high.checked_sub(used)?.checked_add(MARGIN)?.div_ceil(STEP);
    let pointer = high.checked_sub(steps * STEP)? & !15;
    // A quarter of the stack at most; the rest is the program's.
    (high - pointer <= (high - low) / 4).then_some(pointer)
}

/// Distance of the copy from all other mappings. The simulator moves unknown memory in pieces of 1
/// MiB, and the kernel chooses the distance of two mappings at random. These are addresses only;
/// nobody touches them.
const APART: usize = 1 << 20;

/// A copy of arguments and environment in pages of their own: strings, argument vector,
/// environment. The strings of the environment stay where they are; only the C library reads them.
///
/// # Safety
/// `argv` and the environment behind it are what the kernel made them.
unsafe fn copy(argc: usize, argv: *mut *mut c_char) -> Option<*mut *mut c_char> {
    // SAFETY: `argc` strings, a null, the environment's strings, a null; the new pages have room
    // for a copy of each.
    unsafe {
        let mut words = argc + 1;
        while !(*argv.add(words)).is_null() {
            words += 1;
        }
        words += 1;
        let bytes = |i: usize| libc::strlen(*argv.add(i)) + 1;
        let text: usize = (0..argc).map(bytes).sum();
        let vector_at = text.next_multiple_of(64);
        let mapped = memory::map((vector_at + words * size_of::<usize>()).next_multiple_of(4096) + 2 * APART);
        if mapped.is_null() {
            return None;
        }
        let pages = mapped.add(APART);
        let vector = pages.add(vector_at).cast::<*mut c_char>();
        vector.copy_from_nonoverlapping(argv, words);
        let mut at = pages;
        for i in 0..argc {
            at.copy_from_nonoverlapping((*argv.add(i)).cast(), bytes(i));
            *vector.add(i) = at.cast();
            at = at.add(bytes(i));
        }
        Some(vector)
    }
}

/// glibc's start of a program, called by its first instructions.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Hook,
    fini: Hook,
    rtld_fini: Hook,
    stack_end: *mut c_void,
) -> c_int {
    let Some(real) = next!(__libc_start_main: Start) else {
        state::complain("the C library has no __libc_start_main");
        std::process::abort()
    };
    let (mut start, mut argv) = (main, argv);
    if state::recording() {
        let (low, high) = process::stack();
        let here = (&raw const start).addr();
        if let Some(at) = pointer(low as usize, high as usize, here) {
            MAIN.store(main as usize, Ordering::Relaxed);
            POINTER.store(at, Ordering::Relaxed);
            start = homenode_main;
        }
        // SAFETY: the caller's promise.
        if let Some(copy) = unsafe { copy(argc.max(0) as usize, argv) } {
            argv = copy;
        }
    }
    // SAFETY: the caller's arguments; `homenode_main` is a function of `main`'s type that calls it.
    unsafe { real(start, argc, argv, init, fini, rtld_fini, stack_end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_starts_at_one_place_whatever_the_environment_takes() {
        let (low, high) = (0x7ff0_0000_0000 - (8 << 20), 0x7ff0_0000_0000);
        for used in [300, 4096, 9000, 50_000] {
            assert_eq!(pointer(low, high, high - used), Some(high - STEP));
        }
        assert_eq!(pointer(low, high, high - 60_000), Some(high - 2 * STEP));
        assert_eq!(pointer(high - (128 << 10), high, high - 300), None, "a small stack is left alone");
        assert_eq!(pointer(0, 0, 5), None);
    }
}
