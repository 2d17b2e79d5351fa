//! Whoever answers a [`Visit`]: the machine itself, or a description of one.

use crate::cell::MeasuredCell;
use crate::item::Visit;

/// Measures, or pretends to.
pub trait Prober {
    /// The cells of one item, at least one. What cannot be measured is a cell that says why;
    /// nothing panics. `stop` is asked every few milliseconds; once it says yes, what has been
    /// measured is returned.
    fn probe(&mut self, item: &Visit, stop: &dyn Fn() -> bool) -> Vec<MeasuredCell>;

    /// Everything is about to be measured again: what lies where it lies by chance is to be placed
    /// anew.
    fn anew(&mut self) {}
}
