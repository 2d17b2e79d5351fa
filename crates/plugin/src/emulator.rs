//! Recording a program under user-mode emulation: QEMU shows every access, and what the program's
//! guest library tells by system calls ([`homenode_recorder::channel`]) are the marks. Both go to
//! the same recorder as those of instrumented programs.
//!
//! | module | one idea |
//! |---|---|
//! | [`x86`] | how an instruction addresses memory: what the compiler keeps on the stack for itself |
//! | [`code`](mod@code) | whose code is where; what of the system's libraries counts |
//! | [`cpu`] | an emulated thread: the check of the filter |
//! | [`cpus`] | the places of all emulated threads |
//! | [`fast`] | the same for what only loads or only stores, in assembly |
//! | [`hook`] | what QEMU calls |

pub mod code;
pub mod cpu;
pub mod cpus;
pub mod fast;
pub mod hook;
pub mod x86;

pub use hook::install;
