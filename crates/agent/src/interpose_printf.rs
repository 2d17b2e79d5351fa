//! `printf` and its kin. Up to glibc 2.36 the C library writes a long text directly from its place,
//! by calls of its own. It has read the text before, so none of the text is armed if nothing is
//! armed meanwhile.

use std::arch::naked_asm;
use std::ffi::{c_char, c_int, c_void};

use homenode_runtime::moving;

use crate::next::next;

type File = *mut libc::FILE;
type Text = *const c_char;
/// `va_list`.
type Rest = *mut c_void;

macro_rules! lists {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: nothing is armed while it runs.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty,)* rest: Rest) -> c_int {
            let Some(f) = next!($name: unsafe extern "C-unwind" fn($($ty,)* Rest) -> c_int) else { return -1 };
            let quiet = moving::quiet();
            // SAFETY: the caller's arguments.
            let result = unsafe { f($($arg,)* rest) };
            moving::retire(quiet);
            result
        }
    )* };
}

lists! {
    vprintf(format: Text);
    vfprintf(file: File, format: Text);
    vdprintf(fd: c_int, format: Text);
    __vprintf_chk(flag: c_int, format: Text);
    __vfprintf_chk(file: File, flag: c_int, format: Text);
    __vdprintf_chk(fd: c_int, flag: c_int, format: Text);
}

macro_rules! printfs {
    ($($name:ident $named:literal $register:literal $list:ident;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`, with a list of its arguments.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() {
            // Does what a compiler generates for `va_start` (System V ABI, AMD64, 3.5.7). The list
            // comes first: offsets past the registers of named arguments, the address of the
            // arguments on the stack, and the address of the saved registers. The 176 bytes of
            // saved registers follow.
            naked_asm!(
                ".cfi_startproc",
                "sub rsp, 216",
                ".cfi_adjust_cfa_offset 216",
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], 8 * ", $named),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $register, ", rsp"),
                "call {f}",
                "add rsp, 216",
                ".cfi_adjust_cfa_offset -216",
                "ret",
                ".cfi_endproc",
                f = sym $list,
            )
        }
    )* };
}

// The register is the one of the first argument after the named ones.
printfs! {
    printf "1" "rsi" vprintf;
    fprintf "2" "rdx" vfprintf;
    dprintf "2" "rdx" vdprintf;
    __printf_chk "2" "rdx" __vprintf_chk;
    __fprintf_chk "3" "rcx" __vfprintf_chk;
    __dprintf_chk "3" "rcx" __vdprintf_chk;
}
