//! Compiler drivers for the exact recorder: `homenode-cc`, `homenode-c++` and `homenode-fc`.
//!
//! They stand where `gcc`, `g++`, `gfortran`, `clang` or `clang++` would stand, take the same
//! arguments, and survive autoconf and CMake (`CC=homenode-cc cmake …`). What they do by step:
//!
//! | step | what is done |
//! |---|---|
//! | preprocess, `-M`, `--version`, `-print-…` | passed on unchanged |
//! | compile (`-c`, `-S`) | each memory access becomes a call (`-fsanitize=thread`, [`flags`]) |
//! | link | our library goes before all others, some functions are redirected ([`wraps`]); never `-fsanitize=thread` |
//! | compile for an executable, x86-64 | through assembly, in which the calls become the recorder's check ([`rewrite`]) |
//! | both in one command | split into the two ([`plan`]) |
//!
//! A program built so and started by itself does what it would do anyway: the library records under
//! `homenode record` only.
//!
//! Environment:
//!
//! * `HOMENODE_CC`, `HOMENODE_CXX`, `HOMENODE_FC`: the real compiler (default `gcc`, `g++`,
//!   `gfortran`); also `--homenode-compiler=PATH` among the flags, which outlives the shell of a
//!   configure run;
//! * `HOMENODE_LIB_DIR`: the folder of `libhomenode_trace.so` (default: beside this program, or
//!   `../lib/homenode`);
//! * `HOMENODE_INCLUDE_DIR`: the folder of `homenode.h`;
//! * `HOMENODE_CC_INLINE=0`: keep the calls; slower, but the compiler's own code;
//! * `HOMENODE_CC_VERBOSE=1`: print each command before it runs.
//!
//! Exit status: the compiler's; 1 if the driver itself cannot go on.
//!
//! # What stays unseen
//!
//! * Assembly, and intrinsics that are not plain loads and stores (gather, masked, streaming).
//! * GCC: copies and fills of constant size up to 256 bytes (1024 with AVX-512) that a program
//!   writes as `__builtin_memcpy`, and that the Fortran front end and the headers of libstdc++
//!   make.
//! * clang: accesses that are not 1, 2, 4, 8 or 16 bytes: `long double`, 32-byte vector types.
//! * Atomics that the compiler leaves to libatomic (larger than 16 bytes).
//! * What libc writes for the program, but for the functions wrapped (`strcpy`, `recv`, `getline`,
//!   …).
//! * Libraries built otherwise, except for the wrapped functions that static ones call.
//! * A program linked by calling `ld` itself.

pub mod args;
pub mod flags;
mod help;
pub mod plan;
pub mod response;
pub mod rewrite;
mod run;
mod toolchain;
pub mod wraps;

pub use run::main;
pub use toolchain::{Family, SourceLanguage, Toolchain};

/// Why a driver cannot go on: a sentence for the user, with the remedy.
#[derive(Debug)]
pub struct Error(pub String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
