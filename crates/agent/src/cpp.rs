//! C++'s `operator new` and `operator delete`. Those of the C++ library call `malloc` and `free`,
//! whose front ends see everything, so calls go straight on at the cost of two jumps. Allocators
//! (jemalloc, mimalloc, tcmalloc) bring operators that do not call `malloc`; for these, the front
//! ends here note large allocations.
//!
//! If only a module knows the C++ library (an extension of Python), the look-up behind this library
//! does not find it. The front ends then do its work by the `malloc` and `free` that it would have
//! called. Only without memory do they look up the caller's own operator, because that one throws,
//! or asks the program for more.
//!
//! Exceptions pass through: a call that goes straight on leaves no frame, and other frames have
//! nothing to clean up.

use std::arch::naked_asm;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_hooks::loaded;
use homenode_runtime::moving;

use crate::callers;
use crate::objects::{dies, noted};

/// Each operator, called with three arguments. An operator with fewer parameters ignores the rest.
type Real = unsafe extern "C-unwind" fn(usize, usize, usize) -> usize;
/// A front end: the operator's three arguments and the caller's return address.
type Front = unsafe extern "C-unwind" fn(usize, usize, usize, usize) -> usize;

/// Kind of an operator. The second argument of `NewAligned` is the alignment.
#[derive(Clone, Copy)]
enum Form {
    New,
    NewAligned,
    Delete,
}
use Form::{Delete, New, NewAligned};

const FORMS: usize = 20;

/// Where each operator's calls go. Looked up at the first call or when this library starts. 0: not
/// yet.
static TARGETS: [AtomicUsize; FORMS] = [const { AtomicUsize::new(0) }; FORMS];
/// The operator behind this library. If there is none, the `malloc`, `aligned_alloc` or `free` that
/// does its work.
static REAL: [AtomicUsize; FORMS] = [const { AtomicUsize::new(0) }; FORMS];

/// Whether the function is one of the C++ library, which calls `malloc` and `free`.
fn is_of_the_language(function: usize) -> bool {
    let Some(path) = loaded::path_of(function) else { return false };
    let name = path.to_bytes();
    let file = name.rsplit(|b| *b == b'/').next().unwrap_or(name);
    [&b"libstdc++.so"[..], b"libc++.so", b"libc++abi.so"].iter().any(|own| file.starts_with(own))
}

fn look<const I: usize>() -> usize {
    let in_c = match FORM[I] {
        New => c"malloc",
        NewAligned => c"aligned_alloc",
        Delete => c"free",
    };
    // SAFETY: C strings; behind this library, and in the global scope, in which this library is.
    let (real, in_c) = unsafe {
        (
            libc::dlsym(libc::RTLD_NEXT, NAMES[I].as_ptr()) as usize,
            libc::dlsym(libc::RTLD_DEFAULT, in_c.as_ptr()) as usize,
        )
    };
    REAL[I].store(if real == 0 { in_c } else { real }, Ordering::Relaxed);
    let front: Front = match (FORM[I], real) {
        (New | NewAligned, 0) => new_by_malloc::<I>,
        (New | NewAligned, _) => new::<I>,
        (Delete, _) => delete::<I>,
    };
    let target = if real != 0 && is_of_the_language(real) { real } else { front as *const () as usize };
    TARGETS[I].store(target, Ordering::Release);
    target
}

fn real<const I: usize>() -> Real {
    // SAFETY: the loader's address of the function of that name, which takes no more arguments.
    unsafe { std::mem::transmute::<usize, Real>(REAL[I].load(Ordering::Relaxed)) }
}

unsafe extern "C-unwind" fn new<const I: usize>(bytes: usize, b: usize, c: usize, _: usize) -> usize {
    // SAFETY: the C++ library's function of this name and type, with the caller's arguments.
    unsafe { noted(bytes, || real::<I>()(bytes, b, c)) }
}

unsafe extern "C-unwind" fn delete<const I: usize>(p: usize, b: usize, c: usize, _: usize) -> usize {
    let held = dies(p as *mut c_void);
    // SAFETY: the C++ library's function of this name and type, with the caller's arguments.
    unsafe { real::<I>()(p, b, c) };
    held.into_iter().for_each(moving::retire);
    0
}

unsafe extern "C-unwind" fn new_by_malloc<const I: usize>(
    bytes: usize,
    b: usize,
    c: usize,
    caller: usize,
) -> usize {
    let some = bytes.max(1);
    let p = match FORM[I] {
        // Rounds up to a multiple of the alignment, as the C++ library does.
        NewAligned => some.checked_next_multiple_of(b.max(1)).map_or(0, |whole| {
            // SAFETY: the C++ library's function of this type, with the caller's arguments.
            unsafe { noted(whole, || real::<I>()(b, whole, 0)) }
        }),
        // SAFETY: as above.
        _ => unsafe { noted(some, || real::<I>()(some, 0, 0)) },
    };
    if p != 0 {
        return p;
    }
    match callers::resolve(caller, NAMES[I]) {
        // SAFETY: as in `real`.
        Some(f) => unsafe { std::mem::transmute::<usize, Real>(f)(bytes, b, c) },
        None => 0,
    }
}

/// The front end of an operator that has not been looked up yet.
unsafe extern "C-unwind" fn first<const I: usize>(a: usize, b: usize, c: usize, caller: usize) -> usize {
    // SAFETY: one of the fronts above, or the function itself, which has fewer arguments.
    unsafe { std::mem::transmute::<usize, Front>(look::<I>())(a, b, c, caller) }
}

macro_rules! entries {
    ($($number:literal $form:ident $name:ident;)*) => {
        static NAMES: [&CStr; FORMS] = [$(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(s) => s,
            Err(_) => panic!("a symbol has no zero byte"),
        }),*];
        static FORM: [Form; FORMS] = [$($form),*];
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As the operator of this name.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            #[allow(non_snake_case)]
            pub unsafe extern "C-unwind" fn $name() {
                // `rcx` is the register of a fourth argument, which no operator has.
                naked_asm!(
                    "mov rax, qword ptr [rip + {targets} + 8*{number}]",
                    "mov rcx, [rsp]",
                    "test rax, rax",
                    "je {first}",
                    "jmp rax",
                    targets = sym TARGETS,
                    number = const $number,
                    first = sym first::<$number>,
                )
            }
        )*
        /// Looks up all operators.
        pub fn look_all() {
            $(look::<$number>();)*
            // SAFETY: clears this thread's error: a missing operator is not the program's error.
            unsafe { libc::dlerror() };
        }
    };
}

entries! {
    0 New _Znwm;
    1 New _Znam;
    2 New _ZnwmRKSt9nothrow_t;
    3 New _ZnamRKSt9nothrow_t;
    4 NewAligned _ZnwmSt11align_val_t;
    5 NewAligned _ZnamSt11align_val_t;
    6 NewAligned _ZnwmSt11align_val_tRKSt9nothrow_t;
    7 NewAligned _ZnamSt11align_val_tRKSt9nothrow_t;
    8 Delete _ZdlPv;
    9 Delete _ZdaPv;
    10 Delete _ZdlPvm;
    11 Delete _ZdaPvm;
    12 Delete _ZdlPvRKSt9nothrow_t;
    13 Delete _ZdaPvRKSt9nothrow_t;
    14 Delete _ZdlPvSt11align_val_t;
    15 Delete _ZdaPvSt11align_val_t;
    16 Delete _ZdlPvmSt11align_val_t;
    17 Delete _ZdaPvmSt11align_val_t;
    18 Delete _ZdlPvSt11align_val_tRKSt9nothrow_t;
    19 Delete _ZdaPvSt11align_val_tRKSt9nothrow_t;
}
