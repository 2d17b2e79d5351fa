//! Constructors for statics.

use super::changes::{Change, Changes};
use super::flights::{Flights, Slot};
use super::ring::TouchRing;
use super::sync::{AtomicU32, AtomicU64, AtomicUsize};

impl<const LENGTH: usize> Changes<LENGTH> {
    /// No changes so far.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        let none = [const { Change { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; LENGTH];
        Self { changes: none, begun: AtomicUsize::new(0), written: AtomicUsize::new(0) }
    }
}

impl<const SLOTS: usize> Flights<SLOTS> {
    /// No buffers.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            slots: [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; SLOTS],
            used: AtomicUsize::new(0),
            quiet: AtomicU32::new(0),
            choosing: AtomicU32::new(0),
        }
    }
}

impl<const LENGTH: usize, const PATIENCE: usize> TouchRing<LENGTH, PATIENCE> {
    /// Empty.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            places: [const { AtomicU64::new(0) }; LENGTH],
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
        }
    }
}
