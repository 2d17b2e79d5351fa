//! Signals: the calling thread's mask, and handlers set below the C library.

use crate::Span;
use crate::call::raw;
use crate::error::check;
use crate::{Error, Result};

/// A set of signals in the kernel's form: bit n−1 is signal n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Set(pub u64);

impl Set {
    /// No signals.
    pub const NONE: Self = Self(0);
    /// The two signals that glibc keeps for itself (cancellation, setuid in all threads). They must
    /// never be held back for long.
    const GLIBC: u64 = 1 << 31 | 1 << 32;
    /// Signals that a fault raises in its own thread.
    const FAULTS: u64 = 1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGBUS - 1);
    /// Signals that others send: all but faults.
    pub const ASYNCHRONOUS: Self = Self(!Self::FAULTS);
    /// The same for homenode's own threads, which block them for ever.
    pub const FOR_OWN_THREADS: Self = Self(!(Self::FAULTS | Self::GLIBC));

    /// Whether `signal` is in it.
    pub const fn has(self, signal: i32) -> bool {
        signal >= 1 && signal <= 64 && self.0 >> (signal - 1) & 1 == 1
    }

    /// Whether both signals that glibc keeps for itself are in the set. Only glibc itself, and raw
    /// system calls of the program, can block them.
    pub const fn has_all_of_glibc(self) -> bool {
        self.0 & Self::GLIBC == Self::GLIBC
    }
}

/// Blocks exactly `set` in the calling thread. Returns what was blocked before.
pub fn replace_mask(set: Set) -> Set {
    let mut old = Set::NONE;
    let how = libc::SIG_SETMASK as usize;
    // SAFETY: two sets of 8 bytes.
    unsafe {
        let (new, was) = (&raw const set as usize, &raw mut old as usize);
        raw(libc::SYS_rt_sigprocmask, [how, new, was, 8, 0, 0]);
    }
    old
}

/// The signals that the calling thread blocks.
pub fn mask() -> Set {
    let mut old = Set::NONE;
    // SAFETY: one set of 8 bytes; nothing changes.
    unsafe { raw(libc::SYS_rt_sigprocmask, [0, 0, &raw mut old as usize, 8, 0, 0]) };
    old
}

/// Holds signals from others back in this thread while it lives, for code that a signal handler
/// must not interrupt.
#[derive(Debug)]
pub struct HeldSignals(Set);

impl HeldSignals {
    /// Starts now.
    pub fn new() -> Self {
        Self(replace_mask(Set(Set::ASYNCHRONOUS.0 | mask().0 & Set::FAULTS)))
    }
}

impl Default for HeldSignals {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        replace_mask(self.0);
    }
}

/// A handler's type, with SA_SIGINFO.
pub type Handler = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// `struct sigaction` as the kernel has it (arch/x86/include/uapi/asm/signal.h, asm-generic).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// SIG_DFL, SIG_IGN or a function's address.
    pub handler: usize,
    /// `SA_*`.
    pub flags: u64,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    restorer: usize,
    /// What is blocked while it runs.
    pub mask: Set,
}

#[cfg(target_arch = "x86_64")]
const SA_RESTORER: u64 = 0x0400_0000;

// Returns from a handler, with exactly glibc's instructions: unwinders and debuggers recognise a
// signal's frame by them.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.homenode_restore_rt,\"ax\",@progbits",
    ".p2align 4",
    "nop",
    ".globl homenode_restore_rt",
    ".hidden homenode_restore_rt",
    ".type homenode_restore_rt, @function",
    "homenode_restore_rt:",
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05", // mov $15, %rax; syscall
    ".size homenode_restore_rt, . - homenode_restore_rt",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn homenode_restore_rt();
}

impl Action {
    /// `handler` with `flags` (SA_SIGINFO and SA_RESTORER are added), blocking `mask`.
    pub fn new(handler: Handler, flags: i32, mask: Set) -> Self {
        Self::of(handler as usize, flags as u32 as u64 | libc::SA_SIGINFO as u64, mask)
    }
    /// The default action.
    pub fn default_action() -> Self {
        Self::of(libc::SIG_DFL, 0, Set::NONE)
    }
    fn of(handler: usize, flags: u64, mask: Set) -> Self {
        Self {
            handler,
            #[cfg(target_arch = "x86_64")]
            flags: flags | SA_RESTORER,
            #[cfg(not(target_arch = "x86_64"))]
            flags,
            #[cfg(target_arch = "x86_64")]
            restorer: homenode_restore_rt as *const () as usize,
            #[cfg(target_arch = "aarch64")]
            restorer: 0,
            mask,
        }
    }
}

/// The kernel's present action for `signal`.
///
/// # Errors
/// `EINVAL` for a number that is no signal.
pub fn action(signal: i32) -> Result<Action> {
    let mut old = Action::default_action();
    let a = [signal as usize, 0, &raw mut old as usize, 8, 0, 0];
    // SAFETY: writes one structure; nothing changes.
    let r = unsafe { raw(libc::SYS_rt_sigaction, a) };
    check("rt_sigaction", Span::EMPTY, r).map(|_| old)
}

/// Sets the kernel's action for `signal`. Returns the action before.
///
/// # Safety
/// The handler stays loaded and does only what handlers may.
///
/// # Errors
/// `EINVAL` for a number that is no signal, or a signal that cannot be handled.
pub unsafe fn set_action(signal: i32, new: &Action) -> std::result::Result<Action, Error> {
    let mut old = Action::default_action();
    let a = [signal as usize, std::ptr::from_ref(new) as usize, &raw mut old as usize, 8, 0, 0];
    // SAFETY: the caller's promise.
    let r = unsafe { raw(libc::SYS_rt_sigaction, a) };
    check("rt_sigaction", Span::EMPTY, r).map(|_| old)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, Ordering};

    use super::*;

    static SEEN: AtomicI32 = AtomicI32::new(0);

    unsafe extern "C" fn see(signal: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
        SEEN.store(signal, Ordering::Relaxed);
    }

    #[test]
    fn a_handler_runs_and_returns_and_waits_while_held() {
        // SAFETY: a handler that stores a number.
        unsafe {
            let mine = Action::new(see, 0, Set::NONE);
            let old = set_action(libc::SIGURG, &mine).unwrap();
            assert_eq!(action(libc::SIGURG).unwrap().handler, mine.handler);
            {
                let _held = HeldSignals::new();
                assert!(mask().has(libc::SIGURG) && !mask().has(libc::SIGBUS));
                libc::raise(libc::SIGURG);
                assert_eq!(SEEN.load(Ordering::Relaxed), 0);
            }
            assert_eq!(SEEN.load(Ordering::Relaxed), libc::SIGURG);
            set_action(libc::SIGURG, &old).unwrap();
        }
    }
}
