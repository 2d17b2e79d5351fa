//! The recorder's thread-local block, reached without a call: default (global-dynamic) thread-local storage in a shared
//! library makes the recorder 2.3 times slower.

use std::arch::{asm, global_asm};

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::thread::Thread;

/// What the fast path needs, at fixed offsets, which rewritten code knows too (`homenode_compilers::rewrite`).
///
/// The filter is two tables of the same length: which line was last used at a place, and whether that line was written.
/// So an access asks one table one question: is this entry `line | key`? What is not to be recorded is given a key of
/// ones and a table of one entry of ones, which has seen everything.
#[repr(C, align(64))]
pub struct Tls {
    /// The lines used.
    pub used: *mut u64,
    /// [`key`] of the thread's epoch.
    pub key: u64,
    /// Accesses executed.
    pub clock: u64,
    /// Lines of the filter minus one.
    pub mask: u64,
    /// The lines written: at each place 0 or what `used` has there.
    pub written: *mut u64,
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

/// Bits of a filter entry that hold the line; above it the epoch, then [`VALID`].
pub const LINE_BITS: u32 = 42;
/// The line of an entry.
pub const LINE: u64 = (1 << LINE_BITS) - 1;
/// There is an entry.
const VALID: u64 = 1 << 63;
/// Epochs before the filter has to be cleared for real.
pub const EPOCHS: u64 = 1 << 20;
/// What an entry has beside the line.
pub const fn key(epoch: u64) -> u64 {
    VALID | epoch << LINE_BITS
}
/// The key with which every access is one that has been seen.
pub const SEEN_KEY: u64 = !0;
const _: () = assert!(size_of::<Tls>() == 64);

/// The filter of threads that have no recorder yet: it has seen nothing, so the first access takes the slow path.
static EMPTY: AtomicU64 = AtomicU64::new(0);
/// With [`SEEN_KEY`], the filter of threads that are not recorded.
pub static ALL_SEEN: AtomicU64 = AtomicU64::new(SEEN_KEY);

global_asm!(
    ".pushsection .tdata,\"awT\",@progbits",
    ".globl homenode_tls",
    ".hidden homenode_tls",
    ".type homenode_tls, @object",
    ".size homenode_tls, 64",
    ".p2align 6",
    "homenode_tls:",
    ".quad {empty}",
    ".zero 24",
    ".quad {empty}",
    ".zero 24",
    ".popsection",
    empty = sym EMPTY,
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
