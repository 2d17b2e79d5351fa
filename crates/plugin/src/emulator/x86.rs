//! How an instruction of x86-64 addresses memory, as far as a recorder wants to know.
//!
//! An instrumented program records no access of the compiler's own: return addresses, saved
//! registers, spilled values. These lie at fixed offsets from the stack pointer (or the frame
//! pointer), where also local variables lie; what is indexed there is an array of the program.
//!
//! Encoding: Intel SDM vol. 2, chapter 2 and appendix A.

/// What is known of an instruction's access before it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionAccess {
    /// None, or one of the compiler's own.
    No,
    /// One of the compiler's own if it lies in the thread's stack.
    Frame,
    /// To this address.
    Fixed(u64),
    /// Read, change and write in one.
    Atomic,
    /// Between threads: what was seen before must be seen again.
    Fence,
    /// Any.
    Usual,
}

/// What an instruction does to its memory operand, as far as that is known before it is executed.
/// Only what is common is told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Does {
    /// Only loads, of at most this number of bytes.
    Load(u64),
    /// Only stores, of at most this number of bytes.
    Store(u64),
    /// Anything, of any size.
    #[default]
    Any,
}

const SP: u8 = 4;
const FP: u8 = 5;

/// Where the canary of the C library's stack protector lies, relative to the thread pointer.
const CANARY: i32 = 0x28;

#[derive(Clone, Copy, Debug, Default)]
struct Prefixes {
    lock: bool,
    thread_segment: bool,
    index_high: bool,
    base_high: bool,
    /// Operands of 8 bytes.
    wide: bool,
    /// 0xf2 or 0xf3, or else 0x66, or 0: part of the opcode of vector instructions.
    mandatory: u8,
    /// VEX or EVEX.
    vector: bool,
}

/// Opcode maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Map {
    One,
    TwoBytes,
    ThreeBytes,
}

/// An instruction's access, and what it does there; `address` is the instruction's own.
pub fn access(bytes: &[u8], address: u64) -> (InstructionAccess, Does) {
    look(bytes, address).unwrap_or((InstructionAccess::Usual, Does::Any))
}

/// `None` when the bytes end too early.
fn look(bytes: &[u8], address: u64) -> Option<(InstructionAccess, Does)> {
    let mut p = Prefixes::default();
    let mut at = 0;
    let mut first = *bytes.first()?;
    while matches!(
        first,
        0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f
    ) {
        match first {
            0xf0 => p.lock = true,
            0x64 | 0x65 => p.thread_segment = true,
            0xf2 | 0xf3 => p.mandatory = first,
            0x66 if p.mandatory == 0 => p.mandatory = first,
            0x40..=0x4f => {
                (p.wide, p.index_high, p.base_high) = (first & 8 != 0, first & 2 != 0, first & 1 != 0);
            }
            _ => {}
        }
        at += 1;
        first = *bytes.get(at)?;
    }
    p.vector = matches!(first, 0xc4 | 0xc5 | 0x62);
    let (map, opcode, modrm) = match first {
        0xc5 => (Map::TwoBytes, *bytes.get(at + 2)?, at + 3),
        0xc4 | 0x62 => {
            let high = *bytes.get(at + 1)?;
            (p.index_high, p.base_high) = (high & 0x40 == 0, high & 0x20 == 0);
            let skip = if first == 0xc4 { 3 } else { 4 };
            let map = if high & 7 == 1 { Map::TwoBytes } else { Map::ThreeBytes };
            (map, *bytes.get(at + skip)?, at + skip + 1)
        }
        0x0f => match *bytes.get(at + 1)? {
            0x38 | 0x3a => (Map::ThreeBytes, *bytes.get(at + 2)?, at + 3),
            opcode => (Map::TwoBytes, opcode, at + 2),
        },
        opcode => (Map::One, opcode, at + 1),
    };
    if !has_modrm(map, opcode) {
        return Some((without_modrm(map, opcode), Does::Any));
    }
    let byte = *bytes.get(modrm)?;
    let (mode, reg, rm) = (byte >> 6, byte >> 3 & 7, byte & 7);
    if mode == 3 {
        let plain = !p.lock && !p.thread_segment;
        let fence = map == Map::TwoBytes && opcode == 0xae && reg == 6 && plain;
        return Some((if fence { InstructionAccess::Fence } else { InstructionAccess::No }, Does::Any));
    }
    let operand = operand(bytes, modrm, mode, rm, p, address)?;
    let pushes = map == Map::One && (opcode == 0x8f || opcode == 0xff && matches!(reg, 2 | 3 | 6));
    let exchanges = map == Map::One && matches!(opcode, 0x86 | 0x87);
    let access = match operand {
        // lea
        _ if map == Map::One && opcode == 0x8d => InstructionAccess::No,
        _ if pushes => InstructionAccess::Frame,
        // A fence in other words: something locked on one's own stack.
        InstructionAccess::No if p.lock => InstructionAccess::Fence,
        _ if p.lock || exchanges => InstructionAccess::Atomic,
        operand => operand,
    };
    Some((access, does(map, opcode, reg, p)))
}

/// What an instruction with a memory operand does to it.
const fn does(map: Map, opcode: u8, reg: u8, p: Prefixes) -> Does {
    let whole = if p.wide { 8 } else { 4 };
    match (map, opcode) {
        _ if p.vector => Does::Any,
        // add, or, adc, sbb, and, sub, xor, cmp: register and memory, into the register.
        (Map::One, 0x02 | 0x0a | 0x12 | 0x1a | 0x22 | 0x2a | 0x32 | 0x3a) => Does::Load(1),
        (Map::One, 0x03 | 0x0b | 0x13 | 0x1b | 0x23 | 0x2b | 0x33 | 0x3b) => Does::Load(whole),
        // cmp and test of memory with a register or a constant.
        (Map::One, 0x38 | 0x84) => Does::Load(1),
        (Map::One, 0x39 | 0x85) => Does::Load(whole),
        (Map::One, 0x80) if reg == 7 => Does::Load(1),
        (Map::One, 0x81 | 0x83) if reg == 7 => Does::Load(whole),
        // movslq, imul, mov.
        (Map::One, 0x63) => Does::Load(4),
        (Map::One, 0x69 | 0x6b | 0x8b) => Does::Load(whole),
        (Map::One, 0x8a) => Does::Load(1),
        (Map::One, 0x88) => Does::Store(1),
        (Map::One, 0x89) => Does::Store(whole),
        (Map::One, 0xc6) if reg == 0 => Does::Store(1),
        (Map::One, 0xc7) if reg == 0 => Does::Store(whole),
        (Map::TwoBytes, _) => vector(opcode, p.mandatory, whole),
        _ => Does::Any,
    }
}

/// As [`does`], of the opcodes after 0x0f; most are of SSE.
const fn vector(opcode: u8, mandatory: u8, whole: u64) -> Does {
    // movs, sqrts, adds, muls, cvts, subs, mins, divs, maxs: one number; without 0xf2 or 0xf3 the
    // whole register.
    let one = match mandatory {
        0xf2 => 8,
        0xf3 => 4,
        _ => 16,
    };
    match (opcode, mandatory) {
        (0x10 | 0x51 | 0x58 | 0x59 | 0x5c..=0x5f, _) => Does::Load(one),
        (0x5a, 0xf2 | 0xf3) => Does::Load(one),
        (0x11, _) => Does::Store(one),
        // Of and to a half: movlps, movhps, movlpd, movhpd.
        (0x12 | 0x16, 0 | 0x66) => Does::Load(8),
        (0x13 | 0x17, 0 | 0x66) => Does::Store(8),
        // cvtsi2ss, cvtsi2sd; ucomiss, ucomisd, comiss, comisd.
        (0x2a, 0xf2 | 0xf3) => Does::Load(whole),
        (0x2e | 0x2f, 0 | 0x66) => Does::Load(8),
        // movaps, movdqa, movdqu, movq.
        (0x28, 0 | 0x66) | (0x6f, 0x66 | 0xf3) => Does::Load(16),
        (0x29, 0 | 0x66) | (0x7f, 0x66 | 0xf3) => Does::Store(16),
        (0x7e, 0xf3) => Does::Load(8),
        (0xd6, 0x66) => Does::Store(8),
        // cmov, imul, movzx, movsx.
        (0x40..=0x4f | 0xaf, _) => Does::Load(whole),
        (0xb6 | 0xbe, _) => Does::Load(1),
        (0xb7 | 0xbf, _) => Does::Load(2),
        _ => Does::Any,
    }
}

/// What the memory operand alone says.
fn operand(
    bytes: &[u8],
    modrm: usize,
    mode: u8,
    rm: u8,
    p: Prefixes,
    address: u64,
) -> Option<InstructionAccess> {
    let displacement = |at: usize| Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if rm != 4 {
        if mode == 0 && rm == 5 {
            let end = address.wrapping_add(bytes.len() as u64);
            let to = end.wrapping_add_signed(displacement(modrm + 1)?.into());
            return Some(if p.thread_segment {
                InstructionAccess::Usual
            } else {
                InstructionAccess::Fixed(to)
            });
        }
        return Some(if rm == FP && !p.base_high && !p.thread_segment {
            InstructionAccess::Frame
        } else {
            InstructionAccess::Usual
        });
    }
    let sib = *bytes.get(modrm + 1)?;
    let (index, base) = (sib >> 3 & 7, sib & 7);
    if index != 4 || p.index_high {
        return Some(InstructionAccess::Usual);
    }
    if base == 5 && mode == 0 {
        // Absolute.
        let to = displacement(modrm + 2)?;
        return Some(match p.thread_segment {
            true if to == CANARY => InstructionAccess::No,
            true => InstructionAccess::Usual,
            false => InstructionAccess::Fixed(to as i64 as u64),
        });
    }
    Some(match base {
        _ if p.base_high || p.thread_segment => InstructionAccess::Usual,
        SP => InstructionAccess::No,
        FP => InstructionAccess::Frame,
        _ => InstructionAccess::Usual,
    })
}

/// Instructions whose memory is not named by a ModRM byte.
const fn without_modrm(map: Map, opcode: u8) -> InstructionAccess {
    match (map, opcode) {
        // Absolute moves and string instructions.
        (Map::One, 0xa0..=0xa7 | 0xaa..=0xaf | 0xd7) => InstructionAccess::Usual,
        // Everything else has registers, constants and the stack.
        _ => InstructionAccess::No,
    }
}

const fn has_modrm(map: Map, opcode: u8) -> bool {
    match map {
        Map::One => {
            matches!(opcode,
            0x00..=0x3f if opcode & 7 < 4)
                || matches!(opcode, 0x63 | 0x69 | 0x6b | 0x80..=0x8f | 0xc0 | 0xc1 | 0xc6 | 0xc7 | 0xd0..=0xd3)
                || matches!(opcode, 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe | 0xff)
        }
        Map::TwoBytes => !matches!(opcode,
            0x04..=0x0c | 0x0e | 0x30..=0x37 | 0x77 | 0x80..=0x8f | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf),
        Map::ThreeBytes => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u64 = 0x40_1000;

    #[track_caller]
    fn is(bytes: &[u8], what: InstructionAccess) {
        assert_eq!(access(bytes, HERE).0, what, "{bytes:02x?}");
    }

    #[test]
    fn loads_and_stores_and_their_sizes_are_known() {
        for (bytes, what) in [
            (&[0xf2, 0x0f, 0x10, 0x04, 0xc4][..], Does::Load(8)), // movsd xmm0, [rsp+rax*8]
            (&[0xf2, 0x41, 0x0f, 0x59, 0x04, 0xc0], Does::Load(8)), // mulsd xmm0, [r8+rax*8]
            (&[0xf3, 0x0f, 0x58, 0x07], Does::Load(4)),           // addss xmm0, [rdi]
            (&[0x0f, 0x58, 0x07], Does::Load(16)),                // addps xmm0, [rdi]
            (&[0x66, 0x0f, 0x29, 0x07], Does::Store(16)),         // movapd [rdi], xmm0
            (&[0xf2, 0x0f, 0x11, 0x07], Does::Store(8)),          // movsd [rdi], xmm0
            (&[0x66, 0x0f, 0x12, 0x07], Does::Load(8)),           // movlpd xmm0, [rdi]
            (&[0xf2, 0x0f, 0x12, 0x07], Does::Any),               // movddup xmm0, [rdi]
            (&[0x66, 0x0f, 0xd6, 0x07], Does::Store(8)),          // movq [rdi], xmm0
            (&[0x48, 0x63, 0x04, 0x87], Does::Load(4)),           // movslq rax, [rdi+rax*4]
            (&[0x8b, 0x07], Does::Load(4)),                       // mov eax, [rdi]
            (&[0x49, 0x8b, 0x04, 0x24], Does::Load(8)),           // mov rax, [r12]
            (&[0x48, 0x89, 0x07], Does::Store(8)),                // mov [rdi], rax
            (&[0x0f, 0xb6, 0x07], Does::Load(1)),                 // movzx eax, byte [rdi]
            (&[0x83, 0x3f, 1], Does::Load(4)),                    // cmp dword [rdi], 1
            (&[0x83, 0x07, 1], Does::Any),                        // add dword [rdi], 1
            (&[0x48, 0x01, 0x07], Does::Any),                     // add [rdi], rax
            (&[0xc7, 0x07, 1, 0, 0, 0], Does::Store(4)),          // mov dword [rdi], 1
            (&[0xc5, 0xfb, 0x10, 0x07], Does::Any),               // vmovsd xmm0, [rdi]
            (&[0xf3, 0x48, 0xab], Does::Any),                     // rep stosq
        ] {
            assert_eq!(access(bytes, HERE).1, what, "{bytes:02x?}");
        }
    }

    #[test]
    fn the_compilers_own_is_left_out() {
        is(&[0x55], InstructionAccess::No); // push rbp
        is(&[0x41, 0x5c], InstructionAccess::No); // pop r12
        is(&[0xe8, 0, 0, 0, 0], InstructionAccess::No); // call
        is(&[0xc3], InstructionAccess::No); // ret
        is(&[0x48, 0x89, 0x44, 0x24, 0x08], InstructionAccess::No); // mov [rsp+8], rax
        is(&[0xf2, 0x0f, 0x11, 0x04, 0x24], InstructionAccess::No); // movsd [rsp], xmm0
        is(&[0xc5, 0xfb, 0x11, 0x44, 0x24, 0x10], InstructionAccess::No); // vmovsd [rsp+16], xmm0
        is(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], InstructionAccess::No); // mov rax, fs:[0x28]
        is(&[0x48, 0x8d, 0x04, 0x11], InstructionAccess::No); // lea rax, [rcx+rdx]
        is(&[0x48, 0x8b, 0x45, 0xf8], InstructionAccess::Frame); // mov rax, [rbp-8]
        is(&[0xff, 0x13], InstructionAccess::Frame); // call [rbx]
        is(&[0xff, 0x75, 0x10], InstructionAccess::Frame); // push [rbp+16]
    }

    #[test]
    fn the_programs_is_not() {
        is(&[0xf2, 0x0f, 0x10, 0x04, 0xc4], InstructionAccess::Usual); // movsd xmm0, [rsp+rax*8]
        is(&[0x48, 0x8b, 0x44, 0x05, 0xf8], InstructionAccess::Usual); // mov rax, [rbp+rax-8]
        is(&[0xf2, 0x41, 0x0f, 0x59, 0x04, 0xc0], InstructionAccess::Usual); // mulsd xmm0, [r8+rax*8]
        is(&[0x49, 0x8b, 0x04, 0x24], InstructionAccess::Usual); // mov rax, [r12]
        is(&[0x49, 0x8b, 0x45, 0x00], InstructionAccess::Usual); // mov rax, [r13]
        is(&[0xc4, 0xc1, 0x7d, 0x10, 0x04, 0x24], InstructionAccess::Usual); // vmovupd ymm0, [r12]
        is(&[0xf3, 0x48, 0xab], InstructionAccess::Usual); // rep stosq
        is(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0xf0, 0xff, 0xff, 0xff], InstructionAccess::Usual); // mov rax, fs:[-16]
        is(&[0x42, 0x8b, 0x04, 0x24], InstructionAccess::Usual); // mov eax, [rsp+r12]
    }

    #[test]
    fn addresses_in_the_instruction_are_known() {
        is(&[0x48, 0x8b, 0x05, 0x10, 0, 0, 0], InstructionAccess::Fixed(HERE + 7 + 16)); // mov rax, [rip+16]
        is(&[0xf2, 0x0f, 0x10, 0x05, 0xf0, 0xff, 0xff, 0xff], InstructionAccess::Fixed(HERE + 8 - 16)); // movsd xmm0, [rip-16]
        is(&[0x8b, 0x04, 0x25, 0x00, 0x20, 0x40, 0], InstructionAccess::Fixed(0x40_2000)); // mov eax, [0x402000]
    }

    #[test]
    fn atomics_and_fences_are_known() {
        is(&[0xf0, 0x48, 0x0f, 0xb1, 0x0a], InstructionAccess::Atomic); // lock cmpxchg [rdx], rcx
        is(&[0x87, 0x07], InstructionAccess::Atomic); // xchg [rdi], eax
        is(&[0xf0, 0x83, 0x05, 0, 0, 0, 0, 1], InstructionAccess::Atomic); // lock add [rip], 1
        is(&[0x0f, 0xae, 0xf0], InstructionAccess::Fence); // mfence
        is(&[0xf0, 0x48, 0x83, 0x0c, 0x24, 0], InstructionAccess::Fence); // lock or [rsp], 0
        is(&[0x87, 0xc8], InstructionAccess::No); // xchg eax, ecx
    }

    #[test]
    fn what_ends_too_early_is_usual() {
        for bytes in [&[][..], &[0x48], &[0x0f], &[0xc4, 0xe1], &[0x8b], &[0x8b, 0x04], &[0x8b, 0x05, 0]] {
            is(bytes, InstructionAccess::Usual);
        }
    }
}
