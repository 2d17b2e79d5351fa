//! Owned memory for measuring: placed by policy before it is touched, and read and written as
//! numbers.

use std::sync::atomic::AtomicU64;

use crate::memory::{Protection, map_aligned, protect, unmap};
use crate::{HUGE, Result, Span};

/// Private anonymous memory, zero where it was never written. Unmapped when dropped.
///
/// Nobody shares, discards or remaps it while this exists, so it is ordinary memory to its holder.
/// Inaccessible 2 MiB on either side keep the kernel from merging its mapping with others. So what
/// `/proc` says of the mapping holds for the block.
#[derive(Debug)]
pub struct AnonymousMemory {
    span: Span,
    all: Span,
}

impl AnonymousMemory {
    /// A block of `bytes`, rounded up to whole 2 MiB and aligned to 2 MiB; nothing is touched.
    ///
    /// # Errors
    /// No address space.
    pub fn new(bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1).checked_next_multiple_of(HUGE).unwrap_or(usize::MAX & !(HUGE - 1));
        let all = map_aligned(bytes.saturating_add(2 * HUGE), HUGE, Protection::None)?;
        let block = Self { span: Span::new(all.start + HUGE, bytes), all };
        // SAFETY: a part of the mapping just made, which nobody else knows.
        unsafe { protect(block.span, Protection::ReadWrite)? };
        Ok(block)
    }

    /// The block's addresses.
    pub const fn span(&self) -> Span {
        self.span
    }

    /// The block as floating-point numbers.
    pub const fn floats(&self) -> &[f64] {
        // SAFETY: mapped for the life of self, aligned to 2 MiB, any bits are a number; nobody
        // writes while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.span.start as *const f64, self.span.len() / 8) }
    }

    /// The block as floating-point numbers, for writing.
    pub const fn floats_mut(&mut self) -> &mut [f64] {
        // SAFETY: as in `floats`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.span.start as *mut f64, self.span.len() / 8) }
    }

    /// The block as words that several threads read and write.
    pub const fn words(&self) -> &[AtomicU64] {
        // SAFETY: as in `floats`; atomics may be written through a shared borrow.
        unsafe { std::slice::from_raw_parts(self.span.start as *const AtomicU64, self.span.len() / 8) }
    }
}

impl Drop for AnonymousMemory {
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
        let mut block = AnonymousMemory::new(HUGE + 1).unwrap();
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
        assert!(AnonymousMemory::new(usize::MAX).is_err());
    }
}
