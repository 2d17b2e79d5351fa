//! libomp's loops: `__kmpc_dispatch_init_…` and `__kmpc_dispatch_next_…`, which stand behind the
//! names that `libhomenode_loops` exports. Teams come from the tools interface ([`crate::ompt`]).
//!
//! For a loop that homenode hands out, libomp gets an empty loop at the start. When homenode has no
//! more chunks for a thread, libomp is asked once: it has none either, and the thread is through
//! with the loop for libomp, too.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use homenode_schedule::Space;
use homenode_schedule::book::Promise;

use crate::callers::{self, Target};
use crate::forward::{call, missing, real};
use crate::loops::{self, HandOut, Known, Level, Next, Start, StartedLoop, Team};
use crate::loops_gomp::{Ascends, promise_of_set, set_schedule};
use crate::stub::{exported, front, stub};

/// The number of the first entry point here, behind those of [`crate::loops_gomp`].
pub const BASE: usize = 128;

/// The type of a loop's variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// 4 or 8.
    pub bytes: u8,
    /// Whether it has negative values.
    pub signed: bool,
}

impl Type {
    /// The value in a word whose upper bits may be anything.
    pub fn value(self, word: usize) -> i128 {
        match (self.bytes, self.signed) {
            (4, true) => i128::from(word as i32),
            (4, false) => i128::from(word as u32),
            (_, true) => i128::from(word as i64),
            (_, false) => i128::from(word as u64),
        }
    }

    /// A step has a sign, whatever the variable has.
    pub fn step(self, word: usize) -> i128 {
        Self { signed: true, ..self }.value(word)
    }

    /// Stores a value.
    ///
    /// # Safety
    /// The place is one for a value of the type.
    pub unsafe fn write(self, place: usize, value: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.bytes {
                4 => (place as *mut u32).write(value as u32),
                _ => (place as *mut u64).write(value),
            }
        }
    }

    /// The value at a place, as 64 bits.
    ///
    /// # Safety
    /// There is a value of the type at the place.
    pub unsafe fn read(self, place: usize) -> u64 {
        // SAFETY: the caller's promise.
        let word = unsafe {
            match self.bytes {
                4 => (place as *const u32).read() as usize,
                _ => (place as *const u64).read() as usize,
            }
        };
        self.value(word) as u64
    }
}

// enum sched_type of the interface between compilers and libomp
const DYNAMIC: u32 = 35;
const GUIDED: u32 = 36;
const RUNTIME: u32 = 37;
const AUTO: u32 = 38;
/// Modifiers of a schedule.
pub const MONOTONIC: u32 = 1 << 29;
/// As [`MONOTONIC`].
pub const NONMONOTONIC: u32 = 1 << 30;

/// Chunk size and promise of a schedule; `None`: homenode leaves it alone.
fn promise(schedule: u32, chunk: i128, set: impl FnOnce() -> Option<(u32, i32)>) -> Option<(u64, Promise)> {
    let ascends = match (schedule & MONOTONIC != 0, schedule & NONMONOTONIC != 0) {
        (_, true) => Ascends::No,
        (true, _) => Ascends::Yes,
        _ if schedule == RUNTIME => Ascends::Maybe,
        // Of old compilers; libomp's own hand-out ascends.
        _ => Ascends::Yes,
    };
    let monotonic = ascends == Ascends::Yes;
    let chunk = u64::try_from(chunk).unwrap_or(0).max(1);
    match schedule & !(MONOTONIC | NONMONOTONIC) {
        DYNAMIC => Some((chunk, Promise { uneven: false, monotonic })),
        GUIDED => Some((chunk, Promise { uneven: true, monotonic })),
        AUTO => Some((1, Promise { uneven: true, monotonic })),
        RUNTIME => promise_of_set(set()?, ascends),
        _ => None,
    }
}

fn target(caller: usize, entry: usize) -> Target {
    let name = NAMES.get(entry.wrapping_sub(BASE)).copied().unwrap_or_default();
    callers::target(caller, entry, name).unwrap_or_else(|| missing(name))
}

fn type_of(entry: usize) -> Type {
    TYPES.get(entry.wrapping_sub(BASE)).copied().unwrap_or(Type { bytes: 8, signed: true })
}

front! {
    /// `init(place, thread, schedule, lower, upper, step, chunk)`
    fn init(words, caller, entry) {
        let [place, thread, schedule, lower, upper, step, chunk, _] = words;
        let (function, of) = (real(target(caller, entry)), type_of(entry));
        if loops::asked() {
            // libomp's loops have no end of their own but the next one's start.
            loops::end_loop();
            let space = Space::including(of.value(lower), of.value(upper), of.step(step));
            let promise = promise(schedule as u32, of.step(chunk), || set_schedule(caller));
            let ask = space.zip(promise).map(|(space, (chunk, promise))| StartedLoop {
                site: caller,
                space,
                chunk,
                promise,
                including: true,
            });
            if ask.is_some_and(|ask| loops::start_loop(&ask) == Start::Dealt) {
                // SAFETY: an empty loop, as the program would start one.
                return unsafe { function(place, thread, DYNAMIC as usize, 1, 0, 1, 1, 0) };
            }
        }
        // SAFETY: the caller's arguments.
        unsafe { call(function, words) }
    }
}

front! {
    /// `next(place, thread, &last, &lower, &upper, &step)`
    fn next(words, caller, entry) {
        let [place, thread, last, lower, upper, step, ..] = words;
        let of = type_of(entry);
        let next = loops::next(HandOut::OneByOne);
        let is_watched = matches!(next, Next::Watched);
        // SAFETY: the caller's arguments and places.
        unsafe {
            if let Next::Run(space, run) = next {
                if last != 0 {
                    (last as *mut i32).write((run.end == space.count()).into());
                }
                of.write(lower, space.value(run.begin));
                of.write(upper, space.value(run.end - 1));
                if step != 0 {
                    of.write(step, space.parts().1 as u64);
                }
                return 1;
            }
            let function = real(target(caller, entry));
            if matches!(next, Next::End) {
                let mut nowhere = [0_u64; 4];
                let [last, lower, upper, step] = nowhere.each_mut().map(|w| std::ptr::from_mut(w).addr());
                function(place, thread, last, lower, upper, step, 0, 0);
                return 0;
            }
            let answer = call(function, words);
            if is_watched {
                let chunk = (answer as u32 != 0).then(|| (of.read(lower), of.read(upper)));
                loops::seen(chunk);
            }
            answer
        }
    }
}

/// Teams that not all threads have entered: by the word that libomp keeps of each for tools.
static TEAMS: Mutex<Vec<(usize, Arc<Team>, u32)>> = Mutex::new(Vec::new());

/// Where a thread was before it entered a team.
struct Before {
    outer: Level,
    before: *mut Before,
    /// Keeps the team.
    _team: Option<Arc<Team>>,
}

thread_local! {
    static BEFORE: Cell<*mut Before> = const { Cell::new(std::ptr::null_mut()) };
}

/// The calling thread enters a team of `threads` threads as thread `number`. `parallel` is the
/// address of the word that libomp keeps for the team. A later team may have the same address, when
/// all threads have entered this one.
pub fn enters(parallel: usize, threads: u32, number: u32) {
    let team = (parallel != 0 && threads > 1).then(|| {
        let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
        match teams.iter().position(|(p, ..)| *p == parallel) {
            Some(at) => {
                teams[at].2 -= 1;
                if teams[at].2 == 0 { teams.swap_remove(at).1 } else { Arc::clone(&teams[at].1) }
            }
            None => {
                let team = Arc::new(Team::new(Known::Told(threads)));
                teams.push((parallel, Arc::clone(&team), threads - 1));
                team
            }
        }
    });
    let level = team.as_ref().map_or(Level::NONE, |team| Level::numbered(Arc::as_ptr(team), number));
    let outer = loops::enter(level);
    let before = Box::new(Before { outer, before: BEFORE.get(), _team: team });
    BEFORE.set(Box::into_raw(before));
}

/// The thread leaves the team that it entered last.
pub fn leaves() {
    let before = BEFORE.get();
    if before.is_null() {
        return;
    }
    // SAFETY: from `enters`, once; it keeps the team.
    unsafe {
        let before = Box::from_raw(before);
        loops::leave(before.outer);
        BEFORE.set(before.before);
    }
}

macro_rules! entries {
    ($($how:ident($bytes:literal $signed:literal) $name:ident;)*) => {
        static TYPES: &[Type] = &[$(Type { bytes: $bytes, signed: $signed }),*];
        exported!(BASE, stub; $($how $name)*);
    };
}

entries! {
    init(4 true) homenode___kmpc_dispatch_init_4;
    init(4 false) homenode___kmpc_dispatch_init_4u;
    init(8 true) homenode___kmpc_dispatch_init_8;
    init(8 false) homenode___kmpc_dispatch_init_8u;
    next(4 true) homenode___kmpc_dispatch_next_4;
    next(4 false) homenode___kmpc_dispatch_next_4u;
    next(8 true) homenode___kmpc_dispatch_next_8;
    next(8 false) homenode___kmpc_dispatch_next_8u;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_known_by_libomps_numbers() {
        let of = |schedule, chunk| promise(schedule, chunk, || Some((2, 7)));
        let even = Promise::default();
        let ascending = Promise { monotonic: true, ..even };
        assert_eq!(of(NONMONOTONIC | DYNAMIC, 4), Some((4, even)));
        assert_eq!(of(DYNAMIC, 0), Some((1, ascending)));
        assert_eq!(of(MONOTONIC | GUIDED, 3), Some((3, Promise { uneven: true, ..ascending })));
        assert_eq!(of(RUNTIME, 1), Some((7, even)));
        assert_eq!(of(MONOTONIC | RUNTIME, 1), Some((7, ascending)));
        assert_eq!(of(NONMONOTONIC | AUTO, 9), Some((1, Promise { uneven: true, ..even })));
        // Static ones, ordered ones and what nobody knows yet.
        for other in [33, 34, 64 + 3, 160 + 3, 1000] {
            assert_eq!(of(other, 4), None, "{other}");
        }
    }

    #[test]
    fn values_are_those_of_the_loops_type() {
        let words = [usize::MAX, 0xffff_ffff, 0x1_0000_0005];
        let of = |bytes, signed| words.map(|w| Type { bytes, signed }.value(w));
        assert_eq!(of(4, true), [-1, -1, 5]);
        assert_eq!(of(4, false), [0xffff_ffff, 0xffff_ffff, 5]);
        assert_eq!(of(8, true), [-1, 0xffff_ffff, 0x1_0000_0005]);
        assert_eq!(of(8, false)[0], u64::MAX.into());
        assert_eq!(Type { bytes: 4, signed: false }.step(0xffff_fffe), -2);
    }
}
