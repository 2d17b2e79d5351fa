//! The raw log of a recording.
