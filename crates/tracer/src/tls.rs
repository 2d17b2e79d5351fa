//! The recorder's thread-local block, reached without a call: default (global-dynamic) thread-local storage in a shared
//! library makes the recorder 2.3 times slower.

use std::arch::{asm, global_asm};

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::thread::Thread;

/// What the fast path needs, at fixed offsets.
#[repr(C, align(64))]
pub struct Tls {
    /// The filter's lines; [`EMPTY_FILTER`] where the thread is not recorded (yet, any more, at all).
    pub filter: *mut u64,
    /// [`key`] of the thread's epoch; a filter entry is `line | key`, without [`WRITTEN`] if it was only read.
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

/// Where a thread's block lies relative to its thread pointer: the same in all threads. It is in the executable's
/// thread-local storage where the wrappers have put one there (`homenode_exe_tls`, so that rewritten code reaches it
/// in one instruction), otherwise in this library's. Set by the first constructor, before any instrumented code.
pub static OFFSET: AtomicI64 = AtomicI64::new(0);

/// Bits of a filter entry: the line, above it the epoch, then these.
pub const LINE_BITS: u32 = 42;
/// The line was written in this epoch.
pub const WRITTEN: u64 = 1 << 62;
/// There is an entry.
pub const VALID: u64 = 1 << 63;
/// Epochs before the filter has to be cleared for real.
pub const EPOCHS: u64 = 1 << 20;
/// What an entry of a written line has beside the line.
pub const fn key(epoch: u64) -> u64 {
    VALID | WRITTEN | epoch << LINE_BITS
}
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

fn thread_pointer() -> usize {
    let p: usize;
    // SAFETY: the ABI keeps the thread pointer at fs:0.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) p, options(pure, readonly, nostack)) };
    p
}

/// The calling thread's block. It lives as long as the thread; only the thread itself uses it.
#[inline(always)]
pub fn tls() -> *mut Tls {
    let offset = OFFSET.load(Ordering::Relaxed) as usize;
    std::ptr::with_exposed_provenance_mut(thread_pointer().wrapping_add(offset))
}

/// Decides where the blocks are; idempotent.
pub fn publish_offset() {
    let own: usize;
    // SAFETY: reads the offset of this library's block from the GOT; looks a symbol up.
    let block = unsafe {
        asm!("mov {}, qword ptr [rip + homenode_tls@GOTTPOFF]", out(reg) own, options(pure, readonly, nostack));
        libc::dlsym(libc::RTLD_DEFAULT, c"homenode_exe_tls".as_ptr())
    };
    let offset = if block.is_null() { own } else { (block as usize).wrapping_sub(thread_pointer()) };
    OFFSET.store(offset as i64, Ordering::Relaxed);
}
