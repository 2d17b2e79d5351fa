//! libgomp, which has no tools interface: its entry points that start teams are interposed, and its barriers. Everything
//! else of it the program calls directly. Each call is passed on to the copy of libgomp that the calling object would have
//! reached without us ([`crate::callers`]).

use std::arch::naked_asm;
use std::ffi::CStr;

use crate::{callers, state};

/// The call as it came, and what the stub adds: entry point and return address.
type Forward = unsafe extern "C-unwind" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> usize;
/// Every entry point, called with more arguments than it has: those beyond are never looked at.
type Real = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> usize;

/// The functions above, as types that `sym` accepts.
const _: (Forward, Forward, Forward, Forward) = (team, start, end, barrier);

/// The program calls a function that no loaded run-time system has: it could not run without us either.
#[cold]
fn missing(entry: usize) -> ! {
    state::complain(&format!("no loaded OpenMP run-time system has {}", NAMES[entry].to_string_lossy()));
    std::process::abort()
}

fn target(caller: usize, entry: usize) -> callers::Target {
    callers::target(caller, entry, NAMES[entry]).unwrap_or_else(|| missing(entry))
}

fn real(target: callers::Target) -> Real {
    // SAFETY: the loader's address of the function of that name; the ABI lets a caller pass more arguments than it takes.
    unsafe { std::mem::transmute::<usize, Real>(target.function) }
}

macro_rules! forward {
    ($(#[$doc:meta])* $name:ident($target:ident, $caller:ident, $function:ident) $before:block $after:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C-unwind" fn $name(
            a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize,
            $caller: usize, entry: usize,
        ) -> usize {
            let $target = target($caller, entry);
            let $function = a;
            if !$target.libomp $before
            // SAFETY: the caller's arguments.
            let result = unsafe { real($target)(a, b, c, d, e, f, g, h) };
            if !$target.libomp $after
            result
        }
    };
}

forward! {
    /// Runs a team from its start to its end.
    team(target, caller, function) { state::region_begin(function, caller); } { state::region_end(); }
}
forward! {
    /// Starts a team whose end is another call.
    start(target, caller, function) { state::region_begin(function, caller); } {}
}
forward! {
    /// Ends the team of an earlier call.
    end(target, caller, _function) {} { state::region_end(); }
}
forward! {
    /// Waits for the team.
    barrier(target, caller, _function) {} { state::barrier(caller); }
}

macro_rules! entries {
    ($($how:ident $name:ident)*) => {
        /// Names of the entry points, by number.
        static NAMES: &[&CStr] = &[$(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(s) => s,
            Err(_) => panic!("a symbol has no zero byte"),
        }),*];
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Entry { $($name),* }
        $(
            /// Passes its arguments on, with its return address and number.
            ///
            /// # Safety
            /// Called by compiler-generated code.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C-unwind" fn $name() {
                // Arguments 7 and 8 lie above the return address, whether the entry point has them or not: reading two
                // words there is harmless, for the caller's frame is larger. 5 words keep the stack aligned.
                naked_asm!(
                    ".cfi_startproc",
                    "sub rsp, 8",
                    ".cfi_adjust_cfa_offset 8",
                    "push {entry}",
                    ".cfi_adjust_cfa_offset 8",
                    "push qword ptr [rsp + 16]",
                    ".cfi_adjust_cfa_offset 8",
                    "push qword ptr [rsp + 40]",
                    ".cfi_adjust_cfa_offset 8",
                    "push qword ptr [rsp + 40]",
                    ".cfi_adjust_cfa_offset 8",
                    "call {f}",
                    "add rsp, 40",
                    ".cfi_adjust_cfa_offset -40",
                    "ret",
                    ".cfi_endproc",
                    entry = const Entry::$name as i32,
                    f = sym $how,
                )
            }
        )*
    };
}

entries! {
    team GOMP_parallel
    team GOMP_parallel_reductions
    team GOMP_parallel_sections
    team GOMP_parallel_loop_static
    team GOMP_parallel_loop_dynamic
    team GOMP_parallel_loop_guided
    team GOMP_parallel_loop_runtime
    team GOMP_parallel_loop_nonmonotonic_dynamic
    team GOMP_parallel_loop_nonmonotonic_guided
    team GOMP_parallel_loop_nonmonotonic_runtime
    team GOMP_parallel_loop_maybe_nonmonotonic_runtime
    team GOMP_teams_reg
    start GOMP_parallel_start
    start GOMP_parallel_sections_start
    start GOMP_parallel_loop_static_start
    start GOMP_parallel_loop_dynamic_start
    start GOMP_parallel_loop_guided_start
    start GOMP_parallel_loop_runtime_start
    end GOMP_parallel_end
    barrier GOMP_barrier
    barrier GOMP_loop_end
    barrier GOMP_sections_end
}
