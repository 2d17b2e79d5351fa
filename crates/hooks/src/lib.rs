//! What the libraries that are loaded into other people's programs share.
//!
//! | module | what |
//! |---|---|
//! | [`early`] | memory for the loader while it looks an allocator up |
//! | [`entry`] | exported functions that learn who calls them |
//! | [`next`] | the functions behind front ends, by name |
//! | [`loaded`] | the files in the process, and which of them has an address |
//! | [`ompt`] | the types and numbers of the OpenMP tools interface |
//! | [`python`] | the functions by which an interpreter tells its frames |
//!
//! Nothing here allocates, takes a lock or keeps thread-local data. The loader's own functions take
//! the loader's lock; the text of each function that calls one says so.

#![no_std]

pub mod early;
pub mod entry;
pub mod loaded;
pub mod next;
pub mod ompt;
pub mod python;
