//! Contexts that a program switches between by the C library. The kernel reads and writes the
//! signal masks in them, and their stacks are stacks of coroutines. A function that returns in
//! another context cannot be called by a front end. So each front end jumps to it, with the
//! caller's registers and stack.

use std::arch::naked_asm;
use std::ffi::c_void;

use homenode_runtime::moving::{self, signals};

use crate::interpose::span;
use crate::next::next;
use crate::state;

type Context = *const libc::ucontext_t;

fn holds(context: Context) {
    if state::running() {
        moving::exclude(span(context, 1));
    }
}

/// Removes SIGSEGV and SIGBUS from the context's blocked signals: homenode needs them.
fn enters(context: Context) {
    holds(context);
    if state::running() {
        // SAFETY: the caller's context, which is not const but for the C library's promise not to
        // change it.
        unsafe {
            let mask = &raw mut (*context.cast_mut()).uc_sigmask;
            *mask = signals::without_faults(&*mask);
        }
    }
}

/// Excludes the stack that the context will run on from arming.
unsafe fn stands_on(context: Context) {
    // SAFETY: the caller's context, in which it has named a stack.
    let stack = unsafe { (*context).uc_stack };
    if state::running() {
        moving::exclude(span(stack.ss_sp, stack.ss_size));
    }
}

macro_rules! contexts {
    ($($name:ident $before:ident($a:ident, $b:ident) $do:block)*) => { $(
        /// Runs homenode's part, then returns the function to jump to.
        unsafe extern "C" fn $before($a: Context, $b: Context) -> *mut c_void {
            $do
            next!($name: unsafe extern "C" fn()).map_or(std::ptr::null_mut(), |f| f as *mut c_void)
        }

        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            // All arguments are in these registers or above the return address; none is in a
            // vector register.
            naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
                "call {before}",
                "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "mov r11, rax",
                "xor eax, eax",
                "jmp r11",
                before = sym $before,
            )
        }
    )* };
}

contexts! {
    getcontext before_getcontext(context, _b) { holds(context) }
    setcontext before_setcontext(context, _b) { enters(context) }
    swapcontext before_swapcontext(left, entered) { holds(left); enters(entered) }
    makecontext before_makecontext(context, _b) {
        holds(context);
        // SAFETY: the caller's context.
        unsafe { stands_on(context) }
    }
}
