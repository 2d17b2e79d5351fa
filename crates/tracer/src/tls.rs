//! The recorder's thread-local block, reached without a call. The default (global-dynamic)
//! thread-local storage of a shared library would make the recorder 2.3 times slower.

use std::arch::{asm, global_asm};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering};

use homenode_recorder::FastPath;
use homenode_recorder::unrecorded::EMPTY;

/// Offset of a thread's block from its thread pointer; the same in all threads. The block is in the
/// executable's thread-local storage if the compiler drivers have put one there
/// (`homenode_exe_tls`), so that rewritten code reaches it in one instruction. Otherwise it is in
/// this library's. The first constructor sets it, before any instrumented code.
pub static OFFSET: AtomicI64 = AtomicI64::new(0);

global_asm!(
    ".pushsection .tdata,\"awT\",@progbits",
    ".globl homenode_tls",
    ".hidden homenode_tls",
    ".type homenode_tls, @object",
    ".size homenode_tls, 64",
    ".p2align 6",
    "homenode_tls:",
    ".quad {empty}, {empty}",
    ".zero 48",
    ".popsection",
    ".pushsection .tbss,\"awT\",@nobits",
    ".globl homenode_member",
    ".hidden homenode_member",
    ".type homenode_member, @object",
    ".size homenode_member, 8",
    ".p2align 3",
    "homenode_member:",
    ".zero 8",
    ".popsection",
    empty = sym EMPTY,
);

fn thread_pointer() -> usize {
    let p: usize;
    // SAFETY: the ABI keeps the thread pointer at fs:0.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) p, options(pure, readonly, nostack)) };
    p
}

/// The calling thread's block. It lives as long as the thread, and only the thread itself uses it.
#[inline(always)]
pub fn tls() -> *mut FastPath {
    let offset = OFFSET.load(Ordering::Relaxed) as usize;
    std::ptr::with_exposed_provenance_mut(thread_pointer().wrapping_add(offset))
}

/// The calling thread's word for the address of the data that its marks need. It begins as null.
pub fn member() -> *mut *mut c_void {
    let offset: usize;
    // SAFETY: reads the offset of this library's word from the GOT.
    unsafe {
        asm!("mov {}, qword ptr [rip + homenode_member@GOTTPOFF]", out(reg) offset, options(pure, readonly, nostack));
    }
    std::ptr::with_exposed_provenance_mut(thread_pointer().wrapping_add(offset))
}

/// Decides where the blocks are. Idempotent.
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
