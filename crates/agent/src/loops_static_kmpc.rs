//! clang's static loops: `__kmpc_for_static_init_…`, which stands behind the names that
//! `libhomenode_loops` exports.
//!
//! The call tells a thread the lower and the upper bound of its iterations, and whether the last
//! iteration is among them. libomp is asked in any case: tools and checks of its own see the loop.
//! Where homenode exchanges the ranges of threads, it writes the bounds of the other range. GCC
//! computes the bounds of static loops in the program, where nobody sees them.

use std::ffi::CStr;

use homenode_schedule::{Run, Space};

use crate::callers;
use crate::forward::missing;
use crate::loops;
use crate::loops_kmpc::{MONOTONIC, NONMONOTONIC, Type};
use crate::stub::{exported, stub_of_nine};

/// The number of the first entry point here, behind those of [`crate::loops_kmpc`].
pub const BASE: usize = 144;

/// `kmp_sch_static`: one range a thread.
const STATIC: u32 = 34;
/// `KMP_IDENT_WORK_SECTIONS`, `KMP_IDENT_WORK_DISTRIBUTE`: these calls are for something else than
/// the iterations of a loop for the threads of a team.
const OTHER_WORK: u32 = 0x400 | 0x800;

type Real =
    unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize, usize, usize) -> usize;

/// Whether the ranges of a call may be exchanged: its place in the source (`ident_t`) and schedule.
///
/// # Safety
/// `place` is null or an `ident_t`.
unsafe fn is_ours(place: usize, schedule: u32) -> bool {
    // SAFETY: the caller's promise; the flags are the second word.
    let flags = if place == 0 { 0 } else { unsafe { (place as *const u32).add(1).read() } };
    schedule & !(MONOTONIC | NONMONOTONIC) == STATIC && flags & OTHER_WORK == 0
}

/// The iterations that bounds tell. Threads without any get a lower bound beyond the upper one.
fn run_of(space: &Space, of: Type, lower: u64, upper: u64) -> Run {
    let (_, step, _) = space.parts();
    let (low, high) = (of.value(lower as usize), of.value(upper as usize));
    let is_empty = if step > 0 { low > high } else { low < high };
    match is_empty {
        true => Run { begin: 0, end: 0 },
        false => Run { begin: space.index(lower), end: space.index(upper).saturating_add(1) },
    }
}

/// `init(place, thread, schedule, &last, &lower, &upper, &stride, step, chunk)`
#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn init(
    place: usize,
    thread: usize,
    schedule: usize,
    last: usize,
    lower: usize,
    upper: usize,
    stride: usize,
    step: usize,
    chunk: usize,
    caller: usize,
    entry: usize,
) -> usize {
    let name = NAMES.get(entry.wrapping_sub(BASE)).copied().unwrap_or_default();
    let target = callers::target(caller, entry, name).unwrap_or_else(|| missing(name));
    // SAFETY: the loader's address of the function of that name.
    let function = unsafe { std::mem::transmute::<usize, Real>(target.function) };
    // SAFETY: the caller's arguments.
    let theirs = || unsafe { function(place, thread, schedule, last, lower, upper, stride, step, chunk) };
    // SAFETY: the caller's arguments.
    if !loops::static_asked() || lower == 0 || upper == 0 || !unsafe { is_ours(place, schedule as u32) } {
        return theirs();
    }
    let of = TYPES.get(entry.wrapping_sub(BASE)).copied().unwrap_or(Type { bytes: 8, signed: true });
    // SAFETY: the caller's places.
    let (first, bound) = unsafe { (of.read(lower), of.read(upper)) };
    let step = of.step(step);
    let Some(space) = Space::including(of.value(first as usize), of.value(bound as usize), step) else {
        return theirs();
    };
    let mut answer = 0;
    let range = loops::start_static(caller, space, || {
        answer = theirs();
        // SAFETY: the caller's places.
        unsafe { run_of(&space, of, of.read(lower), of.read(upper)) }
    });
    let Some(run) = range else { return answer };
    // A thread without iterations gets what libomp gives such a thread.
    let (from, to) = match run.is_empty() {
        true => (bound.wrapping_add(step as u64), bound),
        false => (space.value(run.begin), space.value(run.end - 1)),
    };
    // SAFETY: the caller's places.
    unsafe {
        of.write(lower, from);
        of.write(upper, to);
        if last != 0 {
            (last as *mut i32).write((!run.is_empty() && run.end == space.count()).into());
        }
    }
    answer
}

macro_rules! entries {
    ($($how:ident($bytes:literal $signed:literal) $name:ident;)*) => {
        static TYPES: &[Type] = &[$(Type { bytes: $bytes, signed: $signed }),*];
        exported!(BASE, stub_of_nine; $($how $name)*);
    };
}

entries! {
    init(4 true) homenode___kmpc_for_static_init_4;
    init(4 false) homenode___kmpc_for_static_init_4u;
    init(8 true) homenode___kmpc_for_static_init_8;
    init(8 false) homenode___kmpc_for_static_init_8u;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_tell_iterations() {
        let of = Type { bytes: 4, signed: true };
        let up = Space::including(10, 30, 5).unwrap();
        let run = |space: &Space, low: i32, high: i32| run_of(space, of, low as u64, high as u64);
        assert_eq!(run(&up, 15, 24), Run { begin: 1, end: 3 });
        assert_eq!(run(&up, 35, 30), Run { begin: 0, end: 0 });
        let down = Space::including(5, -5, -1).unwrap();
        assert_eq!(run(&down, 2, -5), Run { begin: 3, end: 11 });
        assert!(run(&down, -6, -5).is_empty());
    }

    #[test]
    fn sections_and_chunked_loops_are_left_alone() {
        let ours = |flags: u32, schedule: u32| {
            let place = [0_u32, flags];
            // SAFETY: it has the two words that are read.
            unsafe { is_ours(place.as_ptr().addr(), schedule) }
        };
        assert!(ours(0x202, 34) && ours(2, 34) && ours(0x202, 34 | MONOTONIC));
        assert!(!ours(0x402, 34) && !ours(0x802, 34) && !ours(0x202, 33) && !ours(0x202, 35));
        // SAFETY: null is allowed.
        assert!(unsafe { is_ours(0, 34) });
    }
}
