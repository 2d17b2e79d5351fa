//! End-to-end tests of the drivers: real compilers, real programs.
//!
//! The library is the one in `HOMENODE_LIB_DIR`; without that variable a stand-in is built from
//! `tests/standin/standin.c`, which carries everything out and records nothing.

mod corpus;
mod driver;
mod manifest;
mod support;
