//! This library's own memory: it comes from glibc's heap, whatever allocator the program has.
//!
//! An allocator of the program (jemalloc) calls `mmap`, `madvise` and `munmap` while it holds its
//! locks. This library interposes these calls and takes notes. It must not ask that allocator for
//! the memory of its notes.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_calloc(n: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(p: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void;
    fn __libc_free(p: *mut c_void);
}

/// The addresses of glibc's functions. Allocators such as mimalloc define some of these names, too,
/// and the loader binds to the first one that it finds.
static FOUND: [AtomicUsize; 5] = [const { AtomicUsize::new(0) }; 5];
static LOOKED: AtomicBool = AtomicBool::new(false);

const NAMES: [&CStr; FOUND.len()] =
    [c"__libc_malloc", c"__libc_calloc", c"__libc_realloc", c"__libc_memalign", c"__libc_free"];

#[cold]
fn look() {
    // SAFETY: C strings; glibc itself, which is there already. The handle is kept: it is never
    // unloaded.
    unsafe {
        let glibc = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        let bound = [
            __libc_malloc as *const () as usize,
            __libc_calloc as *const () as usize,
            __libc_realloc as *const () as usize,
            __libc_memalign as *const () as usize,
            __libc_free as *const () as usize,
        ];
        let own = NAMES.map(|n| if glibc.is_null() { 0 } else { libc::dlsym(glibc, n.as_ptr()) as usize });
        // All functions must be of one allocator: each frees what another one has allocated.
        let all = if own.contains(&0) { bound } else { own };
        FOUND.iter().zip(all).for_each(|(f, address)| f.store(address, Ordering::Relaxed));
    }
    LOOKED.store(true, Ordering::Release);
}

/// The address of the function with this number.
#[inline]
fn function(n: usize) -> usize {
    if !LOOKED.load(Ordering::Acquire) {
        look();
    }
    FOUND[n].load(Ordering::Relaxed)
}

/// glibc's functions with their types.
mod glibc {
    use std::ffi::c_void;
    use std::mem::transmute;

    use super::function;

    pub unsafe fn malloc(bytes: usize) -> *mut c_void {
        // SAFETY: glibc's own function, which has this type; the caller keeps its contract.
        unsafe { transmute::<usize, unsafe extern "C" fn(usize) -> *mut c_void>(function(0))(bytes) }
    }
    pub unsafe fn calloc(bytes: usize) -> *mut c_void {
        // SAFETY: as for `malloc`.
        unsafe {
            transmute::<usize, unsafe extern "C" fn(usize, usize) -> *mut c_void>(function(1))(1, bytes)
        }
    }
    pub unsafe fn realloc(p: *mut c_void, bytes: usize) -> *mut c_void {
        // SAFETY: as for `malloc`.
        unsafe {
            transmute::<usize, unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>(function(2))(p, bytes)
        }
    }
    pub unsafe fn memalign(align: usize, bytes: usize) -> *mut c_void {
        // SAFETY: as for `malloc`.
        unsafe {
            transmute::<usize, unsafe extern "C" fn(usize, usize) -> *mut c_void>(function(3))(align, bytes)
        }
    }
    pub unsafe fn free(p: *mut c_void) {
        // SAFETY: as for `malloc`.
        unsafe { transmute::<usize, unsafe extern "C" fn(*mut c_void)>(function(4))(p) }
    }
}

/// Alignment of `malloc` on the machines that this library supports.
const ALIGNED: usize = 16;

struct Glibc;

#[global_allocator]
static HEAP: Glibc = Glibc;

// SAFETY: glibc's functions; all of a kind, so that what one gives another takes.
unsafe impl GlobalAlloc for Glibc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size, and a power of two to align to.
        unsafe {
            match layout.align() {
                0..=ALIGNED => glibc::malloc(layout.size()),
                align => glibc::memalign(align, layout.size()),
            }
            .cast()
        }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: any size.
            return unsafe { glibc::calloc(layout.size()).cast() };
        }
        // SAFETY: as above; what was got is of this size.
        unsafe {
            let p = self.alloc(layout);
            if !p.is_null() {
                p.write_bytes(0, layout.size());
            }
            p
        }
    }
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: from the functions above.
            return unsafe { glibc::realloc(p.cast(), bytes).cast() };
        }
        // SAFETY: the caller's promise of layout and size; both are of at least the smaller of the
        // sizes.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(p, bytes.min(layout.size()));
                self.dealloc(p, layout);
            }
            new
        }
    }
    unsafe fn dealloc(&self, p: *mut u8, _: Layout) {
        // SAFETY: from the functions above.
        unsafe { glibc::free(p.cast()) }
    }
}
