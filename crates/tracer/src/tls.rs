//! The recorder's thread-local block, reached by the initial-exec model: one load, no call. Default (global-dynamic)
//! thread-local storage in a shared library makes the recorder 2.3 times slower.

use std::arch::{asm, global_asm};

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::thread::Thread;

/// What the fast path needs, at fixed offsets.
#[repr(C, align(64))]
pub struct Tls {
    /// The filter's lines; [`EMPTY_FILTER`] where the thread is not recorded (yet, any more, at all).
    pub filter: *mut u64,
    /// `epoch << 2 | 3`; a filter entry is `line << 22 | epoch << 2 | 1 (read) or 3 (written)`.
    pub key: u64,
    /// Accesses executed.
    pub clock: u64,
    /// Filter lines minus one.
    pub mask: u64,
    /// The thread's recorder, or null.
    pub thread: *mut Thread,
    /// Nothing is to be recorded for this thread any more.
    pub closed: bool,
    /// The thread is being set up: events of the set-up itself are not recorded.
    pub starting: bool,
    /// Number that the thread's creator gave it.
    pub id: u64,
}

/// Where the calling thread's block lies relative to its thread pointer: the same in all threads. Code that the
/// wrappers have rewritten reads it instead of calling [`crate::fast`]; zero until the library is initialised would be
/// wrong, so it is set by the loader's first constructor.
#[unsafe(no_mangle)]
pub static homenode_tls_offset: AtomicI64 = AtomicI64::new(0);

/// Bits of an entry below the line.
pub const LINE_BITS: u32 = 22;
/// Epochs before the filter has to be cleared for real.
pub const EPOCHS: u64 = 1 << (LINE_BITS - 2);
const _: () = assert!(size_of::<Tls>() == 64);

/// The filter of threads that are not recorded: it has seen nothing, so every access takes the slow path.
pub static EMPTY_FILTER: AtomicU64 = AtomicU64::new(0);

global_asm!(
    ".pushsection .tdata,\"awT\",@progbits",
    ".globl homenode_tls",
    ".hidden homenode_tls",
    ".type homenode_tls, @object",
    ".size homenode_tls, 64",
    ".p2align 6",
    "homenode_tls:",
    ".quad {empty}",
    ".zero 56",
    ".popsection",
    empty = sym EMPTY_FILTER,
);

/// The calling thread's block. It lives as long as the thread; only the thread itself uses it.
#[inline(always)]
pub fn tls() -> *mut Tls {
    let p: *mut Tls;
    // SAFETY: reads the block's offset from the GOT and the thread pointer, which the ABI keeps at fs:0.
    unsafe {
        asm!(
            "mov {p}, qword ptr [rip + homenode_tls@GOTTPOFF]",
            "add {p}, qword ptr fs:[0]",
            p = out(reg) p,
            options(pure, nomem, nostack),
        );
    }
    p
}

/// Makes rewritten code find the block. Runs before any instrumented code.
pub fn publish_offset() {
    let thread_pointer: i64;
    // SAFETY: reads the thread pointer.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) thread_pointer, options(pure, readonly, nostack)) };
    homenode_tls_offset.store(tls() as i64 - thread_pointer, Ordering::Relaxed);
}
