//! The recording's directory.
