//! Large allocations begin on a page, for `homenode run --align`.
//!
//! The memory comes from the program's own allocator, from its `memalign`. So `free`, `realloc` and
//! `malloc_usable_size` know it. Where `malloc` and `memalign` are not of one library, nothing is
//! aligned.
//!
//! `calloc` promises zeros. Memory that glibc has mapped for one allocation is zero without a
//! write, and a write here would be the first touch of its pages. Other memory goes back, and the
//! allocator's own `calloc` serves the program.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering};

use homenode_runtime::watch::objects::SMALLEST;

use crate::allocator::allocator;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Not asked for, or not possible.
const OFF: u8 = 0;
/// All but `calloc`.
const ON: u8 = 1;
/// `calloc`, too: the allocator is glibc's.
const ZEROED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(OFF);

type Memalign = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

/// Whether it was asked for and is possible.
pub fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) != OFF
}

/// Aligns from now on, if the program's allocator can.
///
/// # Errors
/// Why it cannot.
pub fn start() -> Result<(), String> {
    let malloc = allocator!(malloc: unsafe extern "C" fn(usize) -> *mut c_void);
    let memalign = allocator!(memalign: Memalign);
    let free = allocator!(free: Free);
    let (Some(malloc), Some(memalign), Some(free)) = (malloc, memalign, free) else {
        return Err("--align: the program's allocator has no memalign".into());
    };
    let own = library(malloc as *const c_void);
    if own == 0 || library(memalign as *const c_void) != own || library(free as *const c_void) != own {
        return Err("--align: malloc, memalign and free are not of one library".into());
    }
    // `gnu_get_libc_version` is glibc's alone, and no allocator defines it.
    let is_glibc = library(libc::gnu_get_libc_version as *const c_void) == own;
    STATE.store(if is_glibc { ZEROED } else { ON }, Ordering::Relaxed);
    Ok(())
}

/// Where the library with this code begins; 0: nobody knows.
fn library(code: *const c_void) -> usize {
    homenode_hooks::loaded::containing(code as usize).map_or(0, |file| file.dli_fbase as usize)
}

/// Memory from the program's allocator that begins on a page; `None`: the allocator is to be asked
/// as usual.
#[inline]
pub fn page(bytes: usize) -> Option<*mut c_void> {
    if bytes < SMALLEST || !is_on() {
        return None;
    }
    let memalign = allocator!(memalign: Memalign)?;
    // SAFETY: the allocator's function of this name and type.
    let p = unsafe { memalign(PAGE, bytes) };
    (!p.is_null()).then_some(p)
}

/// The same with zeros.
#[inline]
pub fn zeroed(bytes: usize) -> Option<*mut c_void> {
    if bytes < SMALLEST || STATE.load(Ordering::Relaxed) != ZEROED {
        return None;
    }
    let p = page(bytes)?;
    // SAFETY: glibc keeps the size of a chunk, and whether the chunk was mapped alone (bit 1), in
    // front of it. The first word tells whether glibc fills new memory (`M_PERTURB`).
    let is_zero = unsafe { p.cast::<usize>().sub(1).read() & 2 != 0 && p.cast::<usize>().read() == 0 };
    if is_zero {
        return Some(p);
    }
    let free = allocator!(free: Free)?;
    // SAFETY: just allocated by the same allocator, and nobody else knows it.
    unsafe { free(p) };
    None
}

/// The alignment that an allocation gets which asks for `align`.
#[inline]
pub fn of(align: usize, bytes: usize) -> usize {
    if bytes >= SMALLEST && align < PAGE && is_on() { PAGE } else { align }
}
