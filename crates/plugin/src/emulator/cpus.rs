//! The emulated threads: a place for each.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, Ordering};

use homenode_recorder::registry::MAX_THREADS;

use super::cpu::EmulatedThread;

struct Slot(UnsafeCell<EmulatedThread>);

// SAFETY: each slot is used by the call-backs of one emulated thread, which run in that thread.
unsafe impl Sync for Slot {}
// SAFETY: what it points to lives as long as the process and belongs to no host thread.
unsafe impl Send for Slot {}

/// [`MAX_THREADS`] places, for ever. Null before [`make`].
static CPUS: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());

/// Makes the places. Nobody calls [`with`] earlier: call-backs are registered afterwards.
pub fn make() {
    let cpus: Box<[Slot]> = (0..MAX_THREADS).map(|_| Slot(UnsafeCell::new(EmulatedThread::new()))).collect();
    CPUS.store(Box::leak(cpus).as_mut_ptr(), Ordering::Release);
}

/// Does something with an emulated thread; nothing beyond the most threads that are recorded.
#[inline(always)]
pub fn with(cpu: u32, f: impl FnOnce(&mut EmulatedThread)) {
    if (cpu as usize) < MAX_THREADS {
        // SAFETY: call-backs are registered after [`make`], and this place is one of this
        // thread.
        f(unsafe { &mut *(*CPUS.load(Ordering::Relaxed).add(cpu as usize)).0.get() });
    }
}
