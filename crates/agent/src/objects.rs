//! The program's large allocations, of at least 64 KiB: which live, and the reports of their births
//! and deaths. The front ends of allocators ([`crate::alloc`], [`crate::cpp`]) and of mappings
//! (`interpose_memory`) tell this table what they see.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use homenode_runtime::moving::{self, InFlight, Span};
use homenode_runtime::watch::objects::SMALLEST;

use crate::told::Told;
use crate::{backtrace, distributed, python, state};

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

thread_local! {
    /// Address of the large object that this thread has noted last. An operator of C++ may call
    /// `malloc`, which has noted the same object already.
    static NOTED: Cell<usize> = const { Cell::new(0) };
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
        let frames = state::guarded(backtrace::callers).unwrap_or_default();
        state::tell(Told::Born { address, bytes, frames });
        python::born(address);
    } else {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
    NOTED.set(address);
}

/// Calls `allocate`, and notes the object if it is large and not noted yet.
#[inline]
pub fn noted(bytes: usize, allocate: impl FnOnce() -> usize) -> usize {
    if bytes < SMALLEST {
        return allocate();
    }
    NOTED.set(0);
    let p = allocate();
    if NOTED.get() != p {
        large(p as *mut c_void, bytes);
    }
    p
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

/// For the front end of `mmap`: private anonymous memory was mapped.
#[inline]
pub fn mapped(p: *mut c_void, bytes: usize) {
    if p != libc::MAP_FAILED {
        large(p, bytes);
        // An allocator may be about to give this, or a part of it, to somebody.
        NOTED.set(0);
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
