//! The functions behind the front ends.
//!
//! They are looked up when this library starts, not at their first call. A look-up takes the
//! loader's lock. A thread that waits for the caller may hold it (a library's constructor that
//! waits for a thread of its own), or a thread that does not exist in a forked child.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library, found by name behind this library, once.
pub struct Next {
    name: &'static CStr,
    /// Where a plain look-up may find one of 1998.
    version: &'static [&'static CStr],
    found: AtomicPtr<c_void>,
}

impl Next {
    /// Not looked up yet.
    pub const fn new(name: &'static CStr, version: &'static [&'static CStr]) -> Self {
        Self { name, version, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address, if it is known.
    #[inline]
    pub fn known(&self) -> *mut c_void {
        self.found.load(Ordering::Relaxed)
    }

    /// Its address; null where no loaded library has it.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let p = self.known();
        if p.is_null() { self.look() } else { p }
    }

    #[cold]
    fn look(&self) -> *mut c_void {
        let next = libc::RTLD_NEXT;
        let mut p = std::ptr::null_mut();
        // SAFETY: C strings; RTLD_NEXT looks behind this library.
        unsafe {
            if let Some(version) = self.version.first() {
                p = libc::dlvsym(next, self.name.as_ptr(), version.as_ptr());
            }
            if p.is_null() {
                p = libc::dlsym(next, self.name.as_ptr());
            }
        }
        self.found.store(p, Ordering::Relaxed);
        p
    }
}

unsafe extern "C" {
    // The linker's: where the section of all that `next!` names begins and ends.
    #[link_name = "__start_homenode_next"]
    static FIRST: u8;
    #[link_name = "__stop_homenode_next"]
    static END: u8;
}

/// Looks all of them up.
pub fn look_all() {
    // SAFETY: the section has nothing but these, one after the other.
    let all = unsafe {
        let (first, end) = ((&raw const FIRST).cast::<Next>(), (&raw const END).cast::<Next>());
        std::slice::from_raw_parts(first, end.offset_from_unsigned(first))
    };
    for next in all {
        next.get();
    }
    // What is missing is no error of the program's.
    // SAFETY: forgets this thread's.
    unsafe { libc::dlerror() };
}

/// `next!(NAME: type)`: the function of that name behind this library, as an `Option` of its type;
/// `next!(NAME, VERSION: type)`: of that version, if there is one.
macro_rules! next {
    ($name:ident $(, $version:literal)? : $ty:ty) => {{
        let next = $crate::next::place!($name $(, $version)?);
        // SAFETY: the symbol has this type in every library that defines it; null becomes None.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<$ty>>(next.get()) }
    }};
}
pub(crate) use next;

/// `place!(NAME)`: what is known of the function of that name.
macro_rules! place {
    ($name:ident $(, $version:literal)?) => {{
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(s) => s,
                Err(_) => panic!("a symbol has no zero byte"),
            };
        const VERSION: &[&std::ffi::CStr] = &[$($version)?];
        #[unsafe(link_section = "homenode_next")]
        static NEXT: $crate::next::Next = $crate::next::Next::new(NAME, VERSION);
        &NEXT
    }};
}
pub(crate) use place;
