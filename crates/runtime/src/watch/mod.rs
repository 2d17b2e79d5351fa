//! Which node touches what.
