//! Exported functions that learn who calls them.

/// `with_caller! { name, register, function; … }`: exports `name`, which calls `function` with its
/// own arguments and, in `register` (the next free argument register), its return address.
#[macro_export]
macro_rules! with_caller {
    ($($name:ident, $register:literal, $function:path;)*) => { $(
        #[doc = concat!("Passes its return address on to [`", stringify!($function), "`].")]
        ///
        /// # Safety
        /// As the function it stands for.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                concat!("mov ", $register, ", qword ptr [rsp]"),
                "jmp {f}",
                ".cfi_endproc",
                f = sym $function,
            )
        }
    )* };
}
pub use with_caller;
