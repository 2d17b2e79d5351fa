//! Common parts of front ends that only report to the mover.

use std::ffi::{CStr, c_char};

use homenode_runtime::moving::{self, InFlight, Span};

/// What a function returns when there is no such function behind this library.
pub trait Absent {
    /// The C library's sign of failure.
    fn absent() -> Self;
}

impl Absent for i32 {
    fn absent() -> Self {
        -1
    }
}
impl Absent for isize {
    fn absent() -> Self {
        -1
    }
}
impl Absent for i64 {
    fn absent() -> Self {
        -1
    }
}
impl Absent for usize {
    fn absent() -> Self {
        0
    }
}
impl Absent for () {
    fn absent() -> Self {}
}
impl<T> Absent for *mut T {
    fn absent() -> Self {
        std::ptr::null_mut()
    }
}

/// What is left to do when the real function has returned.
pub trait After {
    /// Does it.
    fn after(self);
}

impl After for () {
    fn after(self) {}
}

impl After for InFlight {
    fn after(self) {
        moving::retire(self);
    }
}

/// `n` things from `p` on.
pub fn span<T>(p: *const T, n: usize) -> Span {
    // A pointer to void is to bytes.
    Span::new(p as usize, n.saturating_mul(size_of::<T>().max(1)))
}

/// `front! { before |args| { … } name(arg: type, …) -> type; … }`: functions of the C library that
/// do something with their arguments and then pass them on. They may be left by cancellation, so
/// nothing here has a destructor.
macro_rules! front {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $before:expr;)*) => { $(
        $(#[$doc])*
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            match $crate::next::next!($name: unsafe extern "C-unwind" fn($($ty),*) -> $ret) {
                Some(f) => {
                    let after = $before;
                    // SAFETY: the caller's arguments.
                    let result = unsafe { f($($arg),*) };
                    $crate::interpose::After::after(after);
                    result
                }
                None => $crate::interpose::Absent::absent(),
            }
        }
    )* };
}
pub(crate) use front;

/// A name that the kernel reads. How long it is, and whether it is one, is not for us to see.
pub fn path(p: *const c_char) -> Span {
    span(p.cast::<u8>(), if p.is_null() { 0 } else { libc::PATH_MAX as usize })
}

/// The text at `p`, which the C library reads and has the kernel read. Reading its length here
/// brings it over; publishing keeps it.
///
/// # Safety
/// Null or a string.
pub unsafe fn text(p: *const c_char) -> Span {
    if p.is_null() {
        return Span::EMPTY;
    }
    // SAFETY: the caller's string.
    Span::new(p as usize, unsafe { CStr::from_ptr(p) }.count_bytes() + 1)
}

/// Functions of the C library that have the kernel read or write some buffers, which are published
/// meanwhile.
macro_rules! buffers {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, [$($span:expr),*];)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: its buffers are published.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            let Some(f) = $crate::next::next!($name: unsafe extern "C-unwind" fn($($ty),*) -> $ret) else {
                return $crate::interpose::Absent::absent();
            };
            let flight = homenode_runtime::moving::publish(&[$($span),*]);
            // SAFETY: the caller's arguments.
            let result = unsafe { f($($arg),*) };
            homenode_runtime::moving::retire(flight);
            result
        }
    )* };
}
pub(crate) use buffers;
