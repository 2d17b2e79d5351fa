//! The recorder's own memory, straight from the kernel. The program may have replaced `malloc`, may
//! be inside of it, or may count its allocations.
//!
//! Blocks are powers of two from 32 B. Freed blocks wait in a list of their size. From 64 KiB on,
//! each block is a mapping of its own, and freeing it unmaps it. The recorder allocates when a
//! thread starts, and a little when it writes a buffer out.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use homenode_recorder::memory::{map, unmap};

struct Kernel {
    locked: AtomicBool,
    state: std::cell::UnsafeCell<State>,
}

struct State {
    /// First free block of each power of two; a free block holds the address of the next.
    free: [*mut u8; CLASSES],
    next: *mut u8,
    end: *mut u8,
}

const CLASSES: usize = 17;
const SMALLEST: usize = 32;
const LARGE: usize = 64 << 10;
const ARENA: usize = 256 << 10;

// SAFETY: the state is used under the lock alone.
unsafe impl Sync for Kernel {}

#[global_allocator]
static KERNEL: Kernel = Kernel {
    locked: AtomicBool::new(false),
    state: std::cell::UnsafeCell::new(State {
        free: [null_mut(); CLASSES],
        next: null_mut(),
        end: null_mut(),
    }),
};

/// The block size for a layout; blocks are aligned to their size, up to a page.
fn size(layout: Layout) -> usize {
    layout.size().max(layout.align()).max(SMALLEST).next_power_of_two()
}

impl Kernel {
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: the lock is held.
        let result = f(unsafe { &mut *self.state.get() });
        self.locked.store(false, Ordering::Release);
        result
    }
}

// SAFETY: blocks are disjoint, at least as large and as aligned as asked (alignments above a page
// are refused).
unsafe impl GlobalAlloc for Kernel {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = size(layout);
        if layout.align() > 4096 {
            return null_mut();
        }
        if size >= LARGE {
            return map(layout.size());
        }
        self.with(|s| {
            let class = size.trailing_zeros() as usize;
            let head = s.free[class];
            if !head.is_null() {
                // SAFETY: a free block holds a pointer.
                s.free[class] = unsafe { head.cast::<*mut u8>().read() };
                return head;
            }
            s.next = s.next.map_addr(|a| a.next_multiple_of(size.min(4096)));
            if s.next.is_null() || s.next.addr() + size > s.end.addr() {
                s.next = map(ARENA);
                if s.next.is_null() {
                    return null_mut();
                }
                s.end = s.next.wrapping_add(ARENA);
            }
            let p = s.next;
            s.next = p.wrapping_add(size);
            p
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise. A fresh mapping is zero already, and stays untouched until
        // it is used.
        unsafe {
            let p = self.alloc(layout);
            if size(layout) < LARGE && !p.is_null() {
                p.write_bytes(0, layout.size());
            }
            p
        }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        let size = size(layout);
        if size >= LARGE {
            unmap(p, layout.size());
            return;
        }
        self.with(|s| {
            let class = size.trailing_zeros() as usize;
            // SAFETY: the block is ours again and holds at least a pointer.
            unsafe { p.cast::<*mut u8>().write(s.free[class]) };
            s.free[class] = p;
        });
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn blocks_are_disjoint_aligned_and_come_back() {
        // Tests of this crate allocate through it, too.
        let many: Vec<Vec<u8>> = (0..2000).map(|i| vec![i as u8; i * 37 % 70_000]).collect();
        for (i, v) in many.iter().enumerate() {
            assert!(v.iter().all(|b| *b == i as u8));
        }
        let aligned = std::alloc::Layout::from_size_align(100, 1024).unwrap();
        // SAFETY: allocated and freed with the same layout.
        unsafe {
            let p = std::alloc::alloc(aligned);
            assert_eq!(p.addr() % 1024, 0);
            std::alloc::dealloc(p, aligned);
        }
    }
}
