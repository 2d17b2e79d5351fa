//! Locks: OpenMP's locks in libgomp (libomp reports its own by OMPT), and the mutexes of
//! instrumented code.

use std::ffi::c_void;

use homenode_log::Mark;
use homenode_recorder::state;

use crate::next::next;
use crate::{teams, thread};

/// A lock was acquired.
pub fn acquired(lock: u64) {
    thread::with(|t| {
        t.mark(&Mark::Acquire { lock, order: state::order() });
        t.synchronise();
    });
}

/// A lock is about to be released.
pub fn releases(lock: u64) {
    thread::mark(|| Mark::Release { lock, order: state::order() });
}

macro_rules! locks {
    ($(lock $set:ident, unlock $unset:ident, try $test:ident;)*) => { $(
        /// Acquires.
        ///
        /// # Safety
        /// As the function of the same name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(lock: *mut c_void) {
            if let Some(f) = next!($set: unsafe extern "C" fn(*mut c_void)) {
                // SAFETY: the caller's argument.
                unsafe { f(lock) };
            }
            if !teams::are_libomps() {
                acquired(lock as u64);
            }
        }
        /// Releases.
        ///
        /// # Safety
        /// As the function of the same name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $unset(lock: *mut c_void) {
            if !teams::are_libomps() {
                releases(lock as u64);
            }
            if let Some(f) = next!($unset: unsafe extern "C" fn(*mut c_void)) {
                // SAFETY: the caller's argument.
                unsafe { f(lock) };
            }
        }
        /// Tries to acquire.
        ///
        /// # Safety
        /// As the function of the same name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $test(lock: *mut c_void) -> i32 {
            // SAFETY: the caller's argument.
            let got = next!($test: unsafe extern "C" fn(*mut c_void) -> i32).map_or(0, |f| unsafe { f(lock) });
            if got != 0 && !teams::are_libomps() {
                acquired(lock as u64);
            }
            got
        }
    )* };
}

locks! {
    lock omp_set_lock, unlock omp_unset_lock, try omp_test_lock;
    lock omp_set_nest_lock, unlock omp_unset_nest_lock, try omp_test_nest_lock;
    lock omp_set_lock_, unlock omp_unset_lock_, try omp_test_lock_;
    lock omp_set_nest_lock_, unlock omp_unset_nest_lock_, try omp_test_nest_lock_;
}

macro_rules! mutex {
    ($($name:ident $real:ident $acquires:literal;)*) => { $(
        /// A mutex of instrumented code.
        ///
        /// # Safety
        /// As the function it stands for.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(mutex: *mut libc::pthread_mutex_t) -> i32 {
            if !$acquires {
                releases(mutex as u64);
            }
            // SAFETY: the caller's argument.
            let code = unsafe { libc::$real(mutex) };
            if $acquires && code == 0 {
                acquired(mutex as u64);
            }
            code
        }
    )* };
}

mutex! {
    __wrap_pthread_mutex_lock pthread_mutex_lock true;
    __wrap_pthread_mutex_trylock pthread_mutex_trylock true;
    __wrap_pthread_mutex_unlock pthread_mutex_unlock false;
}
