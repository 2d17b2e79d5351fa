//! The instructions of x86 after which a virtual address may mean another physical one, and calls
//! and returns.
//!
//! A processor may keep translations until it is told otherwise (Intel SDM vol. 3, 4.10.4), so a
//! kernel that takes a page away or puts another one in its place executes one of these on every
//! CPU that may have used it. What a plug-in keeps until the next of them is as right as the
//! processor's own buffer.

/// Whether the instruction in `bytes` invalidates translations of the CPU that executes it: a write
/// to a control register, `INVLPG`, `INVPCID`.
pub fn invalidates(bytes: &[u8]) -> bool {
    let mut at = bytes;
    let mut operand = false;
    // Legacy prefixes and REX, in any order that a compiler writes.
    while let [first, rest @ ..] = at {
        match first {
            0x66 => operand = true,
            0x67 | 0xf0 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f => {}
            _ => break,
        }
        at = rest;
    }
    match at {
        // MOV to CR0, CR3, CR4.
        [0x0f, 0x22, modrm, ..] => matches!((modrm >> 3) & 7, 0 | 3 | 4),
        // INVLPG m8: /7 with a memory operand.
        [0x0f, 0x01, modrm, ..] => (modrm >> 3) & 7 == 7 && modrm >> 6 != 3,
        // INVPCID r64, m128.
        [0x0f, 0x38, 0x82, ..] => operand,
        _ => false,
    }
}

/// Whether other CPUs may learn from the instruction in `bytes` what this one did before: a locked
/// one, an exchange with memory, a system call.
pub fn synchronises(bytes: &[u8]) -> bool {
    let prefix = |b: &&u8| {
        matches!(**b, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f)
    };
    let at = &bytes[bytes.iter().take_while(prefix).count()..];
    match at {
        [0xf0, ..] | [0x0f, 0x05, ..] => true,
        [0x86 | 0x87, modrm, ..] => modrm >> 6 != 3,
        _ => false,
    }
}

/// Whose an instruction is, and what its accesses say of the program's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionOwner {
    /// The kernel's.
    Kernel,
    /// The program's, and neither of the following.
    Program,
    /// A call of the program's: it stores its return address.
    Call,
    /// A return of the program's: it loads its address.
    Return,
}

/// What the instruction in `bytes` is, of a program.
pub fn flow(bytes: &[u8]) -> InstructionOwner {
    let prefix = |b: &&u8| matches!(**b, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x2e | 0x3e | 0x64 | 0x40..=0x4f);
    match &bytes[bytes.iter().take_while(prefix).count()..] {
        [0xe8, ..] => InstructionOwner::Call,
        [0xff, modrm, ..] if (modrm >> 3) & 7 == 2 => InstructionOwner::Call,
        [0xc2 | 0xc3, ..] => InstructionOwner::Return,
        _ => InstructionOwner::Program,
    }
}

/// A no-op that nobody writes by chance, `nop [rax + rax + CODE]`; what it says is in its
/// displacement.
///
/// ```c
/// #define HOMENODE_LAB_MARK(code) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00; .long 0x686e0000 + " #code ::: "memory")
/// ```
pub fn mark(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [0x0f, 0x1f, 0x84, 0x00, low, high, 0x6e, 0x68] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_uses_is_known() {
        for bytes in [
            &[0x0f, 0x22, 0xd8][..],               // mov cr3, rax
            &[0x41, 0x0f, 0x22, 0xdc],             // mov cr3, r12
            &[0x0f, 0x22, 0xe0],                   // mov cr4, rax
            &[0x0f, 0x01, 0x3f],                   // invlpg [rdi]
            &[0x66, 0x0f, 0x38, 0x82, 0x04, 0x24], // invpcid rax, [rsp]
        ] {
            assert!(invalidates(bytes), "{bytes:x?}");
        }
        for bytes in [
            &[0x0f, 0x22, 0xd0][..],   // mov cr2, rax
            &[0x0f, 0x20, 0xd8],       // mov rax, cr3
            &[0x0f, 0x01, 0xf8],       // swapgs
            &[0x0f, 0x38, 0x82, 0x04], // without its prefix
            &[0x48, 0x89, 0xd8],
            &[0x66],
            &[],
        ] {
            assert!(!invalidates(bytes), "{bytes:x?}");
        }
    }

    #[test]
    fn what_orders_memory_is_known() {
        for bytes in [
            &[0xf0, 0x48, 0x0f, 0xb1, 0x0f][..], // lock cmpxchg [rdi], rcx
            &[0x66, 0xf0, 0xff, 0x07],           // lock inc word [rdi]
            &[0x48, 0x87, 0x07],                 // xchg [rdi], rax
            &[0x0f, 0x05],                       // syscall
        ] {
            assert!(synchronises(bytes), "{bytes:x?}");
        }
        for bytes in [&[0x48, 0x87, 0xc3][..], &[0x90], &[0x48, 0x89, 0x07], &[0x66], &[]] {
            assert!(!synchronises(bytes), "{bytes:x?}");
        }
    }

    #[test]
    fn calls_and_returns_are_known() {
        for (bytes, place) in [
            (&[0xe8, 1, 2, 3, 4][..], InstructionOwner::Call), // call rel32
            (&[0x66, 0x48, 0xe8, 1, 2, 3, 4], InstructionOwner::Call), // data16 rex.W call rel32
            (&[0xff, 0x15, 1, 2, 3, 4], InstructionOwner::Call), // call [rip + disp32]
            (&[0x41, 0xff, 0xd4], InstructionOwner::Call),     // call r12
            (&[0xf2, 0xff, 0x25, 1, 2, 3, 4], InstructionOwner::Program), // bnd jmp [rip + disp32]
            (&[0xff, 0x36], InstructionOwner::Program),        // push [rsi]
            (&[0xc3], InstructionOwner::Return),
            (&[0xf3, 0xc3], InstructionOwner::Return),
            (&[0xc2, 8, 0], InstructionOwner::Return),
            (&[0x48, 0x89, 0x07], InstructionOwner::Program),
            (&[0x66], InstructionOwner::Program),
            (&[], InstructionOwner::Program),
        ] {
            assert_eq!(flow(bytes), place, "{bytes:x?}");
        }
    }

    #[test]
    fn marks_carry_a_code() {
        assert_eq!(mark(&[0x0f, 0x1f, 0x84, 0x00, 0x02, 0x01, 0x6e, 0x68]), Some(0x102));
        assert_eq!(mark(&[0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0]), None, "the compiler's own padding");
    }
}
