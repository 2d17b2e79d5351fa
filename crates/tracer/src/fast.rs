//! `__tsan_read*` and `__tsan_write*`: nine instructions if the filter has seen the line.
//!
//! They are written in assembly because only here the return address, which names the place in the
//! source, costs nothing. Code that the compiler drivers have rewritten has these instructions in
//! place, and calls only `homenode_read_passed` and `homenode_write_passed`.

use std::arch::naked_asm;
use std::ffi::c_void;

use homenode_log::encode::MAX_DELTA;

use homenode_recorder::recorder::offsets;

use crate::thread;
use crate::tls::OFFSET;

extern "C-unwind" fn slow_read(line: u64, pc: u64) {
    thread::access(line, false, pc);
}
extern "C-unwind" fn slow_write(line: u64, pc: u64) {
    thread::access(line, true, pc);
}

macro_rules! access {
    ($name:ident, $table:literal, $slow:ident) => {
        /// Called by instrumented code before the access.
        ///
        /// # Safety
        /// Any address may be passed; it is not dereferenced.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name(_address: *const c_void) {
            naked_asm!(
                ".cfi_startproc",
                "mov rax, qword ptr [rip + {offset}]",
                "shr rdi, 6",
                "inc qword ptr fs:[rax + 16]", // clock
                "mov rdx, qword ptr fs:[rax + {table}]",
                "mov esi, edi",
                "and esi, dword ptr fs:[rax + 24]", // mask
                "cmp rdi, qword ptr [rdx + rsi * 8]",
                "jne 2f",
                "ret",
                "2:",
                "mov rsi, qword ptr [rsp]",
                "jmp {slow}",
                ".cfi_endproc",
                slow = sym $slow,
                offset = sym OFFSET,
                table = const $table,
            )
        }
    };
}

macro_rules! reads {
    ($($name:ident)*) => { $( access!($name, 0, homenode_read_passed); )* };
}
macro_rules! writes {
    ($($name:ident)*) => { $( access!($name, 8, homenode_write_passed); )* };
}

// An aligned access lies in one line. The sanitiser's vptr and read-write forms are reads and
// writes to us.
reads!(__tsan_read1 __tsan_read2 __tsan_read4 __tsan_read8 __tsan_read16 __tsan_vptr_read
       __tsan_volatile_read1 __tsan_volatile_read2 __tsan_volatile_read4 __tsan_volatile_read8
       __tsan_volatile_read16);
writes!(__tsan_write1 __tsan_write2 __tsan_write4 __tsan_write8 __tsan_write16 __tsan_vptr_update
        __tsan_volatile_write1 __tsan_volatile_write2 __tsan_volatile_write4 __tsan_volatile_write8
        __tsan_volatile_write16
        __tsan_read_write1 __tsan_read_write2 __tsan_read_write4 __tsan_read_write8 __tsan_read_write16);

macro_rules! passed {
    ($name:ident, $slow:ident, $write:literal, $written:literal) => {
        /// Called when the filter has not seen an access: `rdi` holds the line, `rsi` the address
        /// of the place. Returns with the block's fields in the registers where rewritten code may
        /// keep them.
        ///
        /// What is usual is done here: the filter remembers the line, and two words go into the
        /// buffer. Everything else (buffer full, other threads, a long time since the last event, a
        /// signal handler that has interrupted just this) is for [`thread::access`]. Five registers
        /// suffice, so `r8` to `r10` need not be loaded again.
        ///
        /// # Safety
        /// To be called by rewritten code and the functions above only.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "mov rax, qword ptr [rip + {offset}]",
                "mov rdx, qword ptr fs:[rax + 32]", // recorder
                "mov rcx, qword ptr fs:[rax + 16]", // clock
                "test rdx, rdx",
                "jz 3f",
                "mov rax, qword ptr [rdx + {used}]",
                "sub rcx, qword ptr [rdx + {last_tick}]",
                "cmp rax, qword ptr [rdx + {gate}]",
                "jae 4f",
                "cmp rcx, {max_delta}",
                "ja 4f",
                // From here to the last store a signal handler finds the recorder at work.
                "mov byte ptr [rdx + {used} + 7], 0x80",
                "add qword ptr [rdx + {last_tick}], rcx",
                "shl rsi, 16",
                "or rsi, rcx",
                "mov rcx, qword ptr [rdx + {buffer}]",
                "mov qword ptr [rcx + rax * 8 + 8], rsi",
                "mov rsi, rdi",
                "shl rsi, 8",
                $write,
                "mov qword ptr [rcx + rax * 8], rsi",
                "mov esi, edi",
                "and esi, dword ptr [rdx + {mask}]",
                "mov rcx, qword ptr [rdx + {used_lines}]",
                "mov qword ptr [rcx + rsi * 8], rdi",
                "mov rcx, qword ptr [rdx + {written_lines}]",
                $written,
                "add rax, 2",
                "mov qword ptr [rdx + {used}], rax",
                "ret",
                "3:",
                "cmp byte ptr fs:[rax + 40], 0", // closed
                "je 4f",
                // Nobody records: a filter that is nobody's evidence remembers the line.
                "mov rcx, qword ptr fs:[rax]",
                "mov esi, edi",
                "and esi, dword ptr fs:[rax + 24]", // mask
                "mov qword ptr [rcx + rsi * 8], rdi",
                "ret",
                "4:",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {slow}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "mov rax, qword ptr [rip + {offset}]",
                "mov r8, qword ptr fs:[rax]",
                "mov r9, qword ptr fs:[rax + 8]",
                "mov r10, qword ptr fs:[rax + 24]",
                "ret",
                ".cfi_endproc",
                slow = sym $slow,
                offset = sym OFFSET,
                used = const offsets::USED,
                last_tick = const offsets::LAST_TICK,
                gate = const offsets::GATE,
                buffer = const offsets::BUFFER,
                mask = const offsets::MASK,
                used_lines = const offsets::USED_LINES,
                written_lines = const offsets::WRITTEN_LINES,
                max_delta = const MAX_DELTA,
            )
        }
    };
}

passed!(homenode_read_passed, slow_read, "", "mov qword ptr [rcx + rsi * 8], 0");
passed!(homenode_write_passed, slow_write, "or rsi, 1", "mov qword ptr [rcx + rsi * 8], rdi");
