//! Signals. homenode handles SIGBUS and SIGSEGV first, and they are never blocked. Before the
//! program starts another one, all memory is in place.

use std::ffi::{c_char, c_void};

use homenode_runtime::moving::{self, handler_stack, signals};
use libc::{sigaction as Action, sigset_t as Set};

use crate::interpose::span;
use crate::interpose_small::bits;
use crate::next::next;
use crate::state;

/// `set` without SIGBUS and SIGSEGV, as the C library gets it.
unsafe fn passed(set: *const Set, copy: &mut Option<Set>) -> *const Set {
    // SAFETY: null or the caller's set.
    match unsafe { set.as_ref() } {
        Some(set) => copy.insert(signals::without_faults(set)),
        None => set,
    }
}

/// `sigaction`.
///
/// # Safety
/// As `sigaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: i32, new: *const Action, old: *mut Action) -> i32 {
    let real = next!(sigaction: unsafe extern "C" fn(i32, *const Action, *mut Action) -> i32);
    // SAFETY: null or the caller's structures.
    unsafe {
        if let Some(was) = signals::program_action(signal, new.as_ref()) {
            if !old.is_null() {
                old.write(was);
            }
            return 0;
        }
        let Some(f) = real else { return -1 };
        // A handler that runs with these signals blocked would be killed at an armed page.
        let mut copy = new.as_ref().copied();
        let new = match &mut copy {
            Some(a) => {
                a.sa_mask = signals::without_faults(&a.sa_mask);
                std::ptr::from_ref(a)
            }
            None => new,
        };
        f(signal, new, old)
    }
}

macro_rules! plain {
    ($($name:ident $flags:expr;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(signal: i32, handler: usize) -> usize {
            let real = next!($name: unsafe extern "C" fn(i32, usize) -> usize);
            // SAFETY: all fields may be zero; the handler is the caller's.
            unsafe {
                let mut new: Action = std::mem::zeroed();
                new.sa_sigaction = handler;
                new.sa_flags = $flags;
                if let Some(old) = signals::program_action(signal, Some(&new)) {
                    return old.sa_sigaction;
                }
                real.map_or(libc::SIG_ERR, |f| f(signal, handler))
            }
        }
    )* };
}

plain! {
    signal libc::SA_RESTART;
    bsd_signal libc::SA_RESTART;
    ssignal libc::SA_RESTART;
    sysv_signal libc::SA_RESETHAND | libc::SA_NODEFER;
    __sysv_signal libc::SA_RESETHAND | libc::SA_NODEFER;
}

/// `sigset`.
///
/// # Safety
/// As `sigset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(signal: i32, handler: usize) -> usize {
    /// Blocks the signal and leaves its handler (<bits/signum-generic.h>).
    const SIG_HOLD: usize = 2;
    let real = next!(sigset: unsafe extern "C" fn(i32, usize) -> usize);
    // SAFETY: all fields may be zero; the handler is the caller's.
    unsafe {
        let mut new: Action = std::mem::zeroed();
        new.sa_sigaction = handler;
        if let Some(old) = signals::program_action(signal, Some(&new).filter(|_| handler != SIG_HOLD)) {
            return old.sa_sigaction;
        }
        real.map_or(libc::SIG_ERR, |f| f(signal, handler))
    }
}

/// `sigignore`.
///
/// # Safety
/// As `sigignore`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigignore(signal: i32) -> i32 {
    let real = next!(sigignore: unsafe extern "C" fn(i32) -> i32);
    // SAFETY: all fields may be zero.
    unsafe {
        let mut new: Action = std::mem::zeroed();
        new.sa_sigaction = libc::SIG_IGN;
        if signals::program_action(signal, Some(&new)).is_some() {
            return 0;
        }
        real.map_or(-1, |f| f(signal))
    }
}

/// `sighold`. Does not block SIGBUS and SIGSEGV.
///
/// # Safety
/// As `sighold`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sighold(signal: i32) -> i32 {
    let real = next!(sighold: unsafe extern "C" fn(i32) -> i32);
    // SAFETY: asks; the caller's argument.
    unsafe {
        if signals::program_action(signal, None).is_some() {
            return 0;
        }
        real.map_or(-1, |f| f(signal))
    }
}

/// A mask of the first 32 signals, as 4.2BSD has it, without SIGBUS and SIGSEGV.
fn old_mask(mask: i32) -> i32 {
    // SAFETY: all fields may be zero; a set of the C library's begins with the kernel's bits.
    unsafe {
        let mut set: Set = std::mem::zeroed();
        (&raw mut set).cast::<u32>().write(mask as u32);
        let set = signals::without_faults(&set);
        (&raw const set).cast::<u32>().read() as i32
    }
}

macro_rules! old_masks {
    ($($name:ident)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: SIGBUS and SIGSEGV are never blocked.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(mask: i32) -> i32 {
            let real = next!($name: unsafe extern "C-unwind" fn(i32) -> i32);
            // SAFETY: the caller's mask, but for what would be blocked.
            real.map_or(-1, |f| unsafe { f(old_mask(mask)) })
        }
    )* };
}

old_masks! { sigblock sigsetmask sigpause }

macro_rules! masks {
    ($($name:ident($($before:ident: $b:ty),*; set $(, $after:ident: $a:ty)*), [$($span:expr),*];)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: without SIGBUS and SIGSEGV, its buffers published.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($before: $b,)* set: *const Set $(, $after: $a)*) -> i32 {
            type Real = unsafe extern "C-unwind" fn($($b,)* *const Set $(, $a)*) -> i32;
            let Some(f) = next!($name: Real) else { return -1 };
            let mut copy = None;
            let flight = moving::publish(&[$($span),*]);
            // SAFETY: the caller's arguments, but for the set.
            let result = unsafe { f($($before,)* passed(set, &mut copy) $(, $after)*) };
            moving::retire(flight);
            result
        }
    )* };
}

type Time = *const libc::timespec;
type Bits = *mut libc::fd_set;

masks! {
    sigsuspend(; set), [];
    ppoll(p: *mut libc::pollfd, n: libc::nfds_t, t: Time; set), [span(p, n as usize), span(t, 1)];
    __ppoll_chk(p: *mut libc::pollfd, n: libc::nfds_t, t: Time; set, room: usize), [span(p, n as usize), span(t, 1)];
    pselect(n: i32, r: Bits, w: Bits, e: Bits, t: Time; set), [bits(r, n), bits(w, n), bits(e, n), span(t, 1)];
    epoll_pwait(fd: i32, p: *mut libc::epoll_event, n: i32, t: i32; set), [span(p, n.max(0) as usize)];
    pthread_attr_setsigmask_np(a: *mut libc::pthread_attr_t; set), [];
    epoll_pwait2(fd: i32, p: *mut libc::epoll_event, n: i32, t: Time; set), [span(p, n.max(0) as usize), span(t, 1)];
}

macro_rules! blocking {
    ($($name:ident)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: SIGBUS and SIGSEGV are never blocked.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(how: i32, set: *const Set, old: *mut Set) -> i32 {
            type Real = unsafe extern "C" fn(i32, *const Set, *mut Set) -> i32;
            let Some(f) = next!($name: Real) else { return -1 };
            let mut copy = None;
            let flight = moving::publish(&[span(set, 1), span(old, 1)]);
            let asked = set;
            let set = if how == libc::SIG_UNBLOCK {
                set
            } else {
                // SAFETY: the caller's set.
                unsafe { passed(set, &mut copy) }
            };
            // SAFETY: the caller's arguments, but for what would be blocked.
            let result = unsafe { f(how, set, old) };
            moving::retire(flight);
            if result == 0 {
                // SAFETY: null or the caller's set.
                unsafe { asked.as_ref() }.into_iter().for_each(|asked| signals::changed_mask(how, asked));
            }
            result
        }
    )* };
}

blocking! { sigprocmask pthread_sigmask }

/// `sigaltstack`. Puts the program's stack in place of homenode's.
///
/// # Safety
/// As `sigaltstack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> i32 {
    type Real = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> i32;
    let Some(f) = next!(sigaltstack: Real) else { return -1 };
    // SAFETY: the caller's arguments.
    unsafe {
        if let Some(new) = new.as_ref() {
            moving::exclude(span(new.ss_sp, new.ss_size));
        }
        handler_stack::program_stack(new, old, f)
    }
}

type Text = *const c_char;
type Texts = *const Text;

macro_rules! processes {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: nothing is armed while it runs, and the other program gets no signal blocked that homenode blocks.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            let Some(f) = next!($name: unsafe extern "C-unwind" fn($($ty),*) -> $ret) else {
                return $crate::interpose::Absent::absent();
            };
            let quiet = moving::before_process();
            // A child that shares the parent's memory does not return here, so it releases this
            // first.
            let comes_back = state::is_own_process();
            if !comes_back {
                moving::retire(quiet);
            }
            let blocked = signals::let_through();
            // SAFETY: the caller's arguments.
            let result = unsafe { f($($arg),*) };
            signals::block_again(blocked);
            if comes_back {
                moving::retire(quiet);
            }
            result
        }
    )* };
}

processes! {
    execve(path: Text, args: Texts, env: Texts) -> i32;
    execv(path: Text, args: Texts) -> i32;
    execvp(path: Text, args: Texts) -> i32;
    execvpe(path: Text, args: Texts, env: Texts) -> i32;
    fexecve(fd: i32, args: Texts, env: Texts) -> i32;
    execveat(at: i32, path: Text, args: Texts, env: Texts, flags: i32) -> i32;
    posix_spawn(pid: *mut i32, path: Text, files: *const c_void, a: *const c_void, args: Texts, env: Texts) -> i32;
    posix_spawnp(pid: *mut i32, path: Text, files: *const c_void, a: *const c_void, args: Texts, env: Texts) -> i32;
    system(command: Text) -> i32;
    popen(command: Text, mode: Text) -> *mut libc::FILE;
}
