//! The recorder's own mappings, straight from the kernel. The recorded program may count its
//! allocations, and so may the recorder.

use std::ptr::null_mut;

/// A fresh private mapping of zeros; null if there is no memory.
pub fn map(bytes: usize) -> *mut u8 {
    // SAFETY: asks for new memory only.
    let p = unsafe {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::syscall(libc::SYS_mmap, 0_usize, bytes, prot, flags, -1, 0_i64)
    };
    if p == -1 { null_mut() } else { std::ptr::with_exposed_provenance_mut(p as usize) }
}

/// Unmaps a mapping of [`map`].
pub fn unmap(p: *mut u8, bytes: usize) {
    let at = p as usize;
    // SAFETY: the caller's mapping, used by nobody any more.
    unsafe { libc::syscall(libc::SYS_munmap, at, bytes) };
}
