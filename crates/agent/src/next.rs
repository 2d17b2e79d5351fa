//! The functions that ours stand in front of.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library, found by name behind this library, once.
pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    /// Not looked up yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null where no loaded library has it.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let p = self.found.load(Ordering::Relaxed);
        if p.is_null() { self.look() } else { p }
    }

    #[cold]
    fn look(&self) -> *mut c_void {
        // SAFETY: the name is a C string; RTLD_NEXT looks behind this library.
        let p = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(p, Ordering::Relaxed);
        p
    }
}

/// `next!(NAME: type)`: the function of that name behind this library, as an `Option` of its type.
macro_rules! next {
    ($name:ident : $ty:ty) => {{
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(s) => s,
                Err(_) => panic!("a symbol has no zero byte"),
            };
        static NEXT: $crate::next::Next = $crate::next::Next::new(NAME);
        // SAFETY: the symbol has this type in every library that defines it; null becomes None.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<$ty>>(NEXT.get()) }
    }};
}
pub(crate) use next;
