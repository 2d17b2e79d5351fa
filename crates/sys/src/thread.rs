//! A thread that asks nobody for anything before it runs: no allocator, no hooks of a run-time library.
//!
//! `std::thread` allocates in the thread that it has made, before the thread's own work. Where an allocator is slow to answer because
//! it waits for what this thread is there to do, neither goes on.

use std::ffi::{CStr, c_void};

use crate::memory::{self, Access};
use crate::{Errno, Error, PAGE, Result, Span, call};

/// Makes a thread on a stack of its own, `stack` bytes with a page below them that nobody can touch, which runs `run` for ever with the
/// maker's signal mask. Its stack. The maker may allocate (glibc's thread block).
///
/// # Errors
/// No memory for the stack; `EAGAIN` where no more threads can be made.
pub fn start_bare(stack: usize, run: fn() -> !) -> Result<Span> {
    let memory = memory::map(stack.next_multiple_of(PAGE) + PAGE, Access::ReadWrite)?;
    let usable = Span { start: memory.start + PAGE, end: memory.end };
    // SAFETY: just made, known to nobody; the attributes are initialised before they are used and destroyed after.
    let code = unsafe {
        memory::protect(Span::new(memory.start, PAGE), Access::None)?;
        let (mut attributes, mut thread) = (std::mem::zeroed(), std::mem::zeroed());
        let attributes: *mut libc::pthread_attr_t = &raw mut attributes;
        libc::pthread_attr_init(attributes);
        libc::pthread_attr_setstack(attributes, usable.start as *mut c_void, usable.len());
        libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED);
        let code = libc::pthread_create(&raw mut thread, attributes, begin, run as *mut c_void);
        libc::pthread_attr_destroy(attributes);
        code
    };
    if code == 0 {
        return Ok(memory);
    }
    // SAFETY: no thread has it.
    let _ = unsafe { memory::unmap(memory) };
    Err(Error { call: "pthread_create", on: memory, errno: Errno(code) })
}

extern "C" fn begin(run: *mut c_void) -> *mut c_void {
    // SAFETY: what `start_bare` was given.
    let run: fn() -> ! = unsafe { std::mem::transmute(run) };
    run()
}

/// Names the calling thread (15 bytes count), without allocating.
pub fn set_name(name: &CStr) {
    // SAFETY: a string that lives for the call.
    unsafe { call::raw(libc::SYS_prctl, [libc::PR_SET_NAME as usize, name.as_ptr() as usize, 0, 0, 0, 0]) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static SEEN: AtomicUsize = AtomicUsize::new(0);

    fn look() -> ! {
        set_name(c"bare");
        let local = 0_u8;
        SEEN.store(&raw const local as usize, Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_bare_thread_runs_on_its_own_stack() {
        let stack = start_bare(256 << 10, look).unwrap();
        while SEEN.load(Ordering::SeqCst) == 0 {
            call::yield_now();
        }
        assert!(stack.contains(SEEN.load(Ordering::SeqCst)));
    }
}
