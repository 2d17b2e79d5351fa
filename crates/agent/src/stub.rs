//! What every front end of a run-time's function begins with: the call as it came, with its return
//! address.
//!
//! [`stub!`] is the exported function, [`front!`] the function that it goes to, and [`exported!`] a
//! list of the former.

use std::ffi::CStr;

/// The body of a naked function that passes eight words on to `$how`, whether the function has so
/// many or not, then its return address and the number `$entry`.
///
/// Instructions that follow the number come before.
macro_rules! stub {
    ($how:path, $entry:expr $(, $before:literal)* $(,)?) => {
        // Arguments 7 and 8 lie above the return address, whether the entry point has them or not:
        // reading two words there is harmless, for the caller's frame is larger. 5 words keep the
        // stack aligned.
        std::arch::naked_asm!(
            ".cfi_startproc",
            $($before,)*
            "sub rsp, 8",
            ".cfi_adjust_cfa_offset 8",
            "push {entry}",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 16]",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 40]",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 40]",
            ".cfi_adjust_cfa_offset 8",
            "call {f}",
            "add rsp, 40",
            ".cfi_adjust_cfa_offset -40",
            "ret",
            ".cfi_endproc",
            entry = const ($entry) as i32,
            f = sym $how,
        )
    };
}
pub(crate) use stub;

/// As [`stub!`], for functions that have nine words.
macro_rules! stub_of_nine {
    ($how:path, $entry:expr) => {
        // Arguments 7, 8 and 9 lie above the return address. 5 words keep the stack aligned.
        std::arch::naked_asm!(
            ".cfi_startproc",
            "push {entry}",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 8]",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 40]",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 40]",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 40]",
            ".cfi_adjust_cfa_offset 8",
            "call {f}",
            "add rsp, 40",
            ".cfi_adjust_cfa_offset -40",
            "ret",
            ".cfi_endproc",
            entry = const ($entry) as i32,
            f = sym $how,
        )
    };
}
pub(crate) use stub_of_nine;

/// A function that [`stub!`] goes to. It takes the eight words of the call, its return address and
/// the number of the entry point.
macro_rules! front {
    ($(#[$doc:meta])* fn $name:ident($words:ident, $caller:ident, $entry:ident) $body:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C-unwind" fn $name(
            a: usize,
            b: usize,
            c: usize,
            d: usize,
            e: usize,
            f: usize,
            g: usize,
            h: usize,
            $caller: usize,
            $entry: usize,
        ) -> usize {
            let $words = [a, b, c, d, e, f, g, h];
            $body
        }
    };
}
pub(crate) use front;

/// Functions that this library exports with `homenode_` before the run-time's name, numbered from
/// `$base` on: `NAMES` has the run-time's names, by number. The macro `$stub` makes each function.
macro_rules! exported {
    ($base:expr, $stub:ident; $($how:ident $name:ident)*) => {
        /// Names of the entry points, by number.
        static NAMES: &[&CStr] = &[$($crate::stub::name(concat!(stringify!($name), "\0"))),*];
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Entry { $($name),* }
        $(
            /// Passes its arguments on, with its return address and number.
            ///
            /// # Safety
            /// Called by compiler-generated code.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C-unwind" fn $name() {
                $stub!($how, $base + Entry::$name as usize)
            }
        )*
    };
}
pub(crate) use exported;

/// The run-time's name of an entry point that this library exports with `homenode_` before it.
/// `with_zero` ends with a zero byte.
pub const fn name(with_zero: &'static str) -> &'static CStr {
    let (prefix, name) = with_zero.as_bytes().split_at("homenode_".len());
    assert!(prefix.len() == 9);
    match CStr::from_bytes_with_nul(name) {
        Ok(name) => name,
        Err(_) => panic!("a symbol has no zero byte"),
    }
}
