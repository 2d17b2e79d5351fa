//! Pieces of dynamically scheduled loops in clang's code, which libomp's tools interface does not
//! report in every version: libomp's entry point is interposed.

use std::ffi::c_void;

use crate::gomp::{missing, piece};
use crate::next::next;

macro_rules! pieces {
    ($($name:ident $int:ty;)*) => { $(
        /// Gets a piece of a loop.
        ///
        /// # Safety
        /// Called by compiler-generated code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            place: *mut c_void,
            thread: i32,
            last: *mut i32,
            lower: *mut $int,
            upper: *mut $int,
            stride: *mut $int,
        ) -> i32 {
            type Next =
                unsafe extern "C" fn(*mut c_void, i32, *mut i32, *mut $int, *mut $int, *mut $int) -> i32;
            let Some(f) = next!($name: Next) else { missing(stringify!($name)) };
            // SAFETY: the caller's arguments; the bounds are set when it returns 1.
            unsafe {
                let got = f(place, thread, last, lower, upper, stride);
                if got == 0 {
                    piece(0, 0);
                } else {
                    // The upper bound belongs to the piece.
                    let (first, upper) = (*lower as i64, *upper as i64);
                    let end = if upper < first { upper.wrapping_sub(1) } else { upper.wrapping_add(1) };
                    piece(first as u64, end as u64);
                }
                got
            }
        }
    )* };
}

pieces! {
    __kmpc_dispatch_next_4 i32;
    __kmpc_dispatch_next_4u u32;
    __kmpc_dispatch_next_8 i64;
    __kmpc_dispatch_next_8u u64;
}
