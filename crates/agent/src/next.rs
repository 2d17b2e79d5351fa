//! The functions behind the front ends.
//!
//! They are looked up when this library starts, not at their first call. A look-up takes the
//! loader's lock. A thread that waits for the caller may hold it (a library's constructor that
//! waits for a thread of its own), or a thread that does not exist in a forked child.

use homenode_hooks::next::NextSymbol;

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
        let (first, end) = ((&raw const FIRST).cast::<NextSymbol>(), (&raw const END).cast::<NextSymbol>());
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
        // Used by `look_all`, which the compiler does not see: it may not split the static up.
        #[used]
        #[unsafe(link_section = "homenode_next")]
        static NEXT: homenode_hooks::next::NextSymbol =
            homenode_hooks::next::NextSymbol::new(homenode_hooks::name!($name), $crate::next::first!($($version)?));
        &NEXT
    }};
}
pub(crate) use place;

/// The version, if there is one.
macro_rules! first {
    () => {
        None
    };
    ($version:literal) => {
        Some($version)
    };
}
pub(crate) use first;
