//! Front ends of the allocator. Allocations of at least 64 KiB are objects. Each function passes
//! the call on to the program's allocator: the function of the same name behind this library.
//! Fortran's `allocate` calls `malloc`, and so does C++'s `new` unless an allocator brings its own
//! ([`cpp`]). Return addresses on the stack tell the source line.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use homenode_hooks::early;
use homenode_runtime::moving::{self, InFlight, Span};
use homenode_runtime::watch::objects::{FRAMES, SMALLEST};

use crate::allocator::allocator;
use crate::told::Told;
use crate::{align, clib, cpp, distributed, python, state};

/// A live object.
struct Place {
    /// 0: free.
    address: AtomicUsize,
    bytes: AtomicUsize,
}

const PLACES: usize = 1 << 14;
/// Live objects by address. An object without a place is counted, and the runtime does not hear of
/// it.
static OBJECTS: [Place; PLACES] =
    [const { Place { address: AtomicUsize::new(0), bytes: AtomicUsize::new(0) } }; PLACES];
/// How many there are whose first place is this one, so that `free` of anything else costs one
/// look, however many have come and gone.
static HERE: [AtomicU16; PLACES] = [const { AtomicU16::new(0) }; PLACES];
/// Objects that found none.
static LOST: AtomicUsize = AtomicUsize::new(0);
/// Places that an object may be at.
const PROBES: usize = 64;

fn first_place(address: usize) -> usize {
    (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 50
}

fn places(first: usize) -> impl Iterator<Item = &'static Place> {
    (0..PROBES).map(move |i| &OBJECTS[(first + i) % PLACES])
}

/// The code at `caller` has got this from the allocator.
#[inline]
fn born(p: *mut c_void, bytes: usize, caller: usize) -> *mut c_void {
    large(p, bytes);
    clib::allocated(p, bytes, caller)
}

/// An object, if it is large.
#[inline]
pub fn large(p: *mut c_void, bytes: usize) {
    if bytes >= SMALLEST && !p.is_null() && state::running() && !state::inside() {
        enter(p as usize, bytes);
    }
}

#[cold]
fn enter(address: usize, bytes: usize) {
    if keep(address, bytes) {
        // At once: what the program excludes from now on is this object's.
        moving::fresh(Span::new(address, bytes));
        let frames = state::guarded(backtrace).unwrap_or_default();
        state::tell(Told::Born { address, bytes, frames });
        python::born(address);
    } else {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
    cpp::told(address);
}

/// What was not followed, in words.
pub fn lost() -> Option<String> {
    let lost = LOST.load(Ordering::Relaxed);
    (lost > 0).then(|| {
        format!(
            "{lost} allocations were not followed, for too many lived at once (there is room for {PLACES})"
        )
    })
}

/// Whether there was a place for it.
fn keep(address: usize, bytes: usize) -> bool {
    let first = first_place(address);
    let free = |place: &&Place| {
        place.address.load(Ordering::Relaxed) == 0
            && place.address.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    let Some(place) = places(first).find(free) else { return false };
    place.bytes.store(bytes, Ordering::Relaxed);
    HERE[first].fetch_add(1, Ordering::Relaxed);
    true
}

/// The length of what was an object until now. Its allocator orders who has it before who gives it
/// back.
#[inline]
fn no_more(p: *mut c_void) -> Option<usize> {
    let first = first_place(p as usize);
    if HERE[first].load(Ordering::Relaxed) == 0 || p.is_null() || !state::running() {
        return None;
    }
    let place = places(first).find(|place| place.address.load(Ordering::Relaxed) == p as usize)?;
    let bytes = place.bytes.load(Ordering::Relaxed);
    place.address.store(0, Ordering::Relaxed);
    HERE[first].fetch_sub(1, Ordering::Relaxed);
    Some(bytes)
}

/// Called before the memory goes back, so that nobody else can get it first. What it returns is to
/// be retired when the memory has gone: until then nobody arms it. Waits for nobody who has the
/// driver: he may be waiting for the caller, by a lock of the loader's or of an allocator's.
#[inline]
pub fn dies(p: *mut c_void) -> Option<InFlight> {
    no_more(p).map(|bytes| gone(p as usize, bytes))
}

#[cold]
fn gone(address: usize, bytes: usize) -> InFlight {
    state::tell(Told::Died(address));
    distributed::gone(Span::new(address, bytes));
    moving::before_free(Span::new(address, bytes))
}

unsafe extern "C" {
    fn _Unwind_Backtrace(f: extern "C" fn(*mut c_void, *mut c_void) -> i32, data: *mut c_void) -> i32;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

struct Walk {
    own: (usize, usize),
    frames: [u64; FRAMES],
    found: usize,
    left: usize,
}

extern "C" fn frame(context: *mut c_void, walk: *mut c_void) -> i32 {
    const GO_ON: i32 = 0;
    const STOP: i32 = 4; // _URC_NORMAL_STOP
    // SAFETY: the unwinder's own context; the walk of `backtrace`, whose frame lives on.
    let (walk, pc) = unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(context)) };
    if !(walk.own.0..walk.own.1).contains(&pc) {
        walk.frames[walk.found] = pc as u64;
        walk.found += 1;
    }
    walk.left -= 1;
    if walk.found == FRAMES || walk.left == 0 || pc == 0 { STOP } else { GO_ON }
}

/// Return addresses of the calls that led here, without homenode's own.
fn backtrace() -> [u64; FRAMES] {
    let mut walk = Walk { own: own_code(), frames: [0; FRAMES], found: 0, left: 32 };
    // SAFETY: the unwinder walks this thread's stack and calls `frame` with our walk.
    unsafe { _Unwind_Backtrace(frame, (&raw mut walk).cast()) };
    walk.frames
}

/// Where this library's code lies.
pub fn own_code() -> (usize, usize) {
    static LOW: AtomicUsize = AtomicUsize::new(0);
    static HIGH: AtomicUsize = AtomicUsize::new(0);
    if LOW.load(Ordering::Relaxed) == 0 {
        let here = own_code as *const () as u64;
        let modules = crate::modules::loaded();
        let own = modules.iter().find(|m| (m.base + m.low..m.base + m.high).contains(&here));
        if let Some(m) = own {
            HIGH.store((m.base + m.high) as usize, Ordering::Relaxed);
            LOW.store((m.base + m.low) as usize, Ordering::Relaxed);
        }
    }
    (LOW.load(Ordering::Relaxed), HIGH.load(Ordering::Relaxed))
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

/// For the front end of `mmap`: private anonymous memory was mapped.
#[inline]
pub fn mapped(p: *mut c_void, bytes: usize) {
    if p != libc::MAP_FAILED {
        large(p, bytes);
        // An allocator may be about to give this, or a part of it, to somebody.
        cpp::told(0);
    }
}

/// For the front ends of `munmap`, `mremap` and `mmap`: this memory is about to go, and with it the
/// object that starts there. As [`dies`].
#[inline]
pub fn unmaps(memory: Span) -> InFlight {
    if let Some(bytes) = no_more(memory.start as *mut c_void) {
        state::tell(Told::Died(memory.start));
        let rest = Span { start: memory.end, end: memory.start.saturating_add(bytes) };
        if !rest.is_empty() {
            // The rest of the object stays with the program, and no driver asks for it any more.
            moving::disarm(rest);
        }
    }
    moving::before_free(memory)
}
