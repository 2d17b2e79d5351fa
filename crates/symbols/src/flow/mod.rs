//! Following a value through instructions.

pub(crate) mod paths;
pub(crate) mod state;
pub(crate) mod step;
pub(crate) mod unwind;
pub(crate) mod value;
