//! Where this library's own memory comes from: glibc's heap, whatever allocator the program has.
//!
//! An allocator that the program brings along (jemalloc) calls `mmap`, `madvise` and `munmap` with its locks held; this library
//! stands before these, notes what they do, and must not ask that allocator for memory to do so.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_calloc(n: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(p: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void;
    fn __libc_free(p: *mut c_void);
}

/// What `malloc` aligns to on the machines that this library is for.
const ALIGNED: usize = 16;

struct Glibc;

#[global_allocator]
static HEAP: Glibc = Glibc;

// SAFETY: glibc's functions by the names that nobody stands before; all of a kind, so that what one gives another takes.
unsafe impl GlobalAlloc for Glibc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size, and a power of two to align to.
        unsafe {
            match layout.align() {
                0..=ALIGNED => __libc_malloc(layout.size()),
                align => __libc_memalign(align, layout.size()),
            }
            .cast()
        }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: any size.
            return unsafe { __libc_calloc(1, layout.size()).cast() };
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
            return unsafe { __libc_realloc(p.cast(), bytes).cast() };
        }
        // SAFETY: the caller's promise of layout and size; both are of at least the smaller of the sizes.
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
        unsafe { __libc_free(p.cast()) }
    }
}
