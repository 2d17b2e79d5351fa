//! Marks for the lab's monitor: no-ops that a plug-in of QEMU recognises. Everything else ignores
//! them.
//!
//! `nop [rax + rax + CODE]`, with 0x686e in the upper half of the displacement.

use std::arch::asm;

/// The guest's side is about to start the program.
#[inline(never)]
pub fn start() {
    // SAFETY: a no-op; as a function that touches memory it stays where it is among accesses.
    unsafe { asm!(".byte 0x0f,0x1f,0x84,0x00", ".long 0x686e0004", options(nostack, preserves_flags)) }
}

/// The program has ended.
#[inline(never)]
pub fn stop() {
    // SAFETY: as above.
    unsafe { asm!(".byte 0x0f,0x1f,0x84,0x00", ".long 0x686e0005", options(nostack, preserves_flags)) }
}
