//! Constructors: those of loom's types are not `const`.

use std::array::from_fn;

use super::changes::{Change, Changes};
use super::claims::Claims;
use super::flights::{Flights, Slot};
use super::ring::TouchRing;
use super::sync::{AtomicU32, AtomicU64, AtomicUsize};

fn zero() -> AtomicUsize {
    AtomicUsize::new(0)
}

impl<const GROUPS: usize, const BLOCKS: usize> Claims<GROUPS, BLOCKS> {
    pub fn new() -> Self {
        Self { owned: from_fn(|_| AtomicU64::new(0)), states: from_fn(|_| AtomicU64::new(0)) }
    }
}

impl<const LENGTH: usize> Changes<LENGTH> {
    pub fn new() -> Self {
        let changes = from_fn(|_| Change { start: zero(), end: zero() });
        Self { changes, begun: zero(), written: zero() }
    }
}

impl<const SLOTS: usize> Flights<SLOTS> {
    pub fn new() -> Self {
        let slots = from_fn(|_| Slot { start: zero(), end: zero() });
        Self { slots, used: zero(), quiet: AtomicU32::new(0), choosing: AtomicU32::new(0) }
    }
}

impl<const LENGTH: usize, const PATIENCE: usize> TouchRing<LENGTH, PATIENCE> {
    pub fn new() -> Self {
        let places = from_fn(|_| AtomicU64::new(0));
        Self { places, written: AtomicU64::new(0), read: AtomicU64::new(0) }
    }
}
