//! The functions behind front ends.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function that is found by name, once.
pub struct NextSymbol {
    name: &'static CStr,
    /// The version to look for first: a plain look-up may find an older one of another type.
    version: Option<&'static CStr>,
    found: AtomicPtr<c_void>,
}

impl NextSymbol {
    /// Not looked up yet.
    pub const fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        Self { name, version, found: AtomicPtr::new(null_mut()) }
    }

    /// The function's address, if it was found.
    #[inline]
    pub fn known(&self) -> *mut c_void {
        self.found.load(Ordering::Relaxed)
    }

    /// The function's address; null if no library behind this one has it. The first call takes the
    /// loader's lock.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        self.get_by(|name| behind(name, self.version))
    }

    /// As [`Self::get`], but looked up by `look`.
    #[inline]
    pub fn get_by(&self, look: impl FnOnce(&'static CStr) -> *mut c_void) -> *mut c_void {
        let p = self.known();
        if p.is_null() { self.find(look) } else { p }
    }

    #[cold]
    fn find(&self, look: impl FnOnce(&'static CStr) -> *mut c_void) -> *mut c_void {
        let p = look(self.name);
        self.found.store(p, Ordering::Relaxed);
        p
    }
}

/// The function of that name behind this library, of that version if there is one. Takes the
/// loader's lock.
fn behind(name: &CStr, version: Option<&CStr>) -> *mut c_void {
    let next = libc::RTLD_NEXT;
    // SAFETY: C strings; RTLD_NEXT looks behind this library.
    unsafe {
        let of_version = version.map_or(null_mut(), |v| libc::dlvsym(next, name.as_ptr(), v.as_ptr()));
        if of_version.is_null() { libc::dlsym(next, name.as_ptr()) } else { of_version }
    }
}

/// `name!(NAME)`: a symbol's name as a C string, made by the compiler.
#[macro_export]
macro_rules! name {
    ($name:ident) => {
        const {
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a symbol has no zero byte"),
            }
        }
    };
}
pub use name;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_looked_up_once() {
        static MISSING: NextSymbol = NextSymbol::new(name!(homenode_there_is_no_such_function), None);
        assert!(MISSING.get().is_null() && MISSING.known().is_null());
        static SYMBOL: NextSymbol = NextSymbol::new(name!(any), Some(c"GLIBC_2.2.5"));
        let place = &raw const SYMBOL as *mut c_void;
        let found = SYMBOL.get_by(|name| {
            assert_eq!(name, c"any");
            place
        });
        assert_eq!((found, SYMBOL.known()), (place, place));
        assert_eq!(SYMBOL.get_by(|_| unreachable!("it is known")), place);
    }
}
