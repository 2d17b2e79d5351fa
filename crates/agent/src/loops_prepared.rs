//! The chunks that a thread of one of libgomp's loops has taken and not begun.
//!
//! A thread often knows its next chunks: with `cyclic` all of them, with `affinity` a batch. So the
//! numbers of the next ones are kept, and [`stub_of_prepared!`] hands them out without a call. A
//! chunk then costs the program what libgomp's own costs, or less.
//!
//! The numbers are in the thread's static memory for thread-local variables, of which a library
//! that is loaded at the program's start has as much as it wants. Its place is known to the linker.
//! (The compiler's `thread_local!` costs a call in a library.)

use std::arch::{asm, global_asm};

/// Chunks of one length. The layout is known to [`stub_of_prepared!`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Prepared {
    /// The number of the next one.
    pub next: *const u32,
    /// Behind the number of the last one.
    pub end: *const u32,
    /// The first value of chunk 0.
    pub base: u64,
    /// From the first value of a chunk to that of the next number.
    pub apart: u64,
    /// From the first value of a chunk to the value that ends it.
    pub length: u64,
}

impl Prepared {
    /// No chunks.
    pub const NONE: Self =
        Self { next: std::ptr::null(), end: std::ptr::null(), base: 0, apart: 0, length: 0 };

    /// How many there are.
    pub fn left(&self) -> usize {
        (self.end.addr() - self.next.addr()) / size_of::<u32>()
    }
}

global_asm!(
    ".pushsection .tbss.homenode_prepared,\"awT\",@nobits",
    ".p2align 3",
    ".globl homenode_prepared",
    ".hidden homenode_prepared",
    ".type homenode_prepared, @object",
    ".size homenode_prepared, 40",
    "homenode_prepared:",
    ".zero 40",
    ".popsection",
);

/// The calling thread's. Fit for a handler.
#[inline]
fn place() -> *mut Prepared {
    let place;
    // SAFETY: the address of a thread-local variable of this library, as the processor's ABI for
    // such variables computes it.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + homenode_prepared@GOTTPOFF]",
            out(reg) place,
            options(nostack, readonly),
        );
    }
    place
}

/// How many chunks the calling thread has not begun. Fit for a handler.
#[inline]
pub fn left() -> usize {
    // SAFETY: this thread's own; only this thread writes.
    unsafe { (*place()).left() }
}

/// Exchanges the calling thread's chunks.
#[inline]
pub fn replace(new: Prepared) -> Prepared {
    // SAFETY: this thread's own, and nobody has a reference.
    unsafe { place().replace(new) }
}

/// As [`crate::stub::stub!`], for a function of the thread's next chunk: two places, for the first
/// value and for the bound. A prepared chunk is handed out at once.
macro_rules! stub_of_prepared {
    ($how:path, $entry:expr) => {
        $crate::stub::stub!(
            $how,
            $entry,
            "mov rax, qword ptr [rip + homenode_prepared@GOTTPOFF]",
            "mov r10, qword ptr fs:[rax]",
            "cmp r10, qword ptr fs:[rax + 8]",
            "je 2f",
            "mov r11d, dword ptr [r10]",
            "add r10, 4",
            "mov qword ptr fs:[rax], r10",
            "imul r11, qword ptr fs:[rax + 24]",
            "add r11, qword ptr fs:[rax + 16]",
            "mov qword ptr [rdi], r11",
            "add r11, qword ptr fs:[rax + 32]",
            "mov qword ptr [rsi], r11",
            "mov eax, 1",
            "ret",
            "2:",
        )
    };
}
pub(crate) use stub_of_prepared;

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn none_left() -> usize {
        77
    }

    #[unsafe(naked)]
    unsafe extern "C" fn next(from: *mut u64, to: *mut u64) -> usize {
        stub_of_prepared!(none_left, 0)
    }

    #[test]
    fn prepared_chunks_come_one_after_the_other() {
        let mut got = [0_u64; 2];
        let mut ask = || {
            let [from, to] = got.each_mut();
            // SAFETY: two places.
            let answer = unsafe { next(from, to) };
            (answer, got)
        };
        assert_eq!(ask(), (77, [0, 0]));
        let numbers = [3, 9, u32::MAX];
        let downwards = Prepared {
            next: numbers.as_ptr(),
            end: numbers[2..].as_ptr(),
            base: 118,
            apart: 6_u64.wrapping_neg(),
            length: 2_u64.wrapping_neg(),
        };
        assert_eq!(replace(downwards), Prepared::NONE);
        assert_eq!(ask(), (1, [100, 98]));
        assert_eq!(left(), 1);
        assert_eq!(std::thread::spawn(left).join().unwrap(), 0, "each thread has its own");
        assert_eq!(ask(), (1, [64, 62]));
        assert_eq!((ask(), left()), ((77, [64, 62]), 0));
    }
}
