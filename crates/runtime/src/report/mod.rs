//! What is said at the end.
