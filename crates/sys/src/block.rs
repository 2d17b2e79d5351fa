//! Owned memory for measuring: placed by policy before it is touched, and read and written as
//! numbers.

use std::sync::atomic::AtomicU64;

use crate::memory::{Access, map_aligned, protect, unmap};
use crate::{HUGE, Result, Span};

/// Private anonymous memory, zero where it was never written. Unmapped when dropped.
///
/// It is never shared, discarded or remapped while this exists, so it is ordinary memory to its
/// holder. 2 MiB without access on either side keep the kernel from merging its mapping with
/// others, so that what `/proc` says of the mapping is true of the block.
#[derive(Debug)]
pub struct Block {
    span: Span,
    all: Span,
}

impl Block {
    /// `bytes`, rounded up to whole 2 MiB and starting at a multiple of it; nothing is touched.
    ///
    /// # Errors
    /// No address space.
    pub fn new(bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1).checked_next_multiple_of(HUGE).unwrap_or(usize::MAX & !(HUGE - 1));
        let all = map_aligned(bytes.saturating_add(2 * HUGE), HUGE, Access::None)?;
        let block = Self { span: Span::new(all.start + HUGE, bytes), all };
        // SAFETY: a part of the mapping just made, which nobody else knows.
        unsafe { protect(block.span, Access::ReadWrite)? };
        Ok(block)
    }

    /// Where it is.
    pub const fn span(&self) -> Span {
        self.span
    }

    /// As floating-point numbers.
    pub const fn floats(&self) -> &[f64] {
        // SAFETY: mapped for the life of self, aligned to 2 MiB, any bits are a number; nobody
        // writes while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.span.start as *const f64, self.span.len() / 8) }
    }

    /// As floating-point numbers, to write.
    pub const fn floats_mut(&mut self) -> &mut [f64] {
        // SAFETY: as in `floats`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.span.start as *mut f64, self.span.len() / 8) }
    }

    /// As words that several threads read and write.
    pub const fn words(&self) -> &[AtomicU64] {
        // SAFETY: as in `floats`; atomics may be written through a shared borrow.
        unsafe { std::slice::from_raw_parts(self.span.start as *const AtomicU64, self.span.len() / 8) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: nobody else has it, and borrows have ended.
        let _ = unsafe { unmap(self.all) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn it_is_zero_writable_and_gone_afterwards() {
        let mut block = Block::new(HUGE + 1).unwrap();
        let span = block.span();
        assert_eq!((span.len(), span.start % HUGE), (2 * HUGE, 0));
        let mut exact = false;
        crate::maps::each(|m| {
            exact |= m.span == span;
            true
        })
        .unwrap();
        assert!(exact, "a mapping of its own");
        block.floats_mut()[7] = 1.0;
        assert_eq!((block.floats()[7], block.floats()[8]), (1.0, 0.0));
        assert_eq!(block.words()[7].load(Ordering::Relaxed), 1.0_f64.to_bits());
        drop(block);
        assert!(!crate::memory::is_mapped(span));
    }

    #[test]
    fn more_than_there_are_addresses_is_an_error() {
        assert!(Block::new(usize::MAX).is_err());
    }
}
