//! Calls that change mappings, and memory that a thread waits on.

use std::ffi::c_void;

use homenode_runtime::moving::{self, InFlight, Span};

use crate::interpose::{front, span};
use crate::next::next;
use crate::{distributed, objects, state};

macro_rules! maps {
    ($($name:ident)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: what it replaces is disarmed; private anonymous memory is an object.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: *mut c_void, bytes: usize, access: i32, flags: i32, fd: i32, offset: i64
        ) -> *mut c_void {
            type Real = unsafe extern "C" fn(*mut c_void, usize, i32, i32, i32, i64) -> *mut c_void;
            let Some(f) = next!($name: Real) else { return libc::MAP_FAILED };
            let mut replaced = None;
            if flags & libc::MAP_FIXED != 0 {
                replaced = Some(objects::unmaps(span(at, bytes)));
            }
            // SAFETY: the caller's arguments.
            let p = unsafe { f(at, bytes, access, flags, fd, offset) };
            replaced.into_iter().for_each(moving::retire);
            let stack = flags & (libc::MAP_STACK | libc::MAP_GROWSDOWN) != 0;
            let plain = flags & libc::MAP_ANONYMOUS != 0 && flags & libc::MAP_PRIVATE != 0 && !stack;
            if plain && access & libc::PROT_READ != 0 && p != libc::MAP_FAILED {
                objects::mapped(p, bytes);
            }
            p
        }
    )* };
}

maps! { mmap mmap64 }

front! {
    munmap(at: *mut c_void, bytes: usize) -> i32, {
        distributed::gone(span(at, bytes));
        objects::unmaps(span(at, bytes))
    };
    mprotect(at: *mut c_void, bytes: usize, access: i32) -> i32, moving::before_change(span(at, bytes));
    pkey_mprotect(at: *mut c_void, bytes: usize, access: i32, key: i32) -> i32,
        moving::before_change(span(at, bytes));
    madvise(at: *mut c_void, bytes: usize, advice: i32) -> i32, advised(span(at, bytes), advice);
    posix_madvise(at: *mut c_void, bytes: usize, advice: i32) -> i32, advised(span(at, bytes), advice);
    mlock(at: *const c_void, bytes: usize) -> i32, moving::before_change(span(at, bytes));
    mlock2(at: *const c_void, bytes: usize, flags: u32) -> i32, moving::before_change(span(at, bytes));
    mlockall(flags: i32) -> i32, moving::pins("a program that locks all its memory (mlockall)");
}

fn advised(memory: Span, advice: i32) -> InFlight {
    // Programs give this advice before a device registers memory.
    if matches!(advice, libc::MADV_DONTFORK | libc::MADV_WIPEONFORK) {
        moving::exclude(memory);
    }
    moving::before_change(memory)
}

/// `mremap`. Disarms the old range. The new range is an object.
///
/// # Safety
/// As `mremap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_bytes: usize,
    bytes: usize,
    flags: i32,
    to: *mut c_void,
) -> *mut c_void {
    type Real = unsafe extern "C" fn(*mut c_void, usize, usize, i32, *mut c_void) -> *mut c_void;
    let Some(f) = next!(mremap: Real) else { return libc::MAP_FAILED };
    let source = objects::unmaps(span(old, old_bytes));
    let mut target = None;
    if flags & libc::MREMAP_FIXED != 0 {
        target = Some(objects::unmaps(span(to, bytes)));
    }
    // SAFETY: the caller's arguments; the last is looked at with MREMAP_FIXED alone.
    let mut p = unsafe { f(old, old_bytes, bytes, flags, to) };
    if p == libc::MAP_FAILED && last_error() == libc::EFAULT {
        p = in_parts(span(old, old_bytes), bytes, flags, to);
    }
    moving::retire(source);
    target.into_iter().for_each(moving::retire);
    if p == libc::MAP_FAILED {
        objects::mapped(old, old_bytes);
    } else {
        objects::mapped(p, bytes);
        if flags & libc::MREMAP_DONTUNMAP != 0 {
            objects::mapped(old, old_bytes);
        }
    }
    p
}

fn last_error() -> i32 {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() }
}

/// Moves a range that arming has split into several mappings. Returns what `mremap` does.
fn in_parts(old: Span, bytes: usize, flags: i32, to: *mut c_void) -> *mut c_void {
    let known = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let stays = flags & libc::MREMAP_DONTUNMAP != 0;
    let plain = flags & !known == 0 && flags & libc::MREMAP_MAYMOVE != 0 && (!stays || bytes == old.len());
    let to = (flags & libc::MREMAP_FIXED != 0).then_some(to as usize);
    let moved =
        plain.then(|| state::guarded(|| moving::remap_in_parts(old, bytes, to, stays))).flatten().flatten();
    moved.map_or(libc::MAP_FAILED, |p| p as *mut c_void)
}

/// Excludes memory that a thread is about to sleep on from arming. The kernel reads it, and glibc
/// aborts if that read fails.
#[inline]
fn sleeps_on<T>(p: *const T) {
    if state::running() {
        moving::exclude(span(p, 1));
    }
}

/// Excludes a mutex from arming if it is robust or inherits priorities. A try to lock it does not
/// sleep. But the kernel reads robust mutexes, and their neighbours in the thread's list, when the
/// owner dies.
fn tries(mutex: *const libc::pthread_mutex_t) {
    /// Offset of a mutex's kind in glibc, and the bits of a robust mutex and of one that inherits
    /// priorities.
    const KIND: usize = 16;
    const KERNEL_LOOKS: i32 = 16 | 32;
    // SAFETY: the caller's mutex.
    if state::running() && unsafe { mutex.byte_add(KIND).cast::<i32>().read() } & KERNEL_LOOKS != 0 {
        sleeps_on(mutex);
    }
}

/// Excludes a once-flag that is not done from arming: a thread may be about to sleep on it.
fn once(control: *const i32) {
    /// glibc's `__PTHREAD_ONCE_DONE`.
    const DONE: i32 = 2;
    // SAFETY: the caller's; others may write it.
    if state::running() && unsafe { control.read_volatile() } & DONE == 0 {
        sleeps_on(control);
    }
}

type Time = *const libc::timespec;
/// C11's mutexes are glibc's POSIX mutexes.
type Mutex = *mut libc::pthread_mutex_t;
type Condition = *mut libc::pthread_cond_t;
type ReadWrite = *mut libc::pthread_rwlock_t;
type Run = extern "C-unwind" fn();

front! {
    pthread_mutex_lock(m: Mutex) -> i32, sleeps_on(m);
    pthread_mutex_trylock(m: Mutex) -> i32, tries(m);
    pthread_mutex_timedlock(m: Mutex, t: Time) -> i32, sleeps_on(m);
    pthread_mutex_clocklock(m: Mutex, clock: libc::clockid_t, t: Time) -> i32, sleeps_on(m);
    pthread_cond_clockwait(c: Condition, m: Mutex, clock: libc::clockid_t, t: Time) -> i32, {
        sleeps_on(c);
        sleeps_on(m);
    };
    pthread_rwlock_clockrdlock(m: ReadWrite, clock: libc::clockid_t, t: Time) -> i32, sleeps_on(m);
    pthread_rwlock_clockwrlock(m: ReadWrite, clock: libc::clockid_t, t: Time) -> i32, sleeps_on(m);
    sem_clockwait(m: *mut libc::sem_t, clock: libc::clockid_t, t: Time) -> i32, sleeps_on(m);
    mtx_lock(m: Mutex) -> i32, sleeps_on(m);
    mtx_timedlock(m: Mutex, t: Time) -> i32, sleeps_on(m);
    cnd_wait(c: Condition, m: Mutex) -> i32, {
        sleeps_on(c);
        sleeps_on(m);
    };
    cnd_timedwait(c: Condition, m: Mutex, t: Time) -> i32, {
        sleeps_on(c);
        sleeps_on(m);
    };
    pthread_once(control: *mut i32, run: Run) -> i32, once(control);
    call_once(control: *mut i32, run: Run) -> (), once(control);
    pthread_rwlock_rdlock(m: ReadWrite) -> i32, sleeps_on(m);
    pthread_rwlock_wrlock(m: ReadWrite) -> i32, sleeps_on(m);
    pthread_rwlock_timedrdlock(m: ReadWrite, t: Time) -> i32, sleeps_on(m);
    pthread_rwlock_timedwrlock(m: ReadWrite, t: Time) -> i32, sleeps_on(m);
    pthread_barrier_wait(m: *mut libc::pthread_barrier_t) -> i32, sleeps_on(m);
    sem_wait(m: *mut libc::sem_t) -> i32, sleeps_on(m);
    sem_timedwait(m: *mut libc::sem_t, t: Time) -> i32, sleeps_on(m);
    /// Memory that the program uses as a stack.
    pthread_attr_setstack(a: *mut libc::pthread_attr_t, p: *mut c_void, n: usize) -> i32,
        moving::exclude(span(p, n));
}

macro_rules! conditions {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => { $(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(c: Condition, m: Mutex $(, $arg: $ty)*) -> i32 {
            type Real = unsafe extern "C-unwind" fn(Condition, Mutex $(, $ty)*) -> i32;
            // Another version exists, of 1998.
            let Some(f) = next!($name, c"GLIBC_2.3.2": Real) else { return libc::ENOSYS };
            sleeps_on(c);
            sleeps_on(m);
            // SAFETY: the caller's arguments.
            unsafe { f(c, m $(, $arg)*) }
        }
    )* };
}

conditions! {
    pthread_cond_wait();
    pthread_cond_timedwait(t: Time);
}
