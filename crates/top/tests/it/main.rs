//! What `homenode top` draws, and from what.

mod screen;
mod watch;
