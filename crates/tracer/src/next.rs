//! The functions behind the front ends.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function behind this library, looked up once by name.
pub struct Next {
    name: &'static CStr,
    /// Where to look first: behind this library; or, for names that this library does not define,
    /// in the usual order, so that the program's own definitions win.
    behind: bool,
    found: AtomicPtr<c_void>,
}

impl Next {
    /// Not looked up yet.
    pub const fn new(name: &'static CStr, behind: bool) -> Self {
        Self { name, behind, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The function's address; null if no loaded library has it.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let p = self.found.load(Ordering::Relaxed);
        if p.is_null() { self.look() } else { p }
    }

    #[cold]
    fn look(&self) -> *mut c_void {
        // SAFETY: the name is a C string; RTLD_NEXT looks behind this library, where the run-time
        // systems are. Programs that load theirs later (dlopen, RTLD_GLOBAL) are served by the
        // second look.
        let p = unsafe {
            let p = if self.behind {
                libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr())
            } else {
                std::ptr::null_mut()
            };
            if p.is_null() { libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr()) } else { p }
        };
        self.found.store(p, Ordering::Relaxed);
        p
    }
}

/// `next!(NAME: type)`: the function of that name behind this library, as an `Option` of its type;
/// with `first` before the name, the one that the program would call.
#[macro_export]
macro_rules! next {
    (first $name:ident : $ty:ty) => {
        $crate::next::next!(@ $name: $ty, false)
    };
    ($name:ident : $ty:ty) => {
        $crate::next::next!(@ $name: $ty, true)
    };
    (@ $name:ident : $ty:ty, $behind:literal) => {{
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(s) => s,
                Err(_) => panic!("a symbol has no zero byte"),
            };
        static NEXT: $crate::next::Next = $crate::next::Next::new(NAME, $behind);
        // SAFETY: the symbol has this type in every library that defines it; null becomes None.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<$ty>>(NEXT.get()) }
    }};
}
pub use next;
