//! Threads of the program. Each gets a stack for homenode's handlers before its first instruction.

use std::ffi::{c_int, c_void};

use homenode_runtime::moving::handler_stack::Spare;

use crate::next::next;
use crate::{helper_threads, start, state};

/// The thread's function and argument. The creating thread leaves them at the lower end of the
/// stack.
#[repr(C)]
struct Work<F> {
    start: F,
    argument: *mut c_void,
}

/// Gives a new thread its stack for handlers. Returns the thread's function and argument.
unsafe fn begin<F: Copy>(place: *mut c_void) -> Work<F> {
    // SAFETY: the maker told the place and left the work there for this thread.
    unsafe {
        let spare = Spare::of_place(place as usize);
        let work = (spare.memory().start as *const Work<F>).read();
        spare.adopt();
        work
    }
}

macro_rules! threads {
    ($($name:ident($handle:ty $(, $attributes:ident: $a:ty)?) $start:ident: $result:ty;)*) => { $(
        /// Cancellation or `pthread_exit` may end it, too: nothing here has a destructor.
        unsafe extern "C-unwind" fn $start(place: *mut c_void) -> $result {
            // SAFETY: as `begin`; the program's function with its argument.
            unsafe {
                let work = begin::<unsafe extern "C-unwind" fn(*mut c_void) -> $result>(place);
                (work.start)(work.argument)
            }
        }

        #[doc = concat!("`", stringify!($name), "`: the thread gets a stack for handlers.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            thread: *mut $handle $(, $attributes: $a)?,
            start: unsafe extern "C-unwind" fn(*mut c_void) -> $result,
            argument: *mut c_void,
        ) -> c_int {
            type Start = unsafe extern "C-unwind" fn(*mut c_void) -> $result;
            type Real = unsafe extern "C" fn(*mut $handle $(, $a)?, Start, *mut c_void) -> c_int;
            let Some(f) = next!($name: Real) else { return libc::EAGAIN };
            helper_threads::thread_begins();
            let spare = if start::may_arm() && !state::inside() { Spare::take() } else { None };
            let Some(spare) = spare else {
                // SAFETY: the caller's arguments.
                return unsafe { f(thread $(, $attributes)?, start, argument) };
            };
            // SAFETY: memory that nobody else uses before the thread; the caller's arguments.
            unsafe {
                (spare.memory().start as *mut Work<Start>).write(Work { start, argument });
                let code = f(thread $(, $attributes)?, $start, spare.place() as *mut c_void);
                if code != 0 {
                    spare.leave();
                }
                code
            }
        }
    )* };
}

threads! {
    pthread_create(libc::pthread_t, attributes: *const libc::pthread_attr_t) begin_posix: *mut c_void;
    thrd_create(libc::pthread_t) begin_c11: c_int;
}
