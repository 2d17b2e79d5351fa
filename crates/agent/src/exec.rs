//! `execl` and its kin, which take a program's arguments one by one. They become calls of `execv`,
//! before which all memory is in place.

use std::arch::naked_asm;
use std::ffi::c_char;

use crate::interpose_signal::{execv, execve, execvp};

type Text = *const c_char;

/// The words of a call as its stub leaves them: those of the registers, the return address, those
/// on the stack.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Words(*const Text);

/// Words that come in registers.
const IN_REGISTERS: usize = 6;

impl Words {
    /// The word of that number.
    ///
    /// # Safety
    /// Number of words that the caller has passed.
    unsafe fn at(self, n: usize) -> Text {
        // SAFETY: behind the registers' there is the return address.
        unsafe { self.0.add(n + usize::from(n >= IN_REGISTERS)).read() }
    }
}

/// Arguments that find place on the stack.
const FEW: usize = 128;

/// Calls `exec` with path, arguments and environment, which follows the null behind the arguments.
///
/// # Safety
/// Words of a call of `execl`, `execlp` or `execle`.
unsafe fn collected(words: Words, exec: impl FnOnce(Text, &[Text], usize) -> i32) -> i32 {
    // SAFETY: the path, the arguments and a null are there.
    unsafe {
        let path = words.at(0);
        let count = (1..).take_while(|n| !words.at(*n).is_null()).count();
        let (mut few, mut many) = ([std::ptr::null(); FEW], Vec::new());
        let place = match few.get_mut(..=count) {
            Some(place) => place,
            None => {
                many.resize(count + 1, std::ptr::null());
                &mut many[..]
            }
        };
        for (n, place) in place.iter_mut().enumerate() {
            *place = words.at(1 + n);
        }
        exec(path, place, count + 2)
    }
}

unsafe extern "C" fn with_path(words: Words) -> i32 {
    // SAFETY: the caller's path and strings, with a null behind them.
    unsafe { collected(words, |path, args, _| execv(path, args.as_ptr())) }
}

unsafe extern "C" fn with_name(words: Words) -> i32 {
    // SAFETY: the caller's name and strings, with a null behind them.
    unsafe { collected(words, |path, args, _| execvp(path, args.as_ptr())) }
}

unsafe extern "C" fn with_environment(words: Words) -> i32 {
    // SAFETY: the caller's path, strings and environment, each with a null behind it.
    unsafe { collected(words, |path, args, next| execve(path, args.as_ptr(), words.at(next).cast())) }
}

macro_rules! entries {
    ($($name:ident $f:ident;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: nothing is armed while it runs.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "mov rdi, rsp",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 56",
                "call {f}",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "ret",
                ".cfi_endproc",
                f = sym $f,
            )
        }
    )* };
}

entries! {
    execl with_path;
    execlp with_name;
    execle with_environment;
}
