//! Allocations of at least 64 KiB by instrumented code, which are the objects of the recording.
//! Smaller ones share the heap's pages and are not distinguished.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_hooks::with_caller;
use homenode_log::Mark;
use homenode_recorder::{process, state};

use crate::next::next;
use crate::{emulator, modules, python, thread};

/// Smallest allocation that is an object.
pub const OBJECT: usize = 64 << 10;

/// Live objects by address, so that `free` of anything else costs one look. Open addressing. When
/// the table is full, further objects are recorded, and only their end is missed.
static OBJECTS: [AtomicUsize; 1 << 14] = [const { AtomicUsize::new(0) }; 1 << 14];
const GONE: usize = 1;
const PROBES: usize = 64;

fn slots(address: usize) -> impl Iterator<Item = &'static AtomicUsize> {
    let first = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 50;
    (0..PROBES).map(move |i| &OBJECTS[(first + i) % OBJECTS.len()])
}

/// An allocation of `bytes` at `p` by the call that returns to `site`.
pub fn born(p: *mut c_void, bytes: usize, site: usize) {
    if p.is_null() || bytes < OBJECT || !state::recording() {
        return;
    }
    let errno = process::errno();
    let (site, caller) = place(site);
    enter(p, bytes, site, caller);
    process::set_errno(errno);
}

/// The place of an allocation in the source: a line of Python, or the call's return address and
/// that of the function around it. In programs built without the recorder, libraries allocate, too;
/// the place is then the nearest call of the program's own.
fn place(site: usize) -> (usize, usize) {
    if site != 0
        && let Some(python) = python::site()
    {
        return (python as usize, 0);
    }
    if site == 0 || !emulator::outside() || modules::is_program(site) {
        return (site, caller_of(site));
    }
    let mut search = Search { site, found: false, caller: 0, left: FRAMES, outside: true };
    // SAFETY: as in `caller_of`.
    unsafe { _Unwind_Backtrace(frame, (&raw mut search).cast()) };
    (search.site, search.caller)
}

fn enter(p: *mut c_void, bytes: usize, site: usize, caller: usize) {
    let free = slots(p as usize).find(|s| s.load(Ordering::Relaxed) <= GONE);
    if let Some(slot) = free {
        slot.store(p as usize, Ordering::Relaxed);
    }
    let (address, bytes, site, caller) = (p as u64, bytes as u64, site as u64, caller as u64);
    thread::mark(|| Mark::Alloc { address, bytes, site, caller, order: state::order() });
}

/// Frames searched for the allocating one. The recorder's own frames come first.
const FRAMES: usize = 24;

struct Search {
    site: usize,
    found: bool,
    caller: usize,
    left: usize,
    /// Whether the site is outside of the program. The first frame inside of the program then
    /// becomes the site.
    outside: bool,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(f: extern "C" fn(*mut c_void, *mut c_void) -> i32, data: *mut c_void) -> i32;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

extern "C" fn frame(context: *mut c_void, search: *mut c_void) -> i32 {
    const GO_ON: i32 = 0;
    const STOP: i32 = 4; // _URC_NORMAL_STOP
    // SAFETY: the unwinder's own context; the search of `caller_of`, whose frame lives on.
    let (search, pc) = unsafe { (&mut *search.cast::<Search>(), _Unwind_GetIP(context)) };
    if search.found {
        search.caller = pc;
        return STOP;
    }
    search.found = if search.outside { modules::is_program(pc) } else { pc == search.site };
    if search.found {
        search.site = pc;
    }
    search.left -= 1;
    if search.left == 0 { STOP } else { GO_ON }
}

/// Return address of the function that contains the call at `site`; 0 if the stack does not show
/// it.
fn caller_of(site: usize) -> usize {
    let mut search = Search { site, found: false, caller: 0, left: FRAMES, outside: false };
    // SAFETY: the unwinder walks this thread's stack and calls `frame` with our search.
    unsafe { _Unwind_Backtrace(frame, (&raw mut search).cast()) };
    search.caller
}

/// Called before the memory is freed, so that nobody else can get it first.
pub fn dies(p: *mut c_void) {
    if p.is_null() || !state::recording() {
        return;
    }
    for slot in slots(p as usize) {
        match slot.load(Ordering::Relaxed) {
            0 => return,
            a if a == p as usize => {
                slot.store(GONE, Ordering::Relaxed);
                let errno = process::errno();
                thread::mark(|| Mark::Free { address: p as u64, order: state::order() });
                process::set_errno(errno);
                return;
            }
            _ => {}
        }
    }
}

with_caller! {
    __wrap_malloc, "rsi", malloc;
    __wrap_calloc, "rdx", calloc;
    __wrap_realloc, "rdx", realloc;
    __wrap_posix_memalign, "rcx", posix_memalign;
    __wrap_aligned_alloc, "rdx", aligned_alloc;
    __wrap_memalign, "rdx", memalign;
    __wrap_mremap, "r9", mremap;
    __wrap__Znwm, "rsi", new;
    __wrap__Znam, "rsi", new_array;
    __wrap__ZnwmSt11align_val_t, "rdx", new_aligned;
    __wrap__ZnamSt11align_val_t, "rdx", new_array_aligned;
    __wrap__ZnwmRKSt9nothrow_t, "rdx", new_nothrow;
    __wrap__ZnamRKSt9nothrow_t, "rdx", new_array_nothrow;
    __wrap__ZnwmSt11align_val_tRKSt9nothrow_t, "rcx", new_aligned_nothrow;
    __wrap__ZnamSt11align_val_tRKSt9nothrow_t, "rcx", new_array_aligned_nothrow;
}

extern "C" fn malloc(bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: the caller's arguments.
    let p = unsafe { libc::malloc(bytes) };
    born(p, bytes, site);
    p
}

extern "C" fn calloc(n: usize, size: usize, site: usize) -> *mut c_void {
    // SAFETY: the caller's arguments.
    let p = unsafe { libc::calloc(n, size) };
    born(p, n.saturating_mul(size), site);
    p
}

extern "C" fn realloc(p: *mut c_void, bytes: usize, site: usize) -> *mut c_void {
    dies(p);
    // SAFETY: the caller's arguments.
    let new = unsafe { libc::realloc(p, bytes) };
    born(new, bytes, site);
    new
}

extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, bytes: usize, site: usize) -> i32 {
    // SAFETY: the caller's arguments.
    let code = unsafe { libc::posix_memalign(out, align, bytes) };
    if code == 0 {
        // SAFETY: the function succeeded, so it wrote to `out`.
        born(unsafe { *out }, bytes, site);
    }
    code
}

extern "C" fn aligned_alloc(align: usize, bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: the caller's arguments.
    let p = unsafe { libc::aligned_alloc(align, bytes) };
    born(p, bytes, site);
    p
}

extern "C" fn memalign(align: usize, bytes: usize, site: usize) -> *mut c_void {
    // SAFETY: the caller's arguments.
    let p = unsafe { libc::memalign(align, bytes) };
    born(p, bytes, site);
    p
}

/// `free`.
///
/// # Safety
/// As `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_free(p: *mut c_void) {
    dies(p);
    // SAFETY: the caller's pointer.
    unsafe { libc::free(p) }
}

/// `mmap`. Its objects have no call site: six arguments leave no register for it.
///
/// # Safety
/// As `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_mmap(
    at: *mut c_void,
    bytes: usize,
    prot: i32,
    flags: i32,
    fd: i32,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's arguments.
    let p = unsafe { libc::mmap(at, bytes, prot, flags, fd, offset) };
    if p != libc::MAP_FAILED {
        born(p, bytes, 0);
    }
    p
}

/// `munmap`. Ends the object that starts there; a part of one goes on counting as the object.
///
/// # Safety
/// As `munmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_munmap(at: *mut c_void, bytes: usize) -> i32 {
    dies(at);
    // SAFETY: the caller's arguments.
    unsafe { libc::munmap(at, bytes) }
}

extern "C" fn mremap(
    old: *mut c_void,
    old_bytes: usize,
    bytes: usize,
    flags: i32,
    at: *mut c_void,
    site: usize,
) -> *mut c_void {
    dies(old);
    // SAFETY: the caller's arguments.
    let p = unsafe { libc::mremap(old, old_bytes, bytes, flags, at) };
    if p == libc::MAP_FAILED {
        born(old, old_bytes, site);
    } else {
        born(p, bytes, site);
    }
    p
}

macro_rules! operator_new {
    ($($name:ident $symbol:ident($($arg:ident: $ty:ty),*);)*) => { $(
        extern "C-unwind" fn $name(bytes: usize $(, $arg: $ty)*, site: usize) -> *mut c_void {
            let real = next!(first $symbol: unsafe extern "C-unwind" fn(usize $(, $ty)*) -> *mut c_void);
            let p = match real {
                // SAFETY: the next function of this name and type, with the caller's arguments.
                Some(f) => unsafe { f(bytes $(, $arg)*) }, // may throw std::bad_alloc through this frame
                // SAFETY: any size may be asked for.
                None => unsafe { libc::malloc(bytes) },
            };
            born(p, bytes, site);
            p
        }
    )* };
}

operator_new! {
    new _Znwm();
    new_array _Znam();
    new_aligned _ZnwmSt11align_val_t(align: usize);
    new_array_aligned _ZnamSt11align_val_t(align: usize);
    new_nothrow _ZnwmRKSt9nothrow_t(tag: *const c_void);
    new_array_nothrow _ZnamRKSt9nothrow_t(tag: *const c_void);
    new_aligned_nothrow _ZnwmSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void);
    new_array_aligned_nothrow _ZnamSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void);
}

macro_rules! operator_delete {
    ($($wrap:ident $symbol:ident($($arg:ident: $ty:ty),*);)*) => { $(
        /// `operator delete`.
        ///
        /// # Safety
        /// As the operator.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $wrap(p: *mut c_void $(, $arg: $ty)*) {
            dies(p);
            match next!(first $symbol: unsafe extern "C" fn(*mut c_void $(, $ty)*)) {
                // SAFETY: the next function of this name and type, with the caller's arguments.
                Some(f) => unsafe { f(p $(, $arg)*) },
                // SAFETY: the caller's pointer.
                None => unsafe { libc::free(p) },
            }
        }
    )* };
}

operator_delete! {
    __wrap__ZdlPv _ZdlPv();
    __wrap__ZdaPv _ZdaPv();
    __wrap__ZdlPvm _ZdlPvm(bytes: usize);
    __wrap__ZdaPvm _ZdaPvm(bytes: usize);
    __wrap__ZdlPvSt11align_val_t _ZdlPvSt11align_val_t(align: usize);
    __wrap__ZdaPvSt11align_val_t _ZdaPvSt11align_val_t(align: usize);
    __wrap__ZdlPvmSt11align_val_t _ZdlPvmSt11align_val_t(bytes: usize, align: usize);
    __wrap__ZdaPvmSt11align_val_t _ZdaPvmSt11align_val_t(bytes: usize, align: usize);
    __wrap__ZdlPvRKSt9nothrow_t _ZdlPvRKSt9nothrow_t(tag: *const c_void);
    __wrap__ZdaPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t(tag: *const c_void);
    __wrap__ZdlPvSt11align_val_tRKSt9nothrow_t _ZdlPvSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void);
    __wrap__ZdaPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t(align: usize, tag: *const c_void);
}
