//! Whoever answers an [`Item`]: the machine itself, or a description of one.

use crate::cell::Cell;
use crate::item::Item;

/// Measures, or pretends to.
pub trait Prober {
    /// The cells of one item, at least one. What cannot be measured is a cell that says why;
    /// nothing panics. `stop` is asked every few milliseconds; once it says yes, what has been
    /// measured is returned.
    fn probe(&mut self, item: &Item, stop: &dyn Fn() -> bool) -> Vec<Cell>;

    /// Everything is about to be measured again: what lies where it lies by chance is to be placed
    /// anew.
    fn anew(&mut self) {}
}
