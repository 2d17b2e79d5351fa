//! The functions of the program's allocator, behind this library.

use std::ffi::c_void;

thread_local! {
    /// The thread looks one of the functions up.
    static LOOKING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The allocator's own function; `None` while it is being looked up.
macro_rules! allocator {
    ($name:ident : $ty:ty) => {{
        let next = crate::next::place!($name);
        let p = $crate::allocator::looked(next);
        // SAFETY: the symbol has this type in every library that defines it; null becomes None.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<$ty>>(p) }
    }};
}
pub(crate) use allocator;

/// The function's address; null while this thread looks one up.
#[inline]
pub fn looked(next: &homenode_hooks::next::NextSymbol) -> *mut c_void {
    let mut p = next.known();
    if p.is_null() && !LOOKING.replace(true) {
        p = next.get();
        LOOKING.set(false);
    }
    p
}
