//! libgomp's loops. The functions here stand behind the names that `libhomenode_loops` exports;
//! teams come from [`crate::gomp`], which leads the team's function through [`run`].
//!
//! | call | what becomes of it in a loop that homenode hands out |
//! |---|---|
//! | `GOMP_loop_…_start` | libgomp gets an empty loop, the program its first chunk |
//! | `GOMP_loop_…_next` | the program gets its next chunk (a [prepared](crate::loops_prepared) one first); libgomp is not asked |
//! | `GOMP_loop_end…` | goes to libgomp |
//! | `GOMP_parallel_loop_…` | libgomp gets the whole loop, and no thread asks it for a chunk |
//!
//! Loops with `ordered` and those that `GOMP_loop_start` begins (reductions over tasks, scans,
//! conditional `lastprivate`) have other names, and stay libgomp's.

use std::ffi::CStr;

use homenode_schedule::Space;
use homenode_schedule::book::Promise;

use crate::callers::{self, Target};
use crate::forward::{Real, call, missing, real};
use crate::loops::{self, HandOut, Known, Level, Next, Numbers, Start, StartedLoop, Team};
use crate::loops_prepared::stub_of_prepared;
use crate::stub::{exported, front, stub};

/// The number of the first entry point here, behind those of [`crate::gomp`].
const BASE: usize = 64;
/// Numbers of functions that are only called.
const THREAD: usize = 252;
const THREADS: usize = 253;
const SCHEDULE: usize = 254;

/// A schedule by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// `dynamic`.
    Dynamic,
    /// `guided`.
    Guided,
    /// What the program has set.
    Runtime,
}

/// Whether the program is promised that each thread's chunks ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ascends {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// As the program has set.
    Maybe,
}

/// What an entry point does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Starts a loop over signed or unsigned values.
    Start { unsigned: bool, named: Named, ascends: Ascends },
    /// Asks for the next chunk.
    Next,
    /// Ends a loop without waiting.
    End,
}

fn target(caller: usize, entry: usize) -> Target {
    let name = NAMES.get(entry.wrapping_sub(BASE)).copied().unwrap_or_default();
    callers::target(caller, entry, name).unwrap_or_else(|| missing(name))
}

/// A function of the caller's run-time that has no arguments and answers with a number.
fn number(caller: usize, entry: usize, name: &CStr) -> Option<extern "C" fn() -> i32> {
    let target = callers::target(caller, entry, name)?;
    // SAFETY: the run-time's function of that name, which has this type.
    Some(unsafe { std::mem::transmute::<usize, extern "C" fn() -> i32>(target.function) })
}

/// What a program has set for `schedule(runtime)` loops: kind (`omp_sched_t`) and chunk size.
pub fn set_schedule(caller: usize) -> Option<(u32, i32)> {
    let target = callers::target(caller, SCHEDULE, c"omp_get_schedule")?;
    let (mut kind, mut chunk) = (0_u32, 0_i32);
    // SAFETY: the run-time's function of that name, which has this type.
    unsafe {
        let f = std::mem::transmute::<usize, extern "C" fn(*mut u32, *mut i32)>(target.function);
        f(&raw mut kind, &raw mut chunk);
    }
    Some((kind, chunk))
}

// omp_sched_t
const DYNAMIC: u32 = 2;
const GUIDED: u32 = 3;
const AUTO: u32 = 4;
const MONOTONIC: u32 = 1 << 31;

/// Chunk size and promise of what a program has set; `None`: it is static, whose hand-out programs
/// rely on.
pub fn promise_of_set((kind, chunk): (u32, i32), ascends: Ascends) -> Option<(u64, Promise)> {
    let monotonic = match ascends {
        Ascends::Yes => true,
        Ascends::No => false,
        Ascends::Maybe => kind & MONOTONIC != 0,
    };
    let uneven = match kind & !MONOTONIC {
        DYNAMIC => false,
        GUIDED | AUTO => true,
        _ => return None,
    };
    Some((u64::try_from(chunk).unwrap_or(0).max(1), Promise { uneven, monotonic }))
}

fn promise(caller: usize, named: Named, ascends: Ascends, chunk: usize) -> Option<(u64, Promise)> {
    let given = u64::try_from(chunk as i64).unwrap_or(0).max(1);
    let monotonic = ascends == Ascends::Yes;
    match named {
        Named::Dynamic => Some((given, Promise { uneven: false, monotonic })),
        Named::Guided => Some((given, Promise { uneven: true, monotonic })),
        Named::Runtime => promise_of_set(set_schedule(caller)?, ascends),
    }
}

/// A team's function with its argument, and what homenode keeps of the team while it lives.
struct Led {
    function: usize,
    data: usize,
    team: Team,
    /// The loop that the team begins with.
    first: Option<StartedLoop>,
}

/// A thread of a team runs the team's function.
unsafe extern "C-unwind" fn led(led: *const Led) {
    // SAFETY: `run` keeps it until the team has ended; the function is the program's.
    unsafe {
        let first = (*led).first.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let outer = loops::enter(Level::of(&raw const (*led).team, first));
        let function = std::mem::transmute::<usize, unsafe extern "C-unwind" fn(usize)>((*led).function);
        function((*led).data);
        loops::leave(outer);
    }
}

/// The loop that a team begins with, as the arguments behind the number of threads have it.
pub fn first_loop(
    named: Named,
    ascends: Ascends,
    [start, end, step, chunk]: [usize; 4],
    caller: usize,
) -> Option<StartedLoop> {
    let space = Space::excluding(signed(start), signed(end), signed(step))?;
    let (chunk, promise) = promise(caller, named, ascends, chunk)?;
    Some(StartedLoop { site: caller, space, chunk, promise, including: false })
}

/// Runs a team: `args` are those of the call, function and data first.
///
/// # Safety
/// The arguments of a call of libgomp's function `run` by `caller`.
pub unsafe fn run(function: Real, args: [usize; 8], caller: usize, first: Option<StartedLoop>) -> usize {
    let [f, data, c, d, e, g, h, i] = args;
    let thread = number(caller, THREAD, c"omp_get_thread_num");
    let threads = number(caller, THREADS, c"omp_get_num_threads");
    // SAFETY: the caller's arguments; what the team's threads are given lives until all of them
    // have ended.
    unsafe {
        let (Some(thread), Some(threads)) = (thread, threads) else {
            return function(f, data, c, d, e, g, h, i);
        };
        let team = Team::new(Known::Asked(Numbers { thread, threads }));
        let all = Led { function: f, data, team, first };
        function(led as *const () as usize, (&raw const all).addr(), c, d, e, g, h, i)
    }
}

fn signed(word: usize) -> i128 {
    i128::from(word as i64)
}

/// A loop over unsigned values: upwards by a number, or downwards by its complement.
fn unsigned(up: usize, start: usize, end: usize, step: usize) -> Option<Space> {
    let wide = |word: usize| i128::from(word as u64);
    let step = if up as u8 != 0 { wide(step) } else { -wide(step.wrapping_neg()) };
    Space::excluding(wide(start), wide(end), step)
}

/// Hands the thread its next chunk.
///
/// # Safety
/// The places are the caller's of `GOMP_loop_…_next`.
#[inline]
unsafe fn hand(next: Next, from: usize, to: usize) -> Option<usize> {
    match next {
        Next::Run(space, run) => {
            // SAFETY: the caller's places for two words.
            unsafe {
                (from as *mut u64).write(space.value(run.begin));
                (to as *mut u64).write(space.bound(run.end));
            }
            Some(1)
        }
        Next::End => Some(0),
        Next::Theirs | Next::Watched => None,
    }
}

/// What libgomp has written for the thread.
///
/// # Safety
/// As [`hand`], when libgomp has answered.
unsafe fn seen(answer: usize, from: usize, to: usize) {
    // SAFETY: libgomp has written both where it has answered "true": a `bool`, of which the lowest
    // byte counts.
    let chunk =
        (answer as u8 != 0).then(|| unsafe { ((from as *const u64).read(), (to as *const u64).read()) });
    loops::seen(chunk);
}

front! {
    fn start(words, caller, entry) {
        let [a, b, c, d, e, f, g, _] = words;
        let target = target(caller, entry);
        let function = real(target);
        // SAFETY: the caller's arguments.
        let theirs = || unsafe { call(function, words) };
        let does = DOES.get(entry.wrapping_sub(BASE)).copied();
        let Some(Does::Start { unsigned: is_unsigned, named, ascends }) = does else { return theirs() };
        if target.libomp || !loops::asked() {
            return theirs();
        }
        let (start, end, step, rest) = if is_unsigned { (b, c, d, [e, f, g]) } else { (a, b, c, [d, e, f]) };
        // A schedule that the program has set brings no chunk size along.
        let [chunk, from, to] = if named == Named::Runtime { [0, rest[0], rest[1]] } else { rest };
        let space = match is_unsigned {
            true => unsigned(a, start, end, step),
            false => Space::excluding(signed(start), signed(end), signed(step)),
        };
        let ask = space.zip(promise(caller, named, ascends, chunk)).map(|(space, (chunk, promise))| StartedLoop {
            site: caller,
            space,
            chunk,
            promise,
            including: false,
        });
        match ask.map_or(Start::Theirs, |ask| loops::start_loop(&ask)) {
            Start::Theirs => theirs(),
            Start::Watched => {
                let answer = theirs();
                // SAFETY: libgomp has answered.
                unsafe { seen(answer, from, to) };
                answer
            }
            Start::Dealt => {
                let mut nowhere = [0_u64; 2];
                let [x, y] = nowhere.each_mut().map(|word| std::ptr::from_mut(word).addr());
                // SAFETY: an empty loop, as the program would start one.
                unsafe {
                    match (is_unsigned, named) {
                        (false, Named::Runtime) => function(0, 0, 1, x, y, 0, 0, 0),
                        (false, _) => function(0, 0, 1, 1, x, y, 0, 0),
                        (true, Named::Runtime) => function(1, 0, 0, 1, x, y, 0, 0),
                        (true, _) => function(1, 0, 0, 1, 1, x, y, 0),
                    };
                    hand(loops::next(HandOut::Prepared), from, to).unwrap_or(0)
                }
            }
        }
    }
}

front! {
    fn next(words, caller, entry) {
        let [from, to, ..] = words;
        let next = loops::next(HandOut::Prepared);
        let is_watched = matches!(next, Next::Watched);
        // SAFETY: the caller's arguments.
        unsafe {
            if let Some(answer) = hand(next, from, to) {
                return answer;
            }
            let answer = call(real(target(caller, entry)), words);
            if is_watched {
                seen(answer, from, to);
            }
            answer
        }
    }
}

front! {
    fn end(words, caller, entry) {
        loops::end_loop();
        // SAFETY: the caller's arguments.
        unsafe { call(real(target(caller, entry)), words) }
    }
}

/// [`stub_of_prepared!`] for functions that ask for the next chunk.
macro_rules! loop_stub {
    (next, $entry:expr) => {
        stub_of_prepared!(next, $entry)
    };
    ($how:ident, $entry:expr) => {
        stub!($how, $entry)
    };
}

macro_rules! does {
    (start $unsigned:literal $named:ident $ascends:ident) => {
        Does::Start { unsigned: $unsigned, named: Named::$named, ascends: Ascends::$ascends }
    };
    (next) => {
        Does::Next
    };
    (end) => {
        Does::End
    };
}

macro_rules! entries {
    ($($how:ident ($($kind:tt)*) $name:ident;)*) => {
        static DOES: &[Does] = &[$(does!($how $($kind)*)),*];
        exported!(BASE, loop_stub; $($how $name)*);
    };
}

entries! {
    start(false Dynamic Yes) homenode_GOMP_loop_dynamic_start;
    start(false Guided Yes) homenode_GOMP_loop_guided_start;
    start(false Runtime Yes) homenode_GOMP_loop_runtime_start;
    start(false Dynamic No) homenode_GOMP_loop_nonmonotonic_dynamic_start;
    start(false Guided No) homenode_GOMP_loop_nonmonotonic_guided_start;
    start(false Runtime No) homenode_GOMP_loop_nonmonotonic_runtime_start;
    start(false Runtime Maybe) homenode_GOMP_loop_maybe_nonmonotonic_runtime_start;
    start(true Dynamic Yes) homenode_GOMP_loop_ull_dynamic_start;
    start(true Guided Yes) homenode_GOMP_loop_ull_guided_start;
    start(true Runtime Yes) homenode_GOMP_loop_ull_runtime_start;
    start(true Dynamic No) homenode_GOMP_loop_ull_nonmonotonic_dynamic_start;
    start(true Guided No) homenode_GOMP_loop_ull_nonmonotonic_guided_start;
    start(true Runtime No) homenode_GOMP_loop_ull_nonmonotonic_runtime_start;
    start(true Runtime Maybe) homenode_GOMP_loop_ull_maybe_nonmonotonic_runtime_start;
    next() homenode_GOMP_loop_dynamic_next;
    next() homenode_GOMP_loop_guided_next;
    next() homenode_GOMP_loop_runtime_next;
    next() homenode_GOMP_loop_nonmonotonic_dynamic_next;
    next() homenode_GOMP_loop_nonmonotonic_guided_next;
    next() homenode_GOMP_loop_nonmonotonic_runtime_next;
    next() homenode_GOMP_loop_maybe_nonmonotonic_runtime_next;
    next() homenode_GOMP_loop_ull_dynamic_next;
    next() homenode_GOMP_loop_ull_guided_next;
    next() homenode_GOMP_loop_ull_runtime_next;
    next() homenode_GOMP_loop_ull_nonmonotonic_dynamic_next;
    next() homenode_GOMP_loop_ull_nonmonotonic_guided_next;
    next() homenode_GOMP_loop_ull_nonmonotonic_runtime_next;
    next() homenode_GOMP_loop_ull_maybe_nonmonotonic_runtime_next;
    end() homenode_GOMP_loop_end_nowait;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_says_what_is_promised() {
        let of = |kind, chunk, ascends| promise_of_set((kind, chunk), ascends);
        assert_eq!(of(1, 4, Ascends::Maybe), None);
        assert_eq!(of(MONOTONIC | 1, 4, Ascends::Maybe), None);
        let even = Promise::default();
        assert_eq!(of(DYNAMIC, 4, Ascends::Maybe), Some((4, even)));
        assert_eq!(of(DYNAMIC, 0, Ascends::No), Some((1, even)));
        let ascending = Promise { monotonic: true, ..even };
        assert_eq!(of(MONOTONIC | DYNAMIC, 4, Ascends::Maybe), Some((4, ascending)));
        assert_eq!(of(DYNAMIC, 4, Ascends::Yes), Some((4, ascending)));
        assert_eq!(of(AUTO, -1, Ascends::Maybe), Some((1, Promise { uneven: true, ..even })));
    }

    #[test]
    fn unsigned_loops_run_both_ways() {
        let values = |space: Space| (0..space.count()).map(|i| space.value(i)).collect::<Vec<_>>();
        assert_eq!(values(unsigned(1, 3, 10, 4).unwrap()), [3, 7]);
        assert_eq!(values(unsigned(0, 10, 3, 4_usize.wrapping_neg()).unwrap()), [10, 6]);
        // Only the lowest byte of a `bool` counts.
        assert_eq!(unsigned(0xff00, 10, 3, usize::MAX).unwrap().count(), 7);
        assert_eq!(unsigned(1, 0, usize::MAX, 1).unwrap().count(), u64::MAX);
    }

    #[test]
    fn every_name_is_one_of_libgomps_or_of_this_table() {
        assert_eq!((NAMES.len(), NAMES[0]), (DOES.len(), c"GOMP_loop_dynamic_start"));
        assert!(BASE + NAMES.len() < crate::loops_kmpc::BASE);
    }
}
