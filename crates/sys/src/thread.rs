//! A thread that needs nobody before it runs: no allocator, and no hooks of a run-time library.
//!
//! `std::thread` allocates in the new thread before the thread's own work. If the program's
//! allocator waits for the work of this thread, neither would go on.

use std::ffi::{CStr, c_void};

use crate::memory::{self, Protection};
use crate::{Errno, Error, PAGE, Result, Span, call, own_threads};

/// Makes a thread of homenode's own ([`own_threads`]) that runs `run` with the maker's signal mask.
/// Its stack has `stack` bytes for its work, with an inaccessible page below. Returns all memory
/// that was mapped for the thread, which stays mapped. The maker may allocate (glibc's thread
/// block).
///
/// # Errors
/// No memory for the stack; `EAGAIN` if no more threads can be made, or if homenode's own are
/// ending.
pub fn start_bare(stack: usize, run: fn()) -> Result<Span> {
    let refused = Error { call: "pthread_create", on: Span::EMPTY, errno: Errno(libc::EAGAIN) };
    let permit = own_threads::permit().ok_or(refused)?;
    let made = start_permitted(stack, run);
    if made.is_err() {
        permit.refused();
    }
    made
}

fn start_permitted(stack: usize, run: fn()) -> Result<Span> {
    // SAFETY: initialised before it is used, destroyed after.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    let attributes = &raw mut attributes;
    // SAFETY: the pointer is to attributes that live to the end of this function.
    unsafe { libc::pthread_attr_init(attributes) };
    let made = make(stack, run, attributes);
    // SAFETY: initialised above, and nothing uses them any more.
    unsafe { libc::pthread_attr_destroy(attributes) };
    made
}

fn make(stack: usize, run: fn(), attributes: *mut libc::pthread_attr_t) -> Result<Span> {
    let size = (stack + taken_by_the_library(attributes)).next_multiple_of(PAGE);
    let memory = memory::map(size + PAGE, Protection::ReadWrite)?;
    let usable = Span { start: memory.start + PAGE, end: memory.end };
    // SAFETY: just made, known to nobody; the attributes are initialised.
    let code = unsafe {
        memory::protect(Span::new(memory.start, PAGE), Protection::None)?;
        let mut thread = std::mem::zeroed();
        libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED);
        match libc::pthread_attr_setstack(attributes, usable.start as *mut c_void, usable.len()) {
            0 => libc::pthread_create(&raw mut thread, attributes, begin, run as *mut c_void),
            refused => refused,
        }
    };
    if code == 0 {
        return Ok(memory);
    }
    // SAFETY: no thread has it.
    let _ = unsafe { memory::unmap(memory) };
    Err(Error { call: "pthread_create", on: memory, errno: Errno(code) })
}

/// Bytes that glibc takes of a given stack before the thread's work: the thread block and the
/// thread-local data of the program and of all libraries loaded at its start. That may be
/// megabytes. `pthread_create` fails (`EINVAL`) if too little is left.
fn taken_by_the_library(attributes: *const libc::pthread_attr_t) -> usize {
    type MinStack = unsafe extern "C" fn(*const libc::pthread_attr_t) -> libc::size_t;
    // SAFETY: glibc's own question for this (nptl/nptl-stack.c, private but kept for others that
    // give stacks); one argument, as above.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"__pthread_get_minstack".as_ptr());
        if found.is_null() {
            return libc::PTHREAD_STACK_MIN;
        }
        std::mem::transmute::<*mut c_void, MinStack>(found)(attributes)
    }
}

extern "C" fn begin(run: *mut c_void) -> *mut c_void {
    // SAFETY: what `start_bare` was given.
    let run: fn() = unsafe { std::mem::transmute(run) };
    own_threads::begin();
    run();
    own_threads::end();
    std::ptr::null_mut()
}

/// Names the calling thread (15 bytes count), without allocating.
pub fn set_name(name: &CStr) {
    // SAFETY: a string that lives for the call.
    unsafe { call::raw(libc::SYS_prctl, [libc::PR_SET_NAME as usize, name.as_ptr() as usize, 0, 0, 0, 0]) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static SEEN: AtomicUsize = AtomicUsize::new(0);

    thread_local! {
        /// glibc takes it out of every thread's stack.
        static LARGE: Cell<[u8; 1 << 20]> = const { Cell::new([7; 1 << 20]) };
    }

    fn look() {
        set_name(c"bare");
        let local = 0_u8;
        let of_large = LARGE.with(|large| large.as_ptr() as usize);
        // SAFETY: the thread's own.
        assert_eq!(unsafe { std::ptr::read_volatile(of_large as *const u8) }, 7);
        SEEN.store(&raw const local as usize, Ordering::SeqCst);
    }

    #[test]
    fn a_bare_thread_runs_on_its_own_stack_beside_large_thread_local_data() {
        let stack = start_bare(256 << 10, look).unwrap();
        while SEEN.load(Ordering::SeqCst) == 0 {
            call::yield_now();
        }
        assert!(stack.contains(SEEN.load(Ordering::SeqCst)));
    }
}
