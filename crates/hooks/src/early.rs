//! Memory for what the loader allocates while it looks an allocator's function up.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 1 << 16;

#[repr(align(64))]
struct Arena(UnsafeCell<[u8; BYTES]>);

// SAFETY: every byte is given out once.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory; null if there is no more. It is never given back.
pub fn give(bytes: usize, align: usize) -> *mut c_void {
    let align = align.clamp(16, 64);
    let all = bytes.saturating_add(align);
    let at = USED.fetch_add(all.min(BYTES), Ordering::Relaxed);
    if at.saturating_add(all) > BYTES {
        return core::ptr::null_mut();
    }
    let start = ARENA.0.get() as usize + at;
    start.next_multiple_of(align) as *mut c_void
}

/// Whether an address is of this memory.
pub fn is(p: *mut c_void) -> bool {
    let start = ARENA.0.get() as usize;
    (start..start + BYTES).contains(&(p as usize))
}

/// Copies at most `bytes` bytes of this memory from `p` on. Nothing says how long an allocation
/// was, so the copy may have what follows it.
///
/// # Safety
/// `p` is of this memory. `to` has room for `bytes` bytes and is not of this memory.
pub unsafe fn copy(p: *mut c_void, to: *mut c_void, bytes: usize) {
    let end = ARENA.0.get() as usize + BYTES;
    // SAFETY: the bytes from `p` to the end are of this memory; the caller's promise for `to`.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(p.cast(), bytes.min(end - p as usize)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_zeroed_and_ends() {
        let p = give(100, 64);
        assert!(is(p) && (p as usize).is_multiple_of(64));
        // SAFETY: 100 bytes were given.
        assert!(unsafe { core::slice::from_raw_parts(p.cast::<u8>(), 100) }.iter().all(|b| *b == 0));
        let next = give(0, 1);
        assert!(next as usize >= p as usize + 100 && (next as usize).is_multiple_of(16));
        assert!(give(BYTES, 16).is_null() && give(usize::MAX, 16).is_null(), "it does not wrap around");
        assert!(!is(core::ptr::null_mut()));
        let mut copied = [1_u8; 8];
        // SAFETY: from this memory, to eight bytes.
        unsafe { copy(p, copied.as_mut_ptr().cast(), 8) };
        assert_eq!(copied, [0; 8]);
    }
}
