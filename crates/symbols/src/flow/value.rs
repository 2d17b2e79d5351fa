//! What is known of a value without running the program: where it came from, and what was added to
//! it.

use std::rc::Rc;

/// Most loads through loads: `a->b->c->…`.
const DEEPEST: usize = 6;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The canonical frame address: what the stack pointer was before the call of this function.
    Frame,
    /// Zero: the value is a constant, or an address in the file's own terms.
    Absolute,
    /// What the allocating call returned.
    Allocation,
    /// The same, rounded to an alignment.
    Aligned,
    /// A register at the place where following began, by the debugging information's number.
    Initial(u8),
    /// What the memory at an address held.
    Load(Rc<Value>),
    /// A number that is no address.
    Number(u32),
    /// Anything else; each has a number of its own.
    Unknown(u32),
}

/// A value: the base, and what was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub base: Base,
    /// Bytes added.
    pub offset: i64,
    /// Something that is not known was added too: an index.
    pub spread: bool,
}

impl Value {
    pub(crate) const fn of(base: Base) -> Self {
        Self { base, offset: 0, spread: false }
    }

    pub(crate) const fn absolute(at: u64) -> Self {
        Self { base: Base::Absolute, offset: at.cast_signed(), spread: false }
    }

    pub(crate) fn plus(&self, bytes: i64) -> Self {
        Self { offset: self.offset.wrapping_add(bytes), ..self.clone() }
    }

    pub(crate) fn spread(&self) -> Self {
        Self { spread: true, ..self.clone() }
    }

    /// What memory at this address held, unless that is too many loads deep.
    pub(crate) fn load(&self) -> Option<Self> {
        (self.depth() < DEEPEST).then(|| Self::of(Base::Load(Rc::new(self.clone()))))
    }

    fn depth(&self) -> usize {
        let (mut here, mut depth) = (self, 0);
        while let Base::Load(inner) = &here.base {
            (here, depth) = (inner, depth + 1);
        }
        depth
    }

    /// A constant.
    pub(crate) fn constant(&self) -> Option<i64> {
        (self.base == Base::Absolute && !self.spread).then_some(self.offset)
    }

    pub(crate) const fn is_number(&self) -> bool {
        matches!(self.base, Base::Number(_))
    }

    /// The sum; `None` if it cannot be told which of the two is the address.
    pub(crate) fn sum(&self, other: &Self) -> Option<Self> {
        match (self.constant(), other.constant()) {
            (_, Some(c)) => Some(self.plus(c)),
            (Some(c), _) if !other.is_number() => Some(other.plus(c)),
            _ => match (self.is_number(), other.is_number()) {
                (false, true) => Some(self.spread()),
                (true, false) => Some(other.spread()),
                (true, true) => Some(self.clone()),
                (false, false) => None,
            },
        }
    }

    /// It is the allocation: its first byte, the byte behind the count that C++ puts in front of
    /// arrays, or the first aligned byte.
    pub(crate) fn is_allocation(&self) -> bool {
        match self.base {
            Base::Allocation => !self.spread && matches!(self.offset, 0 | 8 | 16),
            Base::Aligned => !self.spread && self.offset == 0,
            _ => false,
        }
    }

    /// It is the allocation's first byte.
    pub(crate) fn is_first_byte(&self) -> bool {
        self.base == Base::Allocation && !self.spread && self.offset == 0
    }

    /// It points into the allocation.
    pub(crate) const fn points_into(&self) -> bool {
        matches!(self.base, Base::Allocation | Base::Aligned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_spreads_the_address_that_it_is_added_to() {
        let rows = Value::of(Base::Frame).plus(-24).load().unwrap();
        let index = Value::of(Base::Number(1));
        for sum in [rows.sum(&index), index.sum(&rows)] {
            assert_eq!(sum, Some(rows.spread()));
        }
        assert_eq!(Value::absolute(0x4000).sum(&index), Some(Value::absolute(0x4000).spread()));
        assert_eq!(rows.sum(&Value::absolute(8)), Some(rows.plus(8)));
        assert_eq!(rows.sum(&rows), None);
    }

    #[test]
    fn loads_have_a_bound() {
        let mut value = Value::of(Base::Frame);
        for _ in 0..DEEPEST {
            value = value.load().unwrap();
        }
        assert_eq!(value.load(), None);
    }
}
