//! Modules that the program loads and unloads at run time.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use homenode_runtime::driver::Driver;

use crate::modules::{self, Places};
use crate::next::next;
use crate::{callers, raw_calls, state, statics};

/// The C library's `dlopen`.
static DLOPEN: AtomicUsize = AtomicUsize::new(0);
/// Number of checks left for a module that a `dlopen` loads.
static LOOKS: AtomicU32 = AtomicU32::new(0);
/// Number of modules loaded and unloaded, at the last check.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Number of checks after each `dlopen`. The module appears some milliseconds after the call, and
/// nothing says when.
const MOST_LOOKS: u32 = 1024;

/// `dlopen`. It searches the folders of its caller's module, so this front end jumps to it and
/// cannot act when it returns. It notes beforehand that a module may appear.
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

/// Whether modules may have been loaded or unloaded since the last call. After a `dlopen`, a call
/// takes about 50 ns.
#[inline]
fn changed() -> bool {
    LOOKS.load(Ordering::Relaxed) > 0 && ask()
}

#[cold]
fn ask() -> bool {
    LOOKS.fetch_sub(1, Ordering::Relaxed);
    let now = modules::changes();
    SEEN.swap(now, Ordering::Relaxed) != now
}

/// Reports to the driver the static arrays of modules that were loaded or unloaded since the last
/// call.
#[inline]
pub fn report(driver: &mut Driver) {
    if changed() {
        raw_calls::look();
        statics::look(driver);
    }
}

/// `dlclose`. Another object may later be where the closed module was.
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
