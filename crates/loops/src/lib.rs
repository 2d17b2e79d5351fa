//! `libhomenode_loops`: the names of OpenMP's loop functions, led to `libhomenode`.
//!
//! `homenode run --schedule` loads this library before `libhomenode`. A program's calls of these
//! functions come here, and each goes on with one jump: arguments and return address stay as they
//! are. Without `--schedule` the library is not loaded, so that a program's calls go straight to
//! its own run-time and cost nothing.
//!
//! `libhomenode` (`crates/agent`, `loops_gomp`, `loops_kmpc` and `loops_static_kmpc`) exports each
//! function under its name with `homenode_` before it.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("these jumps are written for x86-64 Linux");

use std::arch::naked_asm;

macro_rules! led {
    ($($name:ident)*) => { $(
        /// Goes on in `libhomenode`.
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(concat!("jmp qword ptr [rip + homenode_", stringify!($name), "@GOTPCREL]"))
        }
    )* };
}

led! {
    GOMP_loop_dynamic_start
    GOMP_loop_dynamic_next
    GOMP_loop_guided_start
    GOMP_loop_guided_next
    GOMP_loop_runtime_start
    GOMP_loop_runtime_next
    GOMP_loop_nonmonotonic_dynamic_start
    GOMP_loop_nonmonotonic_dynamic_next
    GOMP_loop_nonmonotonic_guided_start
    GOMP_loop_nonmonotonic_guided_next
    GOMP_loop_nonmonotonic_runtime_start
    GOMP_loop_nonmonotonic_runtime_next
    GOMP_loop_maybe_nonmonotonic_runtime_start
    GOMP_loop_maybe_nonmonotonic_runtime_next
    GOMP_loop_ull_dynamic_start
    GOMP_loop_ull_dynamic_next
    GOMP_loop_ull_guided_start
    GOMP_loop_ull_guided_next
    GOMP_loop_ull_runtime_start
    GOMP_loop_ull_runtime_next
    GOMP_loop_ull_nonmonotonic_dynamic_start
    GOMP_loop_ull_nonmonotonic_dynamic_next
    GOMP_loop_ull_nonmonotonic_guided_start
    GOMP_loop_ull_nonmonotonic_guided_next
    GOMP_loop_ull_nonmonotonic_runtime_start
    GOMP_loop_ull_nonmonotonic_runtime_next
    GOMP_loop_ull_maybe_nonmonotonic_runtime_start
    GOMP_loop_ull_maybe_nonmonotonic_runtime_next
    GOMP_loop_end_nowait
    __kmpc_dispatch_init_4
    __kmpc_dispatch_init_4u
    __kmpc_dispatch_init_8
    __kmpc_dispatch_init_8u
    __kmpc_dispatch_next_4
    __kmpc_dispatch_next_4u
    __kmpc_dispatch_next_8
    __kmpc_dispatch_next_8u
    __kmpc_for_static_init_4
    __kmpc_for_static_init_4u
    __kmpc_for_static_init_8
    __kmpc_for_static_init_8u
}
