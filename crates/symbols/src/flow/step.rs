//! What one x86-64 instruction does to what is known. Instructions that move addresses are
//! understood; of all others it is only known what they overwrite.

use iced_x86::{
    Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register,
};

use super::state::{RBP, RSP, State};
use super::value::{Base, Value};

/// Numbers of the debugging information by those of the processor.
const DWARF: [u8; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// A whole general register.
fn general(register: Register) -> Option<usize> {
    let whole = register.is_gpr64().then(|| register.number())?;
    DWARF.get(whole).map(|r| usize::from(*r))
}

fn vector(register: Register) -> Option<usize> {
    (register.is_xmm() || register.is_ymm() || register.is_zmm())
        .then(|| register.number())
        .filter(|r| *r < 16)
}

/// The address of an instruction's memory operand.
pub(crate) fn address(state: &mut State, instruction: &Instruction) -> Value {
    if instruction.is_ip_rel_memory_operand() {
        return Value::absolute(instruction.memory_displacement64());
    }
    if instruction.segment_prefix() != Register::None {
        return state.unknown(); // a thread's own
    }
    let displacement = instruction.memory_displacement64().cast_signed();
    let base = general(instruction.memory_base()).map(|r| state.registers[r].clone());
    let index = general(instruction.memory_index()).map(|r| state.registers[r].clone());
    let scaled = instruction.memory_index_scale() > 1;
    let sum = match (base, index) {
        (None, None) => Some(Value::absolute(0)),
        (Some(base), None) => Some(base),
        (None, Some(index)) if !scaled => Some(index),
        (None, Some(_)) => Some(if displacement == 0 { state.number() } else { Value::absolute(0).spread() }),
        (Some(base), Some(_)) if scaled => Some(base.spread()),
        (Some(base), Some(index)) => base.sum(&index),
    };
    sum.map_or_else(|| state.unknown(), |sum| sum.plus(displacement))
}

/// Addresses of words that the allocation's address was stored to by one instruction.
pub(crate) type Stores = Vec<Value>;

/// Carries an instruction out; calls and jumps are the caller's.
pub(crate) fn step(
    state: &mut State,
    instruction: &Instruction,
    info: &mut InstructionInfoFactory,
) -> Stores {
    let mut stores = Vec::new();
    let was_test = std::mem::take(&mut state.zero_test);
    if !(moves(state, instruction, &mut stores) || vectors(state, instruction, &mut stores)) {
        match instruction.mnemonic() {
            Mnemonic::Test | Mnemonic::Cmp => state.zero_test = tests_zero(state, instruction),
            // Between a test and its jump.
            _ if instruction.rflags_modified() == 0 => {
                state.zero_test = was_test;
                overwritten(state, instruction, info);
            }
            _ => overwritten(state, instruction, info),
        }
    } else if instruction.rflags_modified() == 0 {
        state.zero_test = was_test;
    }
    stores
}

/// A comparison of the allocation's address with zero.
fn tests_zero(state: &mut State, instruction: &Instruction) -> bool {
    let first = match instruction.op0_kind() {
        OpKind::Register => general(instruction.op0_register()).map(|r| state.registers[r].clone()),
        OpKind::Memory if instruction.memory_size().size() == 8 => {
            let address = address(state, instruction);
            state.peek(&address)
        }
        _ => None,
    };
    let with_zero = match instruction.mnemonic() {
        Mnemonic::Test => {
            instruction.op1_kind() == OpKind::Register
                && instruction.op0_register() == instruction.op1_register()
        }
        _ => {
            instruction.op1_kind() != OpKind::Register
                && instruction.op1_kind() != OpKind::Memory
                && instruction.immediate(1) == 0
        }
    };
    with_zero && first.is_some_and(|v| v.is_allocation())
}

/// Instructions on general registers. `false`: it is none of these.
fn moves(state: &mut State, instruction: &Instruction, stores: &mut Stores) -> bool {
    let target =
        (instruction.op0_kind() == OpKind::Register).then(|| general(instruction.op0_register())).flatten();
    match instruction.mnemonic() {
        Mnemonic::Mov => return mov(state, instruction, target, stores),
        Mnemonic::Lea => {
            let Some(target) = target else { return false };
            state.registers[target] = address(state, instruction);
        }
        Mnemonic::Movsxd
        | Mnemonic::Cdqe
        | Mnemonic::Imul
        | Mnemonic::Shl
        | Mnemonic::Sar
        | Mnemonic::Shr => {
            let target = match instruction.mnemonic() {
                Mnemonic::Cdqe => Some(super::state::RAX),
                // Of one operand: the product is in two registers.
                Mnemonic::Imul if instruction.op_count() == 1 => None,
                _ => target,
            };
            let Some(target) = target else { return false };
            state.registers[target] = state.number();
        }
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec => {
            let Some(target) = target else { return false };
            let old = state.registers[target].clone();
            let subtract = matches!(instruction.mnemonic(), Mnemonic::Sub | Mnemonic::Dec);
            let other = match instruction.mnemonic() {
                Mnemonic::Inc | Mnemonic::Dec => Some(Value::absolute(1)),
                _ => second(state, instruction),
            };
            let sum = other.and_then(|other| match (subtract, other.constant()) {
                (true, Some(c)) => Some(old.plus(c.wrapping_neg())),
                (true, None) => (other.is_number() && !old.is_number()).then(|| old.spread()),
                (false, _) => old.sum(&other),
            });
            state.registers[target] = sum.unwrap_or_else(|| state.unknown());
        }
        Mnemonic::And => {
            let Some(target) = target else { return false };
            let mask = second(state, instruction).and_then(|m| m.constant());
            let old = &state.registers[target];
            let aligned =
                old.points_into() && !old.spread && mask.is_some_and(|m| (-(1 << 21)..0).contains(&m));
            state.registers[target] = if aligned { Value::of(Base::Aligned) } else { state.unknown() };
        }
        Mnemonic::Xor if target.is_some() && instruction.op0_register() == instruction.op1_register() => {
            state.registers[target.unwrap_or_default()] = Value::absolute(0);
        }
        Mnemonic::Push => {
            let value = source(state, instruction, 0);
            state.registers[RSP] = state.registers[RSP].plus(-8);
            let at = state.registers[RSP].clone();
            write(state, &at, value, stores);
        }
        Mnemonic::Pop => {
            let at = state.registers[RSP].clone();
            let value = state.load(&at);
            state.registers[RSP] = at.plus(8);
            match target {
                Some(target) => state.registers[target] = value,
                None => return false,
            }
        }
        Mnemonic::Leave => {
            let at = state.registers[RBP].clone();
            state.registers[RBP] = state.load(&at);
            state.registers[RSP] = at.plus(8);
        }
        Mnemonic::Xchg => {
            let (Some(a), Some(b)) = (target, general(instruction.op1_register())) else { return false };
            state.registers.swap(a, b);
        }
        _ => return false,
    }
    true
}

fn mov(state: &mut State, instruction: &Instruction, target: Option<usize>, stores: &mut Stores) -> bool {
    match instruction.op0_kind() {
        OpKind::Register => {
            let value = match instruction.op1_kind() {
                // Four bytes from memory: a number; of a register: the address of something static,
                // perhaps.
                OpKind::Memory if target.is_none() => None,
                _ => second(state, instruction),
            };
            match target {
                Some(target) => state.registers[target] = value.unwrap_or_else(|| state.unknown()),
                None => {
                    let Some(whole) = general(instruction.op0_register().full_register()) else {
                        return false;
                    };
                    state.registers[whole] = match value {
                        Some(constant) if constant.constant().is_some() => constant,
                        _ => state.number(),
                    };
                }
            }
        }
        OpKind::Memory if instruction.memory_size().size() == 8 => {
            let at = address(state, instruction);
            let value = source(state, instruction, 1);
            write(state, &at, value, stores);
        }
        _ => return false,
    }
    true
}

/// The value of the second operand.
fn second(state: &mut State, instruction: &Instruction) -> Option<Value> {
    match instruction.op1_kind() {
        OpKind::Register => general(instruction.op1_register()).map(|r| state.registers[r].clone()),
        OpKind::Memory if instruction.memory_size().size() == 8 => {
            let at = address(state, instruction);
            Some(state.load(&at))
        }
        OpKind::Memory => None,
        _ => Some(Value::absolute(instruction.immediate(1))),
    }
}

/// The value of an operand that is stored.
fn source(state: &mut State, instruction: &Instruction, operand: u32) -> Value {
    let value = match instruction.op_kind(operand) {
        OpKind::Register => general(instruction.op_register(operand)).map(|r| state.registers[r].clone()),
        OpKind::Memory if instruction.memory_size().size() == 8 => {
            let at = address(state, instruction);
            Some(state.load(&at))
        }
        OpKind::Memory => None,
        _ => Some(Value::absolute(instruction.immediate(operand))),
    };
    value.unwrap_or_else(|| state.unknown())
}

fn write(state: &mut State, at: &Value, value: Value, stores: &mut Stores) {
    if value.is_allocation() {
        stores.push(at.clone());
    }
    state.store(at, value);
}

/// Compilers store two pointers at once. `false`: it is no instruction for that.
fn vectors(state: &mut State, instruction: &Instruction, stores: &mut Stores) -> bool {
    let operands = instruction.op_count();
    let target =
        (instruction.op0_kind() == OpKind::Register).then(|| vector(instruction.op0_register())).flatten();
    match instruction.mnemonic() {
        Mnemonic::Movq
        | Mnemonic::Vmovq
        | Mnemonic::Movaps
        | Mnemonic::Movups
        | Mnemonic::Movdqa
        | Mnemonic::Movdqu
        | Mnemonic::Movapd
        | Mnemonic::Movupd
        | Mnemonic::Vmovaps
        | Mnemonic::Vmovups
        | Mnemonic::Vmovdqa
        | Mnemonic::Vmovdqu
        | Mnemonic::Vmovapd
        | Mnemonic::Vmovupd
        | Mnemonic::Movlps
        | Mnemonic::Movlpd => {
            return moved(state, instruction, target, stores);
        }
        Mnemonic::Movhps | Mnemonic::Movhpd => match target {
            Some(target) => {
                let Some([low, _]) = halves(state, instruction, 1) else { return false };
                state.vectors[target][1] = low;
            }
            None => {
                let Some([_, high]) = halves(state, instruction, 1) else { return false };
                let at = address(state, instruction);
                write(state, &at, high, stores);
            }
        },
        Mnemonic::Punpcklqdq | Mnemonic::Unpcklpd | Mnemonic::Movlhps => {
            let (Some(target), Some([low, _])) = (target, halves(state, instruction, 1)) else {
                return false;
            };
            state.vectors[target][1] = low;
        }
        Mnemonic::Vpunpcklqdq | Mnemonic::Vunpcklpd | Mnemonic::Vmovlhps if operands == 3 => {
            let (Some(target), Some([low, _]), Some([high, _])) =
                (target, halves(state, instruction, 1), halves(state, instruction, 2))
            else {
                return false;
            };
            state.vectors[target] = [low, high];
        }
        Mnemonic::Movddup | Mnemonic::Vmovddup => {
            let (Some(target), Some([low, _])) = (target, halves(state, instruction, 1)) else {
                return false;
            };
            state.vectors[target] = [low.clone(), low];
        }
        Mnemonic::Pinsrq | Mnemonic::Vpinsrq => {
            let last = operands - 1;
            let (Some(target), Some([word, _])) = (target, halves(state, instruction, last - 1)) else {
                return false;
            };
            let mut value = state.vectors[target].clone();
            if operands == 4 {
                let Some(old) = halves(state, instruction, 1) else { return false };
                value = old;
            }
            value[usize::from(instruction.immediate(last) & 1 == 1)] = word;
            state.vectors[target] = value;
        }
        _ => return false,
    }
    true
}

/// The halves of an operand.
fn halves(state: &mut State, instruction: &Instruction, operand: u32) -> Option<[Value; 2]> {
    match instruction.op_kind(operand) {
        OpKind::Register => match vector(instruction.op_register(operand)) {
            Some(v) => Some(state.vectors[v].clone()),
            None => {
                let low = state.registers[general(instruction.op_register(operand))?].clone();
                Some([low, Value::absolute(0)])
            }
        },
        OpKind::Memory => {
            let at = address(state, instruction);
            let high = if instruction.memory_size().size() == 8 {
                Value::absolute(0)
            } else {
                state.load(&at.plus(8))
            };
            Some([state.load(&at), high])
        }
        _ => None,
    }
}

/// Moves a vector, or its lower half, to a vector register, to memory or to a general register.
fn moved(state: &mut State, instruction: &Instruction, target: Option<usize>, stores: &mut Stores) -> bool {
    let Some(value) = halves(state, instruction, 1) else { return false };
    if let Some(target) = target {
        if matches!(instruction.mnemonic(), Mnemonic::Movlps | Mnemonic::Movlpd) {
            state.vectors[target][0] = value[0].clone();
        } else {
            state.vectors[target] = value;
        }
    } else if instruction.op0_kind() == OpKind::Memory {
        let at = address(state, instruction);
        let bytes = instruction.memory_size().size();
        let [low, high] = value;
        if bytes > 16 {
            state.overwrite(&at.plus(16), bytes as i64 - 16);
        }
        write(state, &at, low, stores);
        if bytes >= 16 {
            write(state, &at.plus(8), high, stores);
        }
    } else {
        let Some(target) = general(instruction.op0_register()) else { return false };
        state.registers[target] = value[0].clone();
    }
    true
}

/// Forgets whatever an instruction overwrites.
fn overwritten(state: &mut State, instruction: &Instruction, info: &mut InstructionInfoFactory) {
    let used = info.info_options(instruction, InstructionInfoOptions::NONE);
    let writes = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let registers: Vec<Register> = used
        .used_registers()
        .iter()
        .filter(|r| writes(r.access()))
        .map(iced_x86::UsedRegister::register)
        .collect();
    let memory = instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Memory
        && used.used_memory().iter().any(|m| writes(m.access()));
    if memory {
        let at = address(state, instruction);
        state.overwrite(&at, instruction.memory_size().size().max(1) as i64);
    }
    for register in registers {
        if let Some(r) = general(register.full_register()) {
            // A byte or four: numbers. A whole register may be an address.
            state.registers[r] = if register.size() < 8 { state.number() } else { state.unknown() };
        } else if let Some(v) = vector(register) {
            state.vectors[v] = [state.unknown(), state.unknown()];
        }
    }
}
