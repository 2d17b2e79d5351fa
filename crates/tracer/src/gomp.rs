//! Front ends of libgomp, which has no tools interface: its entry points are interposed. Each
//! passes its call on to the function of the same name behind this library. GCC's code under LLVM's
//! libomp comes through here, too, because libomp exports the same names. OMPT then reports
//! everything, and these front ends only pass calls on.

use std::ffi::c_void;

use homenode_log::Mark;
use homenode_recorder::state;

use crate::next::next;
use crate::{locks, teams, thread};

type Body = unsafe extern "C-unwind" fn(*mut c_void);

struct Region {
    body: Body,
    data: *mut c_void,
    instance: u64,
}

unsafe extern "C-unwind" fn member(region: *mut c_void) {
    // SAFETY: made by `fork`, whose frame outlives the team.
    let region = unsafe { &*region.cast::<Region>() };
    // SAFETY: OpenMP's functions of these names, which have this type.
    let ask = |f: Option<unsafe extern "C" fn() -> i32>| f.map_or(0, |f| unsafe { f() } as u64);
    let number = ask(next!(omp_get_thread_num: unsafe extern "C" fn() -> i32));
    let team = ask(next!(omp_get_num_threads: unsafe extern "C" fn() -> i32)).max(1);
    thread::with(|t| t.task_begin(region.instance, number, team));
    // SAFETY: the program's outlined function and its argument.
    unsafe { (region.body)(region.data) };
    thread::with(thread::TracedThread::task_end);
}

/// Runs `go` with a body and data that announce the team's members; or with the program's own, if
/// nothing is recorded.
fn fork<R>(body: Body, data: *mut c_void, go: impl FnOnce(Body, *mut c_void) -> R) -> R {
    if !state::recording() || teams::are_libomps() {
        return go(body, data);
    }
    let mut region = Region { body, data, instance: teams::new_instance() };
    let instance = region.instance;
    thread::mark(|| Mark::RegionFork { instance, pc: body as usize as u64 });
    let result = go(member, (&raw mut region).cast());
    thread::with(|t| {
        t.mark(&Mark::RegionJoin { instance });
        t.synchronise();
    });
    result
}

macro_rules! regions {
    ($($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => { $(
        /// Starts a team.
        ///
        /// # Safety
        /// Called by compiler-generated code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(body: Body, data: *mut c_void, $($arg: $ty),*) $(-> $ret)? {
            let real = next!($name: unsafe extern "C-unwind" fn(Body, *mut c_void, $($ty),*) $(-> $ret)?);
            fork(body, data, |body, data| match real {
                // SAFETY: the caller's arguments.
                Some(f) => unsafe { f(body, data, $($arg),*) },
                None => missing(stringify!($name)),
            })
        }
    )* };
}

/// The program calls a function that no loaded run-time system has. Without the recorder it could
/// not run either.
#[cold]
pub fn missing(name: &str) -> ! {
    state::complain(&format!("no loaded OpenMP run-time system has {name}"));
    std::process::abort()
}

regions! {
    GOMP_parallel(threads: u32, flags: u32);
    GOMP_parallel_reductions(threads: u32, flags: u32) -> u32;
    GOMP_parallel_sections(threads: u32, count: u32, flags: u32);
    GOMP_parallel_loop_static(threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_dynamic(threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_guided(threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_nonmonotonic_dynamic(threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_nonmonotonic_guided(threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_runtime(threads: u32, start: i64, end: i64, step: i64, flags: u32);
    GOMP_parallel_loop_nonmonotonic_runtime(threads: u32, start: i64, end: i64, step: i64, flags: u32);
    GOMP_parallel_loop_maybe_nonmonotonic_runtime(threads: u32, start: i64, end: i64, step: i64, flags: u32);
}

/// Arrives at a barrier, waits by `wait`, leaves it.
fn barrier<R>(wait: impl FnOnce() -> R) -> R {
    if teams::are_libomps() {
        return wait();
    }
    thread::with(thread::TracedThread::barrier);
    let result = wait();
    thread::synchronise();
    result
}

/// Waits for something other than a barrier of the team.
fn flush<R>(wait: impl FnOnce() -> R) -> R {
    let result = wait();
    if !teams::are_libomps() {
        thread::with(|t| {
            t.mark(&Mark::Flush {});
            t.synchronise();
        });
    }
    result
}

macro_rules! plain {
    ($how:ident: $($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => { $(
        /// Passes on and notes it.
        ///
        /// # Safety
        /// Called by compiler-generated code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) $(-> $ret)? {
            match next!($name: unsafe extern "C-unwind" fn($($ty),*) $(-> $ret)?) {
                // SAFETY: the caller's arguments.
                Some(f) => $how(|| unsafe { f($($arg),*) }),
                None => missing(stringify!($name)),
            }
        }
    )* };
}

plain! { barrier:
    GOMP_barrier();
    GOMP_barrier_cancel() -> bool;
    GOMP_loop_end();
    GOMP_loop_end_cancel() -> bool;
    GOMP_sections_end();
    GOMP_sections_end_cancel() -> bool;
    GOMP_single_copy_end(data: *mut c_void);
    GOMP_workshare_task_reduction_unregister(cancelled: bool);
}

plain! { flush:
    GOMP_taskwait();
    GOMP_taskgroup_end();
}

macro_rules! acquire {
    ($($acquire:ident $release:ident($($arg:ident: $ty:ty)?) $id:expr;)*) => { $(
        /// Acquires.
        ///
        /// # Safety
        /// Called by compiler-generated code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $acquire($($arg: $ty)?) {
            match next!($acquire: unsafe extern "C" fn($($ty)?)) {
                // SAFETY: the caller's arguments.
                Some(f) => unsafe { f($($arg)?) },
                None => missing(stringify!($acquire)),
            }
            if !teams::are_libomps() {
                locks::acquired($id);
            }
        }
        /// Releases.
        ///
        /// # Safety
        /// Called by compiler-generated code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $release($($arg: $ty)?) {
            if !teams::are_libomps() {
                locks::releases($id);
            }
            match next!($release: unsafe extern "C" fn($($ty)?)) {
                // SAFETY: the caller's arguments.
                Some(f) => unsafe { f($($arg)?) },
                None => missing(stringify!($release)),
            }
        }
    )* };
}

acquire! {
    GOMP_critical_start GOMP_critical_end() 1;
    GOMP_critical_name_start GOMP_critical_name_end(name: *mut *mut c_void) name as u64;
    GOMP_atomic_start GOMP_atomic_end() 2;
    GOMP_ordered_start GOMP_ordered_end() 3;
}

/// `single`: true in the thread that does it.
///
/// # Safety
/// Called by compiler-generated code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_single_start() -> bool {
    let Some(f) = next!(GOMP_single_start: unsafe extern "C" fn() -> bool) else {
        missing("GOMP_single_start")
    };
    // SAFETY: no arguments.
    let won = unsafe { f() };
    if won && !teams::are_libomps() {
        won_single();
    }
    won
}

/// `single copyprivate`: null in the thread that does it; the others wait here for its data.
///
/// # Safety
/// Called by compiler-generated code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_single_copy_start() -> *mut c_void {
    type Start = unsafe extern "C" fn() -> *mut c_void;
    let Some(f) = next!(GOMP_single_copy_start: Start) else { missing("GOMP_single_copy_start") };
    // SAFETY: no arguments.
    let data = unsafe { f() };
    if !teams::are_libomps() {
        if data.is_null() {
            won_single();
        } else {
            thread::with(|t| {
                t.barrier();
                t.synchronise();
            });
        }
    }
    data
}

fn won_single() {
    thread::with(|t| {
        if let Some(instance) = t.instance() {
            t.mark(&Mark::Single { instance });
        }
    });
}

/// Notes a piece of a dynamically scheduled loop; an empty one where there is none left. What comes
/// behind it passes the filter anew, so that a simulation may give the piece to another thread.
pub fn piece(first: u64, end: u64) {
    thread::with(|t| {
        t.mark(&Mark::LoopPiece { first, end });
        t.synchronise();
    });
}

macro_rules! pieces {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => { $(
        /// Gets a piece of a loop.
        ///
        /// # Safety
        /// Called by compiler-generated code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty,)* first: *mut i64, end: *mut i64) -> bool {
            let real = next!($name: unsafe extern "C" fn($($ty,)* *mut i64, *mut i64) -> bool);
            let Some(f) = real else { missing(stringify!($name)) };
            // SAFETY: the caller's arguments; the results are set when it returns true.
            unsafe {
                let got = f($($arg,)* first, end);
                if !teams::are_libomps() {
                    if got { piece(*first as u64, *end as u64) } else { piece(0, 0) }
                }
                got
            }
        }
    )* };
}

pieces! {
    GOMP_loop_dynamic_start(from: i64, to: i64, step: i64, chunk: i64);
    GOMP_loop_guided_start(from: i64, to: i64, step: i64, chunk: i64);
    GOMP_loop_nonmonotonic_dynamic_start(from: i64, to: i64, step: i64, chunk: i64);
    GOMP_loop_nonmonotonic_guided_start(from: i64, to: i64, step: i64, chunk: i64);
    GOMP_loop_runtime_start(from: i64, to: i64, step: i64);
    GOMP_loop_nonmonotonic_runtime_start(from: i64, to: i64, step: i64);
    GOMP_loop_maybe_nonmonotonic_runtime_start(from: i64, to: i64, step: i64);
    GOMP_loop_dynamic_next();
    GOMP_loop_guided_next();
    GOMP_loop_nonmonotonic_dynamic_next();
    GOMP_loop_nonmonotonic_guided_next();
    GOMP_loop_runtime_next();
    GOMP_loop_nonmonotonic_runtime_next();
    GOMP_loop_maybe_nonmonotonic_runtime_next();
    GOMP_loop_ull_dynamic_start(up: bool, from: u64, to: u64, step: u64, chunk: u64);
    GOMP_loop_ull_guided_start(up: bool, from: u64, to: u64, step: u64, chunk: u64);
    GOMP_loop_ull_nonmonotonic_dynamic_start(up: bool, from: u64, to: u64, step: u64, chunk: u64);
    GOMP_loop_ull_nonmonotonic_guided_start(up: bool, from: u64, to: u64, step: u64, chunk: u64);
    GOMP_loop_ull_runtime_start(up: bool, from: u64, to: u64, step: u64);
    GOMP_loop_ull_nonmonotonic_runtime_start(up: bool, from: u64, to: u64, step: u64);
    GOMP_loop_ull_maybe_nonmonotonic_runtime_start(up: bool, from: u64, to: u64, step: u64);
    GOMP_loop_ull_dynamic_next();
    GOMP_loop_ull_guided_next();
    GOMP_loop_ull_nonmonotonic_dynamic_next();
    GOMP_loop_ull_nonmonotonic_guided_next();
    GOMP_loop_ull_runtime_next();
    GOMP_loop_ull_nonmonotonic_runtime_next();
    GOMP_loop_ull_maybe_nonmonotonic_runtime_next();
}
