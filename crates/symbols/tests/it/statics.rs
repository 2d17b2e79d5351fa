//! Static variables.
