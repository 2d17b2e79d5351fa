//! The mutexes of the program's own code; those of the system's libraries are their own affair. Who
//! waits for a condition gives the mutex up meanwhile.

use std::ffi::c_void;

use homenode_hooks::next::NextSymbol;
use homenode_trace::next::next;
use homenode_trace::{locks, modules};

type Mutex = *mut libc::pthread_mutex_t;
type Condition = *mut libc::pthread_cond_t;
type Time = *const libc::timespec;

/// The loader's function of that name and version: conditions have an older one, too, of another
/// layout.
macro_rules! version {
    ($name:ident, $version:literal, $ty:ty) => {{
        static NEXT: NextSymbol = NextSymbol::new(homenode_hooks::name!($name), Some($version));
        // SAFETY: the function of this name has this type; null becomes None.
        unsafe { std::mem::transmute::<*mut c_void, Option<$ty>>(NEXT.get()) }
    }};
}

homenode_hooks::with_caller! {
    pthread_cond_wait, "rdx", wait;
    pthread_cond_timedwait, "rcx", wait_until;
    pthread_cond_clockwait, "r8", wait_by_clock;
}

/// Gives the mutex up while `real` waits. A thread that is cancelled there leaves through these
/// frames, which hold nothing.
fn waiting(mutex: Mutex, site: usize, real: impl FnOnce() -> i32) -> i32 {
    if !modules::is_program(site) {
        return real();
    }
    locks::releases(mutex as u64);
    let code = real();
    locks::acquired(mutex as u64);
    code
}

extern "C-unwind" fn wait(condition: Condition, mutex: Mutex, site: usize) -> i32 {
    type Wait = unsafe extern "C-unwind" fn(Condition, Mutex) -> i32;
    let Some(f) = version!(pthread_cond_wait, c"GLIBC_2.3.2", Wait) else { return libc::ENOSYS };
    // SAFETY: the C library's function of this version and type, with the caller's arguments.
    waiting(mutex, site, || unsafe { f(condition, mutex) })
}

extern "C-unwind" fn wait_until(condition: Condition, mutex: Mutex, until: Time, site: usize) -> i32 {
    type Wait = unsafe extern "C-unwind" fn(Condition, Mutex, Time) -> i32;
    let Some(f) = version!(pthread_cond_timedwait, c"GLIBC_2.3.2", Wait) else { return libc::ENOSYS };
    // SAFETY: as in `wait`.
    waiting(mutex, site, || unsafe { f(condition, mutex, until) })
}

extern "C-unwind" fn wait_by_clock(c: Condition, mutex: Mutex, clock: i32, until: Time, site: usize) -> i32 {
    type Wait = unsafe extern "C-unwind" fn(Condition, Mutex, i32, Time) -> i32;
    let Some(f) = version!(pthread_cond_clockwait, c"GLIBC_2.30", Wait) else { return libc::ENOSYS };
    // SAFETY: as in `wait`.
    waiting(mutex, site, || unsafe { f(c, mutex, clock, until) })
}

macro_rules! mutex {
    ($($name:ident $body:ident $acquires:literal;)*) => {
        homenode_hooks::with_caller! { $( $name, "rsi", $body; )* }
        $(
            extern "C" fn $body(mutex: Mutex, site: usize) -> i32 {
                let tells = modules::is_program(site);
                if tells && !$acquires {
                    locks::releases(mutex as u64);
                }
                let Some(real) = next!($name: unsafe extern "C" fn(Mutex) -> i32) else { return libc::ENOSYS };
                // SAFETY: the caller's argument.
                let code = unsafe { real(mutex) };
                if tells && $acquires && code == 0 {
                    locks::acquired(mutex as u64);
                }
                code
            }
        )*
    };
}

mutex! {
    pthread_mutex_lock lock true;
    pthread_mutex_trylock try_lock true;
    pthread_mutex_unlock unlock false;
}
