//! Registers and memory while instructions are followed.

use super::value::{Base, Value};

/// Registers by the debugging information's number.
pub(crate) const RAX: usize = 0;
pub(crate) const RBP: usize = 6;
pub(crate) const RSP: usize = 7;
/// General registers.
pub(crate) const GENERAL: usize = 16;
/// Registers that a called function need not keep.
pub(crate) const CLOBBERED: [usize; 9] = [RAX, 1, 2, 4, 5, 8, 9, 10, 11];
/// Registers of the first six arguments.
pub(crate) const ARGUMENTS: [usize; 6] = [5, 4, 1, 2, 8, 9];
/// Most words of memory that are remembered.
const WORDS: usize = 256;

/// What is known at one instruction.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub registers: [Value; GENERAL],
    /// Low and high half of the vector registers.
    pub vectors: [[Value; 2]; 16],
    /// Words of memory, the latest last.
    memory: Vec<(Value, Value)>,
    /// The register that was last compared with zero, if it held the allocation.
    pub zero_test: bool,
    next: u32,
    /// Following began at the function's first instruction.
    pub from_entry: bool,
}

impl State {
    /// Every register holds what it held.
    pub(crate) fn new(from_entry: bool) -> Self {
        let registers = std::array::from_fn(|r| Value::of(Base::Initial(r as u8)));
        let mut next = 0;
        let vectors = std::array::from_fn(|_| {
            next += 2;
            [Value::of(Base::Unknown(next - 2)), Value::of(Base::Unknown(next - 1))]
        });
        let mut state = Self { registers, vectors, memory: Vec::new(), zero_test: false, next, from_entry };
        if from_entry {
            state.registers[RSP] = Value::of(Base::Frame).plus(-8);
        }
        state
    }

    /// A value like no other.
    pub(crate) fn unknown(&mut self) -> Value {
        self.next += 1;
        Value::of(Base::Unknown(self.next))
    }

    /// A number like no other.
    pub(crate) fn number(&mut self) -> Value {
        self.next += 1;
        Value::of(Base::Number(self.next))
    }

    /// A word of memory.
    pub(crate) fn load(&mut self, address: &Value) -> Value {
        match self.peek(address) {
            Some(value) => value,
            None => self.unknown(),
        }
    }

    /// The same, without a value for what is too deep.
    pub(crate) fn peek(&self, address: &Value) -> Option<Value> {
        let known = || self.memory.iter().rev().find(|(a, _)| a == address).map(|(_, v)| v.clone());
        if address.spread { address.load() } else { known().or_else(|| address.load()) }
    }

    /// A word is stored.
    pub(crate) fn store(&mut self, address: &Value, value: Value) {
        self.forget(address, 8);
        if !address.spread {
            if self.memory.len() == WORDS {
                self.memory.remove(0);
            }
            self.memory.push((address.clone(), value));
        }
    }

    /// Something that is not followed was stored.
    pub(crate) fn forget(&mut self, address: &Value, bytes: i64) {
        if address.spread {
            return; // Which element it is, is not known; most often another one.
        }
        let overlaps = |known: &Value| {
            known.base == address.base
                && (known.offset.wrapping_sub(address.offset) > -8
                    && known.offset.wrapping_sub(address.offset) < bytes)
        };
        self.memory.retain(|(known, _)| !overlaps(known));
    }

    /// Something that is not followed was stored where a load would otherwise give what memory held
    /// before.
    pub(crate) fn overwrite(&mut self, address: &Value, bytes: i64) {
        self.forget(address, bytes);
        if !address.spread && bytes >= 8 {
            let value = self.unknown();
            self.store(address, value);
        }
    }

    /// Words of memory that are known.
    pub(crate) fn words(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.memory.iter().map(|(a, v)| (a, v))
    }

    /// A function was called.
    pub(crate) fn called(&mut self) {
        for r in CLOBBERED {
            self.registers[r] = self.unknown();
        }
        for v in 0..self.vectors.len() {
            self.vectors[v] = [self.unknown(), self.unknown()];
        }
        self.zero_test = false;
    }

    /// Something still points to the allocation.
    pub(crate) fn alive(&self) -> bool {
        let words = self.memory.iter().map(|(_, v)| v);
        self.registers.iter().chain(self.vectors.iter().flatten()).chain(words).any(Value::points_into)
    }
}
