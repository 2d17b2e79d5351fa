//! The budget of homenode's own time, and whether moving pays.
