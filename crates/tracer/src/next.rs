//! The functions behind the front ends.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function behind this library, looked up once by name.
pub struct NextSymbol {
    name: &'static CStr,
    /// Where to look first: behind this library; or, for names that this library does not define,
    /// in the usual order, so that the program's own definitions win.
    behind: bool,
    found: AtomicPtr<c_void>,
}

impl NextSymbol {
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
        let mut p = unsafe {
            let p = if self.behind {
                libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr())
            } else {
                std::ptr::null_mut()
            };
            if p.is_null() { libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr()) } else { p }
        };
        // A front end that found itself would call itself for ever.
        if p.is_null() || self.behind && base_of(p) == base_of(base_of as *const c_void) {
            p = private::find(self.name);
        }
        self.found.store(p, Ordering::Relaxed);
        p
    }
}

/// Where the library begins that has an address; null if none has it.
fn base_of(address: *const c_void) -> *mut c_void {
    // SAFETY: dladdr reads its own tables and writes `info`.
    unsafe {
        let mut info = std::mem::zeroed::<libc::Dl_info>();
        if libc::dladdr(address, &raw mut info) == 0 { std::ptr::null_mut() } else { info.dli_fbase }
    }
}

/// OpenMP run-time systems that only the library that loaded them sees (dlopen, RTLD_LOCAL), as
/// those of Python's packages.
mod private {
    use super::{CStr, c_void};
    use homenode_recorder::state;

    /// Longest path of a library, its zero byte included.
    const PATH: usize = 1024;
    /// Libraries at most.
    const MOST: usize = 4;

    struct Found {
        paths: [[u8; PATH]; MOST],
        n: usize,
    }

    /// Whether a path is that of an OpenMP run-time system: wheels add a hash to the name.
    pub(super) fn is_runtime(path: &[u8]) -> bool {
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
        [&b"libgomp"[..], b"libomp", b"libiomp"].iter().any(|start| name.starts_with(start))
    }

    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> i32 {
        // SAFETY: the loader passes its entry, whose name is a C string or null; `to` is from
        // `find`.
        let (name, found) = unsafe { ((*info).dlpi_name, &mut *to.cast::<Found>()) };
        if name.is_null() {
            return 0;
        }
        // SAFETY: see above.
        let path = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
        if is_runtime(&path[..path.len() - 1]) && path.len() <= PATH && found.n < MOST {
            found.paths[found.n][..path.len()].copy_from_slice(path);
            found.n += 1;
        }
        0
    }

    /// The function in the only such library that has it; null if none has it. If several have it,
    /// nobody knows which of them the caller means, and another one than that computes wrong
    /// results: the program ends with a message.
    #[cold]
    pub(super) fn find(name: &CStr) -> *mut c_void {
        let mut found = Found { paths: [[0; PATH]; MOST], n: 0 };
        // SAFETY: `note` gets `found`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut found).cast()) };
        let mut only: *mut c_void = std::ptr::null_mut();
        for path in found.paths.iter().take(found.n) {
            // SAFETY: a path of a loaded library that ends with a zero byte; the handle is kept, so
            // that the function stays.
            let p = unsafe {
                let library = libc::dlopen(path.as_ptr().cast(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
                if library.is_null() { continue } else { libc::dlsym(library, name.as_ptr()) }
            };
            if !p.is_null() && !only.is_null() && p != only {
                state::complain(
                    "several OpenMP run-time systems are loaded, each for a library of its own: such a program cannot be \
                     recorded",
                );
                std::process::abort();
            }
            only = if p.is_null() { only } else { p };
        }
        only
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn runtimes_are_known_by_their_names() {
            for path in
                ["/usr/lib/libgomp.so.1", "a/scikit_learn.libs/libgomp-e985bcbb.so.1.0.0", "libiomp5.so"]
            {
                assert!(is_runtime(path.as_bytes()), "{path}");
            }
            assert!(!is_runtime(b"/opt/libgomp/libc.so.6"));
        }

        #[test]
        fn what_no_runtime_has_is_not_found() {
            assert!(find(c"homenode_there_is_no_such_function").is_null());
        }
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
        static NEXT: $crate::next::NextSymbol = $crate::next::NextSymbol::new(NAME, $behind);
        // SAFETY: the symbol has this type in every library that defines it; null becomes None.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<$ty>>(NEXT.get()) }
    }};
}
pub use next;
