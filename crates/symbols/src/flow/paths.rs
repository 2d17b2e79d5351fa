//! The instructions of one function around a call: what is known at the call, and every way on from
//! it.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind};

use super::state::{RAX, State};
use super::step::{Stores, step};
use super::unwind::Unwind;
use super::value::{Base, Value};
use crate::binary::Binary;

/// Longest function in bytes.
const LONGEST: u64 = 4 << 20;
/// Most instructions that are followed after one call, on all ways together.
const STEPS: usize = 3000;
/// Most ways.
const WAYS: usize = 32;
/// How often one branch is taken.
const ROUNDS: usize = 2;

/// Functions that do not return; what stands behind a call of theirs belongs to something else.
const NO_RETURN: [&str; 14] = [
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "__assert_fail",
    "__stack_chk_fail",
    "_Unwind_Resume",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_bad_cast",
    "longjmp",
    "__longjmp_chk",
    "pthread_exit",
];
/// Parts of names of such functions.
const NO_RETURN_PARTS: [&str; 7] = [
    "_ZSt9terminatev",
    "__throw_",
    "_gfortran_runtime_error",
    "_gfortran_os_error",
    "_gfortran_error_stop",
    "_gfortran_stop",
    "_FortranAStop",
];

/// One function's instructions.
pub(crate) struct Body {
    /// First address, one past the last.
    pub bounds: (u64, u64),
    instructions: Vec<Instruction>,
}

/// Where a call goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// A function that the linker knows.
    Named(String),
    /// An address of the same file without a name.
    Address(u64),
    /// A pointer.
    Unknown,
}

impl Callee {
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            _ => None,
        }
    }
}

/// What a way on meets.
pub(crate) enum Meets<'a> {
    /// After an instruction: the address of the next one, what is known, and where the allocation's
    /// address was stored to.
    Instruction(u64, &'a State, &'a Stores),
    /// Before a call: what is known.
    Call(&'a Callee, &'a State),
    /// The function ends with the allocation's address as its result.
    Returned,
}

/// Whether a way is followed on.
pub(crate) enum Go {
    On,
    Stop,
}

impl Body {
    /// The function, or the part of it, that holds the call that returns to `back`.
    pub(crate) fn around(binary: &Binary, unwind: &Unwind, back: u64) -> Option<Self> {
        let bounds = unwind.function(back.checked_sub(1)?)?;
        if bounds.1 - bounds.0 > LONGEST {
            return None;
        }
        let bytes = binary.code(bounds.0, bounds.1)?;
        let mut decoder = Decoder::with_ip(64, &bytes, bounds.0, DecoderOptions::NONE);
        let instructions = decoder.iter().collect();
        Some(Self { bounds, instructions })
    }

    fn at(&self, ip: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&ip, Instruction::ip).ok()
    }

    /// The call that returns to `back`.
    pub(crate) fn call(&self, back: u64) -> Option<&Instruction> {
        let at = self.instructions.partition_point(|i| i.ip() < back).checked_sub(1)?;
        let call = self.instructions.get(at)?;
        (call.next_ip() == back && is_call(call)).then_some(call)
    }

    /// All calls: where they return to, and whereto they go.
    pub(crate) fn calls(&self, binary: &Binary) -> Vec<(u64, Callee)> {
        let calls = self.instructions.iter().filter(|i| is_call(i));
        calls.map(|i| (i.next_ip(), callee(binary, i))).collect()
    }

    /// What is known right before the call that returns to `back`.
    pub(crate) fn before(&self, unwind: &Unwind, binary: &Binary, back: u64) -> Option<State> {
        let call = self.at(self.call(back)?.ip())?;
        let mut joins = BTreeSet::from([self.bounds.0]);
        for i in &self.instructions {
            match i.flow_control() {
                FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                    joins.insert(i.near_branch_target());
                }
                FlowControl::UnconditionalBranch => {
                    joins.extend([i.near_branch_target(), i.next_ip()]);
                }
                FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Interrupt => {
                    joins.insert(i.next_ip());
                }
                FlowControl::Call if no_return(&callee(binary, i)) => {
                    joins.insert(i.next_ip());
                }
                _ => {}
            }
        }
        let call_ip = self.instructions.get(call)?.ip();
        let from = *joins.range(..=call_ip).next_back()?;
        let mut state = unwind.state(from);
        let mut info = InstructionInfoFactory::new();
        for i in self.instructions.get(self.at(from)?..call)? {
            if is_call(i) {
                state.called();
            } else {
                step(&mut state, i, &mut info);
            }
        }
        Some(state)
    }

    /// Follows every way on from the call that returns to `back`, whose result is the allocation's
    /// address if `in_result`. Each way is told with its number. `parts` hears the number of a way
    /// that divides: the new way has the next free number and has met what the other had met
    /// before.
    pub(crate) fn follow(
        &self,
        binary: &Binary,
        back: u64,
        mut state: State,
        in_result: bool,
        mut meets: impl FnMut(usize, Meets<'_>) -> Go,
        mut parts: impl FnMut(usize),
    ) {
        state.called();
        if in_result {
            state.registers[RAX] = Value::of(Base::Allocation);
        }
        let mut info = InstructionInfoFactory::new();
        let mut ways = vec![(0, back, state)];
        let (mut steps, mut count) = (0, 1);
        let mut taken: BTreeMap<u64, usize> = BTreeMap::new();
        let mut again = |branch: u64| {
            let rounds = taken.entry(branch).or_default();
            *rounds += 1;
            *rounds <= ROUNDS
        };
        while let Some((way, start, mut state)) = ways.pop() {
            let mut ip = start;
            let nothing = Stores::new();
            if matches!(meets(way, Meets::Instruction(ip, &state, &nothing)), Go::Stop) {
                continue;
            }
            while let Some(i) = self.at(ip).and_then(|at| self.instructions.get(at)) {
                steps += 1;
                if steps > STEPS || !state.alive() {
                    break;
                }
                ip = i.next_ip();
                let mut stores = Stores::new();
                match i.flow_control() {
                    FlowControl::Next => stores = step(&mut state, i, &mut info),
                    FlowControl::Call | FlowControl::IndirectCall => {
                        let callee = callee(binary, i);
                        if no_return(&callee) || matches!(meets(way, Meets::Call(&callee, &state)), Go::Stop)
                        {
                            break;
                        }
                        state.called();
                    }
                    FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch if !again(i.ip()) => {
                        break;
                    }
                    FlowControl::UnconditionalBranch => ip = i.near_branch_target(),
                    FlowControl::ConditionalBranch => {
                        let target = i.near_branch_target();
                        let null = std::mem::take(&mut state.zero_test);
                        match i.code() {
                            // The allocation failed there.
                            Code::Je_rel8_64 | Code::Je_rel32_64 if null => {}
                            Code::Jne_rel8_64 | Code::Jne_rel32_64 if null => ip = target,
                            _ if count < WAYS => {
                                parts(way);
                                ways.push((count, target, state.clone()));
                                count += 1;
                            }
                            _ => {}
                        }
                    }
                    FlowControl::Return => {
                        if state.registers[RAX].is_allocation() {
                            meets(way, Meets::Returned);
                        }
                        break;
                    }
                    _ => break,
                }
                if matches!(meets(way, Meets::Instruction(ip, &state, &stores)), Go::Stop) {
                    break;
                }
            }
        }
    }
}

fn is_call(i: &Instruction) -> bool {
    matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

fn no_return(callee: &Callee) -> bool {
    callee
        .name()
        .is_some_and(|name| NO_RETURN.contains(&name) || NO_RETURN_PARTS.iter().any(|p| name.contains(p)))
}

/// Where a call goes to: directly, by the procedure linkage table, or by a slot that the loader
/// fills.
pub(crate) fn callee(binary: &Binary, call: &Instruction) -> Callee {
    match call.op0_kind() {
        OpKind::NearBranch64 => {
            let target = call.near_branch_target();
            if let Some(name) = binary.symbol(target) {
                return Callee::Named(name.to_owned());
            }
            import_behind(binary, target).map_or(Callee::Address(target), Callee::Named)
        }
        OpKind::Memory if call.is_ip_rel_memory_operand() => {
            let slot = call.memory_displacement64();
            binary.imports.get(&slot).map_or(Callee::Unknown, |name| Callee::Named(name.clone()))
        }
        _ => Callee::Unknown,
    }
}

/// The name behind an entry of the procedure linkage table: `endbr64; jmp *slot`.
fn import_behind(binary: &Binary, entry: u64) -> Option<String> {
    let bytes = binary.code(entry, entry.checked_add(16)?)?;
    let mut decoder = Decoder::with_ip(64, &bytes, entry, DecoderOptions::NONE);
    for i in decoder.iter().take(2) {
        if i.flow_control() == FlowControl::IndirectBranch && i.is_ip_rel_memory_operand() {
            return binary.imports.get(&i.memory_displacement64()).cloned();
        }
    }
    None
}
