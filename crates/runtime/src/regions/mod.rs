//! Which region runs, and which of them make an iteration.
