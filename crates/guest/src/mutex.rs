//! The mutexes of the program's own code; those of the system's libraries are their own affair.

use homenode_trace::next::next;
use homenode_trace::{locks, modules};

type Mutex = *mut libc::pthread_mutex_t;

macro_rules! mutex {
    ($($name:ident $body:ident $acquires:literal;)*) => {
        homenode_trace::with_pc! { $( $name, "rsi", $body; )* }
        $(
            extern "C" fn $body(mutex: Mutex, site: usize) -> i32 {
                let tells = modules::is_program(site);
                if tells && !$acquires {
                    locks::releases(mutex as u64);
                }
                let Some(real) = next!($name: unsafe extern "C" fn(Mutex) -> i32) else { return libc::ENOSYS };
                // SAFETY: the caller's argument.
                let code = unsafe { real(mutex) };
                if tells && $acquires && code == 0 {
                    locks::acquired(mutex as u64);
                }
                code
            }
        )*
    };
}

mutex! {
    pthread_mutex_lock lock true;
    pthread_mutex_trylock try_lock true;
    pthread_mutex_unlock unlock false;
}
