//! Memory that only one thread may write at a time.

use loom::cell::UnsafeCell;

/// Loom fails if a thread writes it while another one reads or writes it, or without an ordering
/// between the two.
pub struct Memory(UnsafeCell<()>);

// SAFETY: loom runs one thread at a time, and the contents are empty.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new() -> Self {
        Self(UnsafeCell::new(()))
    }
    pub fn read(&self) {
        self.0.with(|_| ());
    }
    pub fn write(&self) {
        self.0.with_mut(|_| ());
    }
}
