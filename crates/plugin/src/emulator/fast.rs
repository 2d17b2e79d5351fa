//! The call-backs of instructions that only load or only store: twelve instructions where the
//! filter has seen the line.
//!
//! Written in assembly because each emulated thread is a thread of QEMU's, and its place is found
//! fastest in thread-local storage at a fixed distance from the thread pointer, which Rust's own
//! has not in a library that is loaded at run time.

use std::arch::{asm, global_asm, naked_asm};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::offset_of;

use homenode_recorder::FastPath;
use homenode_recorder::filter::LINE_SHIFT;

use super::cpu::EmulatedThread;
use super::cpus;
use crate::api::Accessed;

struct Idle(UnsafeCell<EmulatedThread>);

// SAFETY: only the assembly below counts in it, and nobody reads that.
unsafe impl Sync for Idle {}

/// What threads have whose place is not known yet: its filter has seen nothing.
static IDLE: Idle = Idle(UnsafeCell::new(EmulatedThread::new()));

global_asm!(
    ".pushsection .tdata,\"awT\",@progbits",
    // Global: the compiler may put its users into another object file.
    ".globl homenode_emulated",
    ".hidden homenode_emulated",
    ".type homenode_emulated, @object",
    ".size homenode_emulated, 8",
    ".p2align 3",
    "homenode_emulated:",
    ".quad {idle}",
    ".popsection",
    idle = sym IDLE,
);

/// This thread emulates that one from here on.
fn remember(cpu: *mut EmulatedThread) {
    // SAFETY: stores to this thread's word.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + homenode_emulated@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {cpu}",
            offset = out(reg) _,
            cpu = in(reg) cpu,
            options(nostack),
        );
    }
}

/// What the filter may not have seen. An access by at most `MOST` bytes, which lies in one line if
/// the last of them does.
extern "C" fn slow<const WRITES: bool, const MOST: u64>(
    own: *mut EmulatedThread,
    what: u32,
    address: u64,
    pc: u64,
    cpu: u32,
) {
    if std::ptr::eq(own, IDLE.0.get()) {
        return first(what, address, pc, cpu);
    }
    // SAFETY: this thread's place, which it has remembered.
    let own = unsafe { &mut *own };
    let line = address >> LINE_SHIFT;
    if (address + (MOST - 1)) >> LINE_SHIFT == line {
        EmulatedThread::new_line::<WRITES>(own, line, pc);
    } else {
        EmulatedThread::passed(own, what, address, pc);
    }
}

/// The first access of a thread. It was counted nowhere.
#[cold]
#[inline(never)]
extern "C" fn first(what: u32, address: u64, pc: u64, cpu: u32) {
    cpus::with(cpu, |own| {
        remember(own);
        own.block.clock += 1;
        EmulatedThread::passed(own, what, address, pc);
    });
}

macro_rules! call_back {
    ($name:ident, $table:ident, $writes:literal, $most:literal) => {
        /// An access of at most this number of bytes.
        #[unsafe(naked)]
        extern "C" fn $name(_cpu: u32, _what: u32, _address: u64, _pc: *mut c_void) {
            naked_asm!(
                ".p2align 6",
                "mov rax, qword ptr [rip + homenode_emulated@GOTTPOFF]",
                "lea r8, [rdx + {most} - 1]",
                "mov rax, qword ptr fs:[rax]",
                "mov r9, rdx",
                "shr r8, {shift}",
                "shr r9, {shift}",
                "inc qword ptr [rax + {clock}]",
                "mov r10, qword ptr [rax + {table}]",
                "and r8, qword ptr [rax + {mask}]",
                "cmp r9, qword ptr [r10 + r8 * 8]", // see Cpu::access
                "jne 2f",
                "ret",
                "2:",
                "mov r8d, edi",
                "mov rdi, rax",
                "jmp {slow}",
                most = const $most,
                shift = const LINE_SHIFT,
                clock = const offset_of!(EmulatedThread, block) + offset_of!(FastPath, clock),
                mask = const offset_of!(EmulatedThread, block) + offset_of!(FastPath, mask),
                table = const offset_of!(EmulatedThread, block) + offset_of!(FastPath, $table),
                slow = sym slow::<$writes, $most>,
            )
        }
    };
}

call_back!(load_1, used, false, 1);
call_back!(load_4, used, false, 4);
call_back!(load_8, used, false, 8);
call_back!(load_16, used, false, 16);
call_back!(store_1, written, true, 1);
call_back!(store_4, written, true, 4);
call_back!(store_8, written, true, 8);
call_back!(store_16, written, true, 16);

/// For a load of at most this number of bytes.
pub const fn load(bytes: u64) -> Accessed {
    match bytes {
        1 => load_1,
        2..=4 => load_4,
        5..=8 => load_8,
        _ => load_16,
    }
}

/// For a store of at most this number of bytes.
pub const fn store(bytes: u64) -> Accessed {
    match bytes {
        1 => store_1,
        2..=4 => store_4,
        5..=8 => store_8,
        _ => store_16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::{READ, WRITE};

    #[test]
    fn each_access_advances_the_clock_of_its_thread() {
        let mut cpu = EmulatedThread::new();
        remember(&raw mut cpu);
        for (n, bytes) in [1, 2, 4, 8, 16, 32].into_iter().enumerate() {
            // Seen by nobody, in one line and over its end; nothing is recorded for this thread.
            load(bytes)(7, READ, 4096, std::ptr::null_mut());
            store(bytes)(7, WRITE, 4096 + 63, std::ptr::null_mut());
            // SAFETY: the thread's place, which the call-backs have under another name.
            let clock = unsafe { (&raw const cpu.block.clock).read_volatile() };
            assert_eq!(clock, 2 * (n as u64 + 1));
        }
        remember(IDLE.0.get());
    }
}
