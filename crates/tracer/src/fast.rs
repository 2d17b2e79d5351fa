//! `__tsan_read*` and `__tsan_write*`: ten instructions when the filter has seen the line.
//!
//! Written in assembly because the return address, which names the place in the source, is free only here. Code that
//! the wrappers have rewritten has these instructions in its own place and calls only `homenode_read_passed` and
//! `homenode_write_passed`.

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::thread;
use crate::tls::OFFSET;

extern "C" fn slow_read(entry: u64, pc: u64) {
    // SAFETY: both callers below made the entry with the thread's key.
    unsafe { thread::passed(entry, false, pc) }
}
extern "C" fn slow_write(entry: u64, pc: u64) {
    // SAFETY: as above.
    unsafe { thread::passed(entry, true, pc) }
}

macro_rules! access {
    ($name:ident, $table:literal, $slow:ident) => {
        /// Called by instrumented code before the access.
        ///
        /// # Safety
        /// Any address may be passed; it is not dereferenced.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(_address: *const c_void) {
            naked_asm!(
                "mov rax, qword ptr [rip + {offset}]",
                "shr rdi, 6",
                "inc qword ptr fs:[rax + 16]", // clock
                "mov rdx, qword ptr fs:[rax + {table}]",
                "mov esi, edi",
                "and esi, dword ptr fs:[rax + 24]", // mask
                "or rdi, qword ptr fs:[rax + 8]",   // key
                "cmp rdi, qword ptr [rdx + rsi * 8]",
                "jne 2f",
                "ret",
                "2:",
                "mov rsi, qword ptr [rsp]",
                "jmp {slow}",
                slow = sym $slow,
                offset = sym OFFSET,
                table = const $table,
            )
        }
    };
}

macro_rules! reads {
    ($($name:ident)*) => { $( access!($name, 0, slow_read); )* };
}
macro_rules! writes {
    ($($name:ident)*) => { $( access!($name, 32, slow_write); )* };
}

// An aligned access lies in one line. The sanitiser's vptr and read-write forms are reads and writes to us.
reads!(__tsan_read1 __tsan_read2 __tsan_read4 __tsan_read8 __tsan_read16 __tsan_vptr_read
       __tsan_volatile_read1 __tsan_volatile_read2 __tsan_volatile_read4 __tsan_volatile_read8
       __tsan_volatile_read16);
writes!(__tsan_write1 __tsan_write2 __tsan_write4 __tsan_write8 __tsan_write16 __tsan_vptr_update
        __tsan_volatile_write1 __tsan_volatile_write2 __tsan_volatile_write4 __tsan_volatile_write8
        __tsan_volatile_write16
        __tsan_read_write1 __tsan_read_write2 __tsan_read_write4 __tsan_read_write8 __tsan_read_write16);

macro_rules! passed {
    ($($name:ident $slow:ident)*) => { $(
        /// Called by rewritten code when the filter has not seen an access: `rdi` holds `line | key`, `rsi` the address
        /// of the place. Returns with the block's fields in the registers where rewritten code may keep them.
        ///
        /// # Safety
        /// To be called by rewritten code only.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "sub rsp, 8",
                "call {slow}",
                "add rsp, 8",
                "mov rax, qword ptr [rip + {offset}]",
                "mov r8, qword ptr fs:[rax]",
                "mov r9, qword ptr fs:[rax + 32]",
                "mov r10, qword ptr fs:[rax + 24]",
                "mov r11, qword ptr fs:[rax + 8]",
                "ret",
                slow = sym $slow,
                offset = sym OFFSET,
            )
        }
    )* };
}

passed!(homenode_read_passed slow_read homenode_write_passed slow_write);
