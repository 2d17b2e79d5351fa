//! The functions behind the front ends.

use std::ffi::{CStr, c_void};

use homenode_hooks::loaded;
pub use homenode_hooks::next::{NextSymbol, name};

/// The function of that name behind this library, where the run-time systems are. Programs that
/// load theirs later (dlopen, RTLD_GLOBAL) are served by a second look in the usual order.
pub fn behind(name: &CStr) -> *mut c_void {
    // SAFETY: a C string.
    let p = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    let p = if p.is_null() { in_order(name) } else { p };
    // A front end that found itself would call itself for ever.
    if p.is_null() || base_of(p) == base_of(base_of as *const c_void) { private::find(name) } else { p }
}

/// The function of that name that the program would call. For names that this library does not
/// define.
pub fn first(name: &CStr) -> *mut c_void {
    let p = in_order(name);
    if p.is_null() { private::find(name) } else { p }
}

fn in_order(name: &CStr) -> *mut c_void {
    // SAFETY: a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Where the library begins that has an address; null if none has it.
fn base_of(address: *const c_void) -> *mut c_void {
    loaded::containing(address as usize).map_or(std::ptr::null_mut(), |file| file.dli_fbase)
}

/// OpenMP run-time systems that only the library that loaded them sees (dlopen, RTLD_LOCAL), as
/// those of Python's packages.
mod private {
    use super::{CStr, c_void, loaded};
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

    /// The function in the only such library that has it; null if none has it. If several have it,
    /// nobody knows which of them the caller means, and another one than that computes wrong
    /// results: the program ends with a message.
    #[cold]
    pub(super) fn find(name: &CStr) -> *mut c_void {
        let mut found = Found { paths: [[0; PATH]; MOST], n: 0 };
        loaded::each(|file| {
            let path = file.path().to_bytes_with_nul();
            if is_runtime(&path[..path.len() - 1]) && path.len() <= PATH && found.n < MOST {
                found.paths[found.n][..path.len()].copy_from_slice(path);
                found.n += 1;
            }
            true
        });
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
        $crate::next::next!(@ $name: $ty, first)
    };
    ($name:ident : $ty:ty) => {
        $crate::next::next!(@ $name: $ty, behind)
    };
    (@ $name:ident : $ty:ty, $look:ident) => {{
        static NEXT: $crate::next::NextSymbol = $crate::next::NextSymbol::new($crate::next::name!($name), None);
        // SAFETY: the symbol has this type in every library that defines it; null becomes None.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<$ty>>(NEXT.get_by($crate::next::$look)) }
    }};
}
pub use next;
