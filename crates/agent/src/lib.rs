//! `libhomenode`: the library that a program with `homenode.h` links, and that `homenode run` loads
//! into a program.
//!
//! | how the program runs | what the functions of `homenode.h` do |
//! |---|---|
//! | directly | nothing |
//! | under the recorder, whose library comes earlier in the link order and exports the same names | they become marks of the recording |
//! | under `homenode run` | they reach the live runtime |
//!
//! Under `homenode run`, parallel regions ([`gomp`], [`ompt`]) and large allocations ([`alloc`])
//! reach the runtime, too.
//!
//! This crate has no logic: front ends turn the program's actions into calls of
//! [`homenode_runtime`]. None of them panics across the program's border ([`state::with`]), and all
//! keep `errno`. Without `HOMENODE_RUN_DIR` in the environment they only pass calls on.

// Front ends may unwind (many are cancellation points), which the standard library's own
// declarations of `read`, `write` and `open` do not say. Newer compilers refuse that; older ones do
// not know that they do.
#![allow(unknown_lints, invalid_runtime_symbol_definitions)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!(
    "the live runtime is written for x86-64 Linux: its front ends read return addresses in assembly"
);

mod align;
mod alloc;
mod allocator;
mod backtrace;
mod callers;
mod capi;
mod capi_distribute;
mod clib;
mod cpp;
mod distributed;
mod exec;
mod finish;
mod first_thread;
mod force;
mod forward;
mod gomp;
mod heap;
mod helper_threads;
mod interpose;
mod interpose_checked;
mod interpose_context;
mod interpose_descriptors;
mod interpose_fork;
mod interpose_io;
mod interpose_limits;
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
mod loops_prepared;
mod loops_static;
mod loops_static_kmpc;
mod loops_touched;
mod modules;
mod mover;
mod next;
mod objects;
mod omp_alloc;
mod ompt;
mod python;
mod raw_calls;
mod regions;
mod slots;
mod start;
mod state;
mod statics;
mod stub;
mod told;
