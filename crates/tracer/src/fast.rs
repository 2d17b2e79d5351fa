//! `__tsan_read*` and `__tsan_write*`: fourteen instructions when the filter has seen the line.
//!
//! Written in assembly because the return address, which names the place in the source, is free only here. Code that
//! the wrappers have rewritten has these instructions in its own place and calls only `homenode_read_passed` and
//! `homenode_write_passed`.

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::thread;
use crate::tls::OFFSET;

extern "C" fn slow_read(address: usize, pc: usize) {
    thread::access(address, false, pc);
}
extern "C" fn slow_write(address: usize, pc: usize) {
    thread::access(address, true, pc);
}
macro_rules! access {
    ($name:ident, $seen:literal, $slow:ident) => {
        /// Called by instrumented code before the access.
        ///
        /// # Safety
        /// Any address may be passed; it is not dereferenced.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(_address: *const c_void) {
            naked_asm!(
                "mov rax, qword ptr [rip + {offset}]",
                "mov rdx, qword ptr fs:[rax]", // filter
                "mov rcx, rdi",
                "shr rcx, 6",
                "inc qword ptr fs:[rax + 16]", // clock
                "mov esi, ecx",
                "and esi, dword ptr fs:[rax + 24]", // mask
                "or rcx, qword ptr fs:[rax + 8]", // key
                "mov rsi, qword ptr [rdx + rsi * 8]",
                $seen,
                "cmp rsi, rcx",
                "jne 2f",
                "ret",
                "2:",
                "mov rsi, qword ptr [rsp]",
                "jmp {slow}",
                slow = sym $slow,
                offset = sym OFFSET,
            )
        }
    };
}

macro_rules! reads {
    ($($name:ident)*) => { $( access!($name, "bts rsi, 62", slow_read); )* };
}
macro_rules! writes {
    ($($name:ident)*) => { $( access!($name, "", slow_write); )* };
}

// An aligned access lies in one line. The sanitiser's vptr and read-write forms are reads and writes to us.
reads!(__tsan_read1 __tsan_read2 __tsan_read4 __tsan_read8 __tsan_read16 __tsan_vptr_read
       __tsan_volatile_read1 __tsan_volatile_read2 __tsan_volatile_read4 __tsan_volatile_read8
       __tsan_volatile_read16);
writes!(__tsan_write1 __tsan_write2 __tsan_write4 __tsan_write8 __tsan_write16 __tsan_vptr_update
        __tsan_volatile_write1 __tsan_volatile_write2 __tsan_volatile_write4 __tsan_volatile_write8
        __tsan_volatile_write16
        __tsan_read_write1 __tsan_read_write2 __tsan_read_write4 __tsan_read_write8 __tsan_read_write16);

crate::ranges::with_pc! {
    homenode_read_passed, "rsi", slow_read;
    homenode_write_passed, "rsi", slow_write;
}
