//! Memory that the C library allocates for itself: buffers of streams and folders, paths, names,
//! thread-local storage. The C library hands this memory to the kernel by calls that no front end
//! sees, so its pages are never armed.
//!
//! The caller of `malloc` identifies such memory: the return address lies in the C library. An
//! excluded page stays excluded while its mapping lives, whoever gets the page next from the
//! allocator.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_runtime::moving::{self, Span};
use homenode_wire::facts::LoadedFile;

/// The place of one file of the library.
struct Part {
    start: AtomicUsize,
    bytes: AtomicUsize,
}

/// The C library and its loader.
static PARTS: [Part; 2] = [const { Part::nowhere() }; 2];

unsafe extern "C" {
    // The loader's function.
    fn __tls_get_addr(index: *mut c_void) -> *mut c_void;
}

/// The address of a function of the C library.
pub fn library() -> usize {
    theirs()[0]
}

/// One function of each file, with a name that no allocator defines. Some allocators define
/// `__libc_malloc`, too.
fn theirs() -> [usize; 2] {
    [libc::gnu_get_libc_version as *const () as usize, __tls_get_addr as *const () as usize]
}

/// Finds the two files. Before that, no memory counts as theirs. Memory allocated earlier is no
/// object, and never armed.
pub fn find() {
    let modules = crate::modules::loaded();
    let mut around = Span { start: usize::MAX, end: 0 };
    for (part, function) in PARTS.iter().zip(theirs()) {
        let at = |m: &LoadedFile| Span { start: (m.base + m.low) as usize, end: (m.base + m.high) as usize };
        if let Some(span) = modules.iter().map(at).find(|s| s.contains(function)) {
            part.set(span);
            around = Span { start: around.start.min(span.start), end: around.end.max(span.end) };
        }
    }
    if !around.is_empty() {
        AROUND.set(around);
    }
}

/// From the first byte of one file to the last of the other. Most callers lie outside, and cost one
/// comparison.
static AROUND: Part = Part::nowhere();

impl Part {
    const fn nowhere() -> Self {
        Self { start: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    #[inline]
    fn has(&self, address: usize) -> bool {
        address.wrapping_sub(self.start.load(Ordering::Relaxed)) < self.bytes.load(Ordering::Relaxed)
    }

    fn set(&self, span: Span) {
        self.start.store(span.start, Ordering::Relaxed);
        self.bytes.store(span.len(), Ordering::Relaxed);
    }
}

fn is_part(caller: usize) -> bool {
    PARTS.iter().any(|p| p.has(caller))
}

/// Notes that the code at `caller` allocated `bytes` bytes at `p`.
#[inline]
pub fn allocated(p: *mut c_void, bytes: usize, caller: usize) -> *mut c_void {
    if AROUND.has(caller) {
        perhaps(p, bytes, caller);
    }
    p
}

#[cold]
fn perhaps(p: *mut c_void, bytes: usize, caller: usize) {
    if is_part(caller) {
        keep(p, bytes);
    }
}

/// Notes that the library has allocated this memory for itself.
pub fn keep(p: *mut c_void, bytes: usize) -> *mut c_void {
    if !p.is_null() {
        moving::exclude(Span::new(p as usize, bytes));
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_library_is_told_from_ours() {
        let of_theirs = || theirs().map(is_part);
        assert_eq!(of_theirs(), [false; 2], "not looked for yet");
        find();
        assert_eq!(of_theirs(), [true; 2]);
        assert!(!is_part(find as *const () as usize) && !is_part(0) && !is_part(usize::MAX));
    }
}
