//! What the system knows of the calling thread: its stack, the time, its end.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use homenode_log::Mark;

use crate::emulator;

/// Lowest address of the calling thread's stack and one past its highest; zeros if the system does
/// not say.
pub fn stack() -> (u64, u64) {
    // SAFETY: the attributes are initialised by pthread_getattr_np before they are read, and
    // destroyed after.
    unsafe {
        let mut attr = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attr) != 0 {
            return (0, 0);
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        let got = libc::pthread_attr_getstack(&raw const attr, &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attr);
        if got != 0 { (0, 0) } else { (low as u64, low as u64 + size as u64) }
    }
}

/// Whether a mark has its time before it. On the lab: marks of regions, rounds and allocations.
pub fn is_timed(mark: &Mark) -> bool {
    emulator::marks_alone()
        && matches!(
            mark,
            Mark::RegionFork { .. }
                | Mark::RegionJoin { .. }
                | Mark::TaskBegin { .. }
                | Mark::Iteration { .. }
                | Mark::Alloc { .. }
                | Mark::Free { .. }
        )
}

/// The time, and the CPU that the calling thread runs on.
pub fn clock() -> Mark {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system fills the time in; the other call has no arguments.
    let cpu = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t);
        libc::sched_getcpu()
    };
    Mark::Clock { ns: t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64, cpu: cpu.max(0) as u64 }
}

/// Makes the C library call `end` when the calling thread returns. `end` is the same function for
/// all threads.
pub fn at_thread_exit(end: extern "C" fn(*mut c_void)) {
    static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
    let mut key = KEY.load(Ordering::Acquire);
    // SAFETY: the key is created once (a second one made in a race is deleted) and kept for ever.
    unsafe {
        if key == u32::MAX {
            if libc::pthread_key_create(&raw mut key, Some(end)) != 0 {
                return;
            }
            if let Err(first) = KEY.compare_exchange(u32::MAX, key, Ordering::AcqRel, Ordering::Acquire) {
                libc::pthread_key_delete(key);
                key = first;
            }
        }
        libc::pthread_setspecific(key, std::ptr::without_provenance::<c_void>(1));
    }
}
