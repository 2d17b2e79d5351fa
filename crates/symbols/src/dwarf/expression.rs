//! Where a variable lives, as a value that instructions can be compared with.

use gimli::{Expression, Operation};

use super::Unit;
use crate::binary::Reader;
use crate::flow::state::{GENERAL, State};
use crate::flow::value::{Base, Value};

/// Most operations of an expression.
const OPERATIONS: usize = 64;

/// Where a variable, or a part of it, lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In a register, by the debugging information's number.
    Register(usize),
    /// In memory.
    Memory(Value),
    /// Nowhere; this is what it holds.
    Nowhere(Value),
}

/// A part of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Bytes from the variable's start.
    pub at: u64,
    /// Length in bytes; `None`: the whole variable.
    pub bytes: Option<u64>,
    pub home: Home,
}

/// What expressions are evaluated with.
pub(crate) struct Frame<'a> {
    pub dwarf: &'a gimli::Dwarf<Reader>,
    pub unit: &'a Unit,
    pub base: Option<&'a Expression<Reader>>,
    pub state: &'a State,
}

impl Frame<'_> {
    /// The parts of a variable; one that begins at 0 unless the compiler took it apart.
    pub(crate) fn parts(&self, expression: &Expression<Reader>) -> Vec<Part> {
        let (mut parts, mut at) = (Vec::new(), 0_u64);
        let mut stack: Vec<Value> = Vec::new();
        let mut home: Option<Home> = None;
        let mut pieces = false;
        let mut operations = expression.clone().operations(self.unit.encoding());
        for _ in 0..OPERATIONS {
            let Ok(Some(operation)) = operations.next() else { break };
            match operation {
                Operation::Register { register } if usize::from(register.0) < GENERAL => {
                    home = Some(Home::Register(usize::from(register.0)));
                }
                // A vector register: something like a number.
                Operation::Register { .. }
                | Operation::ImplicitValue { .. }
                | Operation::ImplicitPointer { .. } => {
                    home = None;
                    stack.clear();
                }
                Operation::StackValue => home = stack.pop().map(Home::Nowhere),
                Operation::Piece { size_in_bits, bit_offset: None } => {
                    pieces = true;
                    let here = home.take().or_else(|| stack.pop().map(Home::Memory));
                    stack.clear();
                    let bytes = size_in_bits / 8;
                    parts.extend(here.map(|home| Part { at, bytes: Some(bytes), home }));
                    at = at.saturating_add(bytes);
                }
                other => {
                    if self.compute(&other, &mut stack).is_none() {
                        // Not understood: what follows may be another piece.
                        stack.clear();
                        if !pieces && !self.has_pieces(expression) {
                            return Vec::new();
                        }
                        home = None;
                    }
                }
            }
        }
        if !pieces {
            parts.extend(home.or_else(|| stack.pop().map(Home::Memory)).map(|home| Part {
                at: 0,
                bytes: None,
                home,
            }));
        }
        parts
    }

    fn has_pieces(&self, expression: &Expression<Reader>) -> bool {
        let mut operations = expression.clone().operations(self.unit.encoding());
        (0..OPERATIONS)
            .map_while(|_| operations.next().ok().flatten())
            .any(|o| matches!(o, Operation::Piece { .. }))
    }

    fn register(&self, number: u16) -> Option<Value> {
        self.state.registers.get(usize::from(number)).cloned()
    }

    fn compute(&self, operation: &Operation<Reader>, stack: &mut Vec<Value>) -> Option<()> {
        let value = match operation {
            Operation::Address { address } => Value::absolute(*address),
            Operation::AddressIndex { index } => Value::absolute(self.dwarf.address(self.unit, *index).ok()?),
            Operation::FrameOffset { offset } => self.frame_base()?.plus(*offset),
            Operation::RegisterOffset { register, offset, .. } => self.register(register.0)?.plus(*offset),
            Operation::CallFrameCFA => Value::of(Base::Frame),
            Operation::UnsignedConstant { value } => Value::absolute(*value),
            Operation::SignedConstant { value } => Value::absolute(value.cast_unsigned()),
            Operation::PlusConstant { value } => stack.pop()?.plus(value.cast_signed()),
            Operation::Plus => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                a.sum(&b)?
            }
            Operation::Minus => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                a.plus(b.constant()?.wrapping_neg())
            }
            Operation::Deref { size: 8, space: false, .. } => {
                let address = stack.pop()?;
                self.state.peek(&address)?
            }
            Operation::EntryValue { expression } if self.state.from_entry => {
                let mut inner = Expression(expression.clone()).operations(self.unit.encoding());
                match inner.next().ok()?? {
                    Operation::Register { register } if usize::from(register.0) < GENERAL => {
                        Value::of(Base::Initial(register.0 as u8))
                    }
                    _ => return None,
                }
            }
            Operation::Nop => return Some(()),
            _ => return None,
        };
        stack.push(value);
        Some(())
    }

    /// The address that the function's variables are counted from.
    fn frame_base(&self) -> Option<Value> {
        let mut operations = self.base?.clone().operations(self.unit.encoding());
        match operations.next().ok()?? {
            Operation::CallFrameCFA => Some(Value::of(Base::Frame)),
            Operation::Register { register } => self.register(register.0),
            Operation::RegisterOffset { register, offset, .. } => {
                Some(self.register(register.0)?.plus(offset))
            }
            _ => None,
        }
    }
}
