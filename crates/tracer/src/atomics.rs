//! `__tsan_atomic*`: instrumented code leaves atomic operations to the run-time system, so they are
//! carried out here.
//!
//! - Every operation is sequentially consistent, whatever order the program asks for: a stronger
//!   order is always right.
//! - An operation is never filtered. It gets a number of the global order after the operation, or
//!   before an operation that can only release. So a thread that sees a value has the larger number
//!   (up to the few instructions between number and operation).
//! - A load that finds the same value at the same place again, with nothing in between, is a
//!   spinning wait. The simulator simulates waiting, so only the first such load is recorded.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use homenode_log::Mark;
use homenode_recorder::state;

use crate::{cancel, thread};

const RELAXED: i32 = 0;
const RELEASE: i32 = 3;

/// Notes an operation around `run`.
#[inline]
fn operation<T: Copy + Into<u128>>(address: usize, write: bool, order: i32, run: impl FnOnce() -> T) -> T {
    if !state::recording() {
        return run();
    }
    cancel::deferred(|| noted(address, write, order, run))
}

fn noted<T: Copy + Into<u128>>(address: usize, write: bool, order: i32, run: impl FnOnce() -> T) -> T {
    let before = (write && order == RELEASE).then(state::order);
    let value = run();
    thread::with(|t| {
        if !write && t.spinning(address as u64, value.into() as u64) {
            return;
        }
        let number = before.unwrap_or_else(state::order);
        t.count_one();
        t.mark(&Mark::Atomic { address: address as u64, write: write.into(), order: number });
        if order != RELAXED && order != RELEASE {
            t.synchronise();
        }
    });
    value
}

macro_rules! fetch {
    ($int:ty, $atomic:ty: $($name:ident $method:ident;)*) => { $(
        /// Carries the operation out and returns the value before it.
        ///
        /// # Safety
        /// `p` is valid and aligned, as for the operation itself.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(p: *mut $int, v: $int, order: i32) -> $int {
            // SAFETY: the caller's promise.
            operation(p as usize, true, order, || unsafe { <$atomic>::from_ptr(p).$method(v, Ordering::SeqCst) })
        }
    )* };
}

macro_rules! compare {
    ($int:ty, $atomic:ty: $($name:ident)*) => { $(
        /// Compare and exchange: 1 if it was done; otherwise `*expected` holds what was found.
        ///
        /// # Safety
        /// Both pointers are valid and aligned, as for the operation itself.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(p: *mut $int, expected: *mut $int, v: $int, order: i32, _failure: i32) -> i32 {
            // SAFETY: the caller's promise.
            unsafe {
                let want = *expected;
                let run = || match <$atomic>::from_ptr(p).compare_exchange(want, v, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(found) | Err(found) => found,
                };
                let found = operation(p as usize, true, order, run);
                if found != want {
                    *expected = found;
                }
                i32::from(found == want)
            }
        }
    )* };
}

macro_rules! atomics {
    ($int:ty, $atomic:ty: $load:ident $store:ident $val:ident) => {
        /// Loads.
        ///
        /// # Safety
        /// `p` is valid and aligned.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $load(p: *const $int, order: i32) -> $int {
            // SAFETY: the caller's promise; a load does not write.
            operation(p as usize, false, order, || unsafe {
                <$atomic>::from_ptr(p.cast_mut()).load(Ordering::SeqCst)
            })
        }
        /// Stores.
        ///
        /// # Safety
        /// `p` is valid and aligned.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $store(p: *mut $int, v: $int, order: i32) {
            // SAFETY: the caller's promise.
            operation(p as usize, true, order, || unsafe {
                <$atomic>::from_ptr(p).store(v, Ordering::SeqCst);
                v
            });
        }
        /// Compare and exchange that returns what was found.
        ///
        /// # Safety
        /// `p` is valid and aligned.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $val(
            p: *mut $int,
            want: $int,
            v: $int,
            order: i32,
            _failure: i32,
        ) -> $int {
            // SAFETY: the caller's promise.
            operation(p as usize, true, order, || unsafe {
                match <$atomic>::from_ptr(p).compare_exchange(want, v, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(found) | Err(found) => found,
                }
            })
        }
    };
}

atomics!(u8, AtomicU8: __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_compare_exchange_val);
compare!(u8, AtomicU8: __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak);
fetch! { u8, AtomicU8:
    __tsan_atomic8_exchange swap;
    __tsan_atomic8_fetch_add fetch_add;
    __tsan_atomic8_fetch_sub fetch_sub;
    __tsan_atomic8_fetch_and fetch_and;
    __tsan_atomic8_fetch_or fetch_or;
    __tsan_atomic8_fetch_xor fetch_xor;
    __tsan_atomic8_fetch_nand fetch_nand;
}
atomics!(u16, AtomicU16: __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_compare_exchange_val);
compare!(u16, AtomicU16: __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak);
fetch! { u16, AtomicU16:
    __tsan_atomic16_exchange swap;
    __tsan_atomic16_fetch_add fetch_add;
    __tsan_atomic16_fetch_sub fetch_sub;
    __tsan_atomic16_fetch_and fetch_and;
    __tsan_atomic16_fetch_or fetch_or;
    __tsan_atomic16_fetch_xor fetch_xor;
    __tsan_atomic16_fetch_nand fetch_nand;
}
atomics!(u32, AtomicU32: __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_compare_exchange_val);
compare!(u32, AtomicU32: __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak);
fetch! { u32, AtomicU32:
    __tsan_atomic32_exchange swap;
    __tsan_atomic32_fetch_add fetch_add;
    __tsan_atomic32_fetch_sub fetch_sub;
    __tsan_atomic32_fetch_and fetch_and;
    __tsan_atomic32_fetch_or fetch_or;
    __tsan_atomic32_fetch_xor fetch_xor;
    __tsan_atomic32_fetch_nand fetch_nand;
}
atomics!(u64, AtomicU64: __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_compare_exchange_val);
compare!(u64, AtomicU64: __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak);
fetch! { u64, AtomicU64:
    __tsan_atomic64_exchange swap;
    __tsan_atomic64_fetch_add fetch_add;
    __tsan_atomic64_fetch_sub fetch_sub;
    __tsan_atomic64_fetch_and fetch_and;
    __tsan_atomic64_fetch_or fetch_or;
    __tsan_atomic64_fetch_xor fetch_xor;
    __tsan_atomic64_fetch_nand fetch_nand;
}

/// The 16-byte operations, all by `cmpxchg16b`. It writes even where nothing changes, so a 16-byte
/// atomic load needs writable memory, as it does in the sanitiser's own run-time system.
mod wide {
    use super::operation;

    fn compare_exchange(p: *mut u128, want: u128, new: u128) -> u128 {
        let (low, high): (u64, u64);
        // SAFETY: the caller's pointer is valid and 16-byte aligned. rbx is reserved by the
        // compiler, so it is saved by hand.
        unsafe {
            std::arch::asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b xmmword ptr [rdi]",
                "mov rbx, rsi",
                in("rdi") p, // named registers: a class could give rbx to one of them
                inout("rsi") new as u64 => _,
                in("rcx") (new >> 64) as u64,
                inout("rax") want as u64 => low,
                inout("rdx") (want >> 64) as u64 => high,
            );
        }
        u128::from(low) | u128::from(high) << 64
    }

    fn update(p: *mut u128, order: i32, f: impl Fn(u128) -> u128) -> u128 {
        operation(p as usize, true, order, || {
            let mut old = compare_exchange(p, 0, 0);
            loop {
                match compare_exchange(p, old, f(old)) {
                    found if found == old => return old,
                    found => old = found,
                }
            }
        })
    }

    /// Loads.
    ///
    /// # Safety
    /// `p` is valid, aligned and writable.
    #[unsafe(no_mangle)]
    pub unsafe extern "C-unwind" fn __tsan_atomic128_load(p: *mut u128, order: i32) -> u128 {
        operation(p as usize, false, order, || compare_exchange(p, 0, 0))
    }
    /// Stores.
    ///
    /// # Safety
    /// `p` is valid and aligned.
    #[unsafe(no_mangle)]
    pub unsafe extern "C-unwind" fn __tsan_atomic128_store(p: *mut u128, v: u128, order: i32) {
        update(p, order, |_| v);
    }
    /// Compare and exchange that returns what was found.
    ///
    /// # Safety
    /// `p` is valid and aligned.
    #[unsafe(no_mangle)]
    pub unsafe extern "C-unwind" fn __tsan_atomic128_compare_exchange_val(
        p: *mut u128,
        want: u128,
        v: u128,
        order: i32,
        _failure: i32,
    ) -> u128 {
        operation(p as usize, true, order, || compare_exchange(p, want, v))
    }

    macro_rules! compare {
        ($($name:ident)*) => { $(
            /// Compare and exchange: 1 if it was done; otherwise `*expected` holds what was found.
            ///
            /// # Safety
            /// Both pointers are valid and aligned.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(
                p: *mut u128, expected: *mut u128, v: u128, order: i32, _failure: i32,
            ) -> i32 {
                // SAFETY: the caller's promise.
                unsafe {
                    let want = *expected;
                    let found = operation(p as usize, true, order, || compare_exchange(p, want, v));
                    if found != want {
                        *expected = found;
                    }
                    i32::from(found == want)
                }
            }
        )* };
    }
    compare!(__tsan_atomic128_compare_exchange_strong __tsan_atomic128_compare_exchange_weak);

    macro_rules! fetch {
        ($($name:ident $f:expr;)*) => { $(
            /// Carries the operation out and returns the value before it.
            ///
            /// # Safety
            /// `p` is valid and aligned.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(p: *mut u128, v: u128, order: i32) -> u128 {
                let f: fn(u128, u128) -> u128 = $f;
                update(p, order, |old| f(old, v))
            }
        )* };
    }
    fetch! {
        __tsan_atomic128_exchange |_, v| v;
        __tsan_atomic128_fetch_add |o, v| o.wrapping_add(v);
        __tsan_atomic128_fetch_sub |o, v| o.wrapping_sub(v);
        __tsan_atomic128_fetch_and |o, v| o & v;
        __tsan_atomic128_fetch_or |o, v| o | v;
        __tsan_atomic128_fetch_xor |o, v| o ^ v;
        __tsan_atomic128_fetch_nand |o, v| !(o & v);
    }
}

/// A fence between threads.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __tsan_atomic_thread_fence(order: i32) {
    fence(Ordering::SeqCst);
    if order != RELAXED && order != RELEASE {
        fenced();
    }
}

/// Notes a fence, or yields if the thread waits by it.
fn fenced() {
    let mut waits = false;
    thread::with(|t| {
        waits = t.waits_at_fence();
        if !waits {
            t.mark(&Mark::Flush {});
            t.synchronise();
        }
    });
    if waits {
        std::thread::yield_now();
    }
}

/// `flush` in code that clang compiled. libomp's own fence is below the instrumented code.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __kmpc_flush(_place: *const std::ffi::c_void) {
    fence(Ordering::SeqCst);
    fenced();
}

/// A fence against a signal handler of the same thread: for the compiler only.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn __tsan_atomic_signal_fence(_order: i32) {}
