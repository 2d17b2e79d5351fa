//! `libhomenode`: what a program that includes `homenode.h` links, and what `homenode run` loads
//! into a program.
//!
//! Started directly, a program finds the functions of `homenode.h` here and they do nothing. Under
//! the recorder, whose library comes earlier in the link order and exports the same names, the
//! calls become marks of the recording. Under `homenode run` they reach the live runtime, and so do
//! the program's parallel regions ([`gomp`], [`ompt`]) and its large allocations ([`alloc`]).
//!
//! There is no logic here: front ends turn what the program does into calls of
//! [`homenode_runtime`]. None of them panics across the program's border ([`state::with`]), all
//! keep `errno`, and without `HOMENODE_RUN_DIR` in the environment they only pass on.

// Front ends may unwind (many are cancellation points), which the standard library's own
// declarations of `read`, `write` and `open` do not say. Newer compilers refuse that; older ones do
// not know that they do.
#![allow(unknown_lints, invalid_runtime_symbol_definitions)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!(
    "the live runtime is written for x86-64 Linux: its front ends read return addresses in assembly"
);

mod alloc;
mod callers;
mod capi;
mod clib;
mod cpp;
mod exec;
mod force;
mod gomp;
mod heap;
mod interpose;
mod interpose_checked;
mod interpose_context;
mod interpose_descriptors;
mod interpose_fork;
mod interpose_io;
mod interpose_loader;
mod interpose_memory;
mod interpose_more;
mod interpose_notify;
mod interpose_paths;
mod interpose_printf;
mod interpose_privileges;
mod interpose_signal;
mod interpose_small;
mod interpose_thread;
mod kernel_calls;
mod leave;
mod loops;
mod loops_code;
mod loops_gomp;
mod loops_kmpc;
mod modules;
mod mover;
mod next;
mod ompt;
mod python;
mod raw_calls;
mod slots;
mod state;
mod statics;
mod stub;
mod told;
