//! Files that the program loads and unloads at run time.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::modules::{self, Places};
use crate::next::next;
use crate::{callers, state, statics};

/// The function behind this library.
static DLOPEN: AtomicUsize = AtomicUsize::new(0);
/// So many times more it is asked whether a file has come.
static LOOKS: AtomicU32 = AtomicU32::new(0);
/// Files that had come and gone when that was asked last.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// A file is there some milliseconds after it is asked for, and the caller does not say when.
const MOST_LOOKS: u32 = 1024;

/// `dlopen`, which must see who called it, for that is where it finds the folders to look in: so
/// nothing can be done here when it returns. That something may come is written down.
///
/// # Safety
/// As `dlopen`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen() {
    naked_asm!(
        "mov dword ptr [rip + {looks}], {most}",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "jne 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {look}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "2:",
        "jmp rax",
        looks = sym LOOKS,
        most = const MOST_LOOKS,
        real = sym DLOPEN,
        look = sym look,
    )
}

extern "C" fn none() -> *mut c_void {
    std::ptr::null_mut()
}

extern "C" fn look() -> usize {
    let found = next!(dlopen: unsafe extern "C" fn() -> *mut c_void).map_or(0, |f| f as *const () as usize);
    DLOPEN.store(found, Ordering::Relaxed);
    if found == 0 { none as *const () as usize } else { found }
}

/// Whether files may have come or gone since the last time: after a `dlopen` it takes some 50 ns to
/// say that none has.
#[inline]
pub fn changed() -> bool {
    LOOKS.load(Ordering::Relaxed) > 0 && ask()
}

#[cold]
fn ask() -> bool {
    LOOKS.fetch_sub(1, Ordering::Relaxed);
    let now = modules::changes();
    SEEN.swap(now, Ordering::Relaxed) != now
}

/// `dlclose`: another object may come to lie where the closed one was.
///
/// # Safety
/// As `dlclose`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> i32 {
    let Some(f) = next!(dlclose: unsafe extern "C" fn(*mut c_void) -> i32) else { return -1 };
    if !state::running() {
        // SAFETY: the caller's handle.
        return unsafe { f(handle) };
    }
    let before = state::guarded(|| (Places::now(), statics::hold()));
    // SAFETY: as above.
    let code = unsafe { f(handle) };
    if let Some((before, held)) = before {
        state::guarded(|| callers::forget(before.gone(&Places::now()).as_deref()));
        statics::let_go(held);
    }
    code
}
