//! Front ends of libgomp, which has no tools interface. They interpose the entry points that start
//! teams, and the barriers. The program calls all other functions of libgomp directly. Each front
//! end passes its call on to the copy of libgomp that the calling object would have reached without
//! homenode ([`crate::callers`]).

use std::cell::Cell;
use std::ffi::CStr;

use crate::forward::{call, missing, real};
use crate::loops_gomp::{self, Ascends, Named};
use crate::stub::front;
use crate::{callers, loops, regions};

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

/// The functions above, as types that `sym` accepts.
const _: [Forward; 6] = [team, start, end, barrier, cancellable, unregister];

fn target(caller: usize, entry: usize) -> callers::Target {
    callers::target(caller, entry, NAMES[entry]).unwrap_or_else(|| missing(NAMES[entry]))
}

/// What is known of a call that starts a team or ends one.
struct Call {
    function: usize,
    /// Of those that start a team the number of threads, of which the lower half counts; 0: as many
    /// as the program has set.
    third: usize,
    caller: usize,
    entry: usize,
}

impl Call {
    fn begins(&self) {
        regions::begin(self.function, self.caller, || self.threads());
    }

    #[cold]
    fn threads(&self) -> usize {
        // Teams of teams: each is one thread at first.
        if self.entry == Entry::GOMP_teams_reg as usize {
            return 0;
        }
        match self.third as u32 {
            0 => callers::resolve(self.caller, c"omp_get_max_threads").map_or(0, |f| {
                // SAFETY: the function of that name, of the copy that the call goes to; it has no
                // arguments.
                let f = unsafe { std::mem::transmute::<usize, extern "C" fn() -> i32>(f) };
                usize::try_from(f()).unwrap_or(0)
            }),
            n => n as usize,
        }
    }
}

macro_rules! forward {
    ($(#[$doc:meta])* $name:ident($call:ident, $result:ident) $before:block $after:block) => {
        front! {
            $(#[$doc])*
            fn $name(words, caller, entry) {
                let target = target(caller, entry);
                let $call = Call { function: words[0], third: words[2], caller, entry };
                if !target.libomp $before
                // SAFETY: the caller's arguments.
                let $result = unsafe { call(real(target), words) };
                if !target.libomp $after
                $result
            }
        }
    };
}

/// The loop that a team begins with, by the entry point that starts the team: its schedule, and
/// whether chunks ascend.
fn first_loop(entry: usize) -> Option<(Named, Ascends)> {
    const FIRST: [(Entry, Named, Ascends); 7] = [
        (Entry::GOMP_parallel_loop_dynamic, Named::Dynamic, Ascends::Yes),
        (Entry::GOMP_parallel_loop_guided, Named::Guided, Ascends::Yes),
        (Entry::GOMP_parallel_loop_runtime, Named::Runtime, Ascends::Yes),
        (Entry::GOMP_parallel_loop_nonmonotonic_dynamic, Named::Dynamic, Ascends::No),
        (Entry::GOMP_parallel_loop_nonmonotonic_guided, Named::Guided, Ascends::No),
        (Entry::GOMP_parallel_loop_nonmonotonic_runtime, Named::Runtime, Ascends::No),
        (Entry::GOMP_parallel_loop_maybe_nonmonotonic_runtime, Named::Runtime, Ascends::Maybe),
    ];
    FIRST.into_iter().find(|(e, ..)| *e as usize == entry).map(|(_, named, ascends)| (named, ascends))
}

front! {
    /// Runs a team from its start to its end.
    fn team(words, caller, entry) {
        let [a, b, c, d, e, f, g, h] = words;
        let target = target(caller, entry);
        if target.libomp || !loops::asked() {
            // SAFETY: the caller's arguments.
            return unsafe { team_as_it_is(a, b, c, d, e, f, g, h, caller, entry) };
        }
        let call = Call { function: a, third: c, caller, entry };
        call.begins();
        let first = first_loop(entry)
            .and_then(|(named, ascends)| loops_gomp::first_loop(named, ascends, [d, e, f, g], caller));
        // SAFETY: the caller's arguments.
        let result = unsafe { loops_gomp::run(real(target), words, caller, first) };
        regions::end();
        result
    }
}

forward! {
    /// Runs a team from its start to its end, and does not look at its loops.
    team_as_it_is(call, result) { call.begins(); } { regions::end(); }
}
forward! {
    /// Starts a team whose end is another call.
    start(call, result) { call.begins(); loops::foreign(true); } {}
}
forward! {
    /// Ends the team of an earlier call.
    end(_call, result) {} { loops::foreign(false); regions::end(); }
}

thread_local! {
    /// The thread waits in a barrier of libgomp's name, which libomp has as well.
    static WAITING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the barrier that libomp tells of will be told by its front end here: libomp takes those
/// of libgomp's names for its own.
pub fn waiting() -> bool {
    WAITING.get()
}

macro_rules! waits {
    ($(#[$doc:meta])* $name:ident($first:ident, $result:ident) $cancelled:expr) => {
        front! {
            $(#[$doc])*
            fn $name(words, caller, entry) {
                let target = target(caller, entry);
                let $first = words[0];
                if loops::asked() {
                    loops::end_loop();
                }
                // While it waits the thread may run tasks, which may wait themselves.
                let before = WAITING.replace(target.libomp);
                // SAFETY: the caller's arguments.
                let $result = unsafe { call(real(target), words) };
                WAITING.set(before);
                if !$cancelled {
                    regions::barrier(caller);
                }
                $result
            }
        }
    };
}

waits! {
    /// Waits for the team.
    barrier(_first, result) false
}
waits! {
    /// Waits for the team unless that is cancelled, which is what it answers: a `bool`, of which
    /// the lowest byte counts.
    cancellable(_first, result) result as u8 != 0
}
waits! {
    /// Ends what has reductions over tasks, and waits for the team unless that is cancelled: a
    /// `bool`, as above.
    unregister(first, result) first as u8 != 0
}

macro_rules! entries {
    ($($how:ident $name:ident)*) => {
        /// Names of the entry points, by number.
        static NAMES: &[&CStr] = &[$(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(s) => s,
            Err(_) => panic!("a symbol has no zero byte"),
        }),*];
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        enum Entry { $($name),* }
        $(
            /// Passes its arguments on, with its return address and number.
            ///
            /// # Safety
            /// Called by compiler-generated code.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C-unwind" fn $name() {
                crate::stub::stub!($how, Entry::$name as usize)
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
    cancellable GOMP_barrier_cancel
    cancellable GOMP_loop_end_cancel
    cancellable GOMP_sections_end_cancel
    unregister GOMP_workshare_task_reduction_unregister
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSymbol};
    use std::process::Command;

    /// What looks like the start or the end of a team or like a barrier by its name, and why it is
    /// left alone.
    const ALONE: &[(&str, &str)] = &[
        (
            "GOMP_teams",
            "says how many teams there are on a device; on the host each is one thread until GOMP_parallel",
        ),
        ("GOMP_teams4", "the same, once for each team"),
        ("GOMP_loop_end_nowait", "nobody waits"),
        ("GOMP_sections_end_nowait", "nobody waits"),
        (
            "GOMP_single_copy_start",
            "who comes first does not wait: the GOMP_barrier that follows is everybody's",
        ),
        ("GOMP_single_copy_end", "as its start"),
        ("GOMP_taskgroup_reduction_unregister", "waits for tasks, not for the team"),
    ];

    fn is_of_a_team(name: &str) -> bool {
        let begins = ["GOMP_parallel", "GOMP_teams", "GOMP_barrier", "GOMP_single_copy"];
        let ends = ["GOMP_loop", "GOMP_sections", "GOMP_scope"];
        begins.iter().any(|b| name.starts_with(b))
            || ends.iter().any(|b| name.starts_with(b)) && name.contains("_end")
            || name.ends_with("_unregister") && name.contains("reduction")
    }

    fn installed() -> Option<Vec<String>> {
        let asked = Command::new("gcc").arg("-print-file-name=libgomp.so.1").output().ok()?;
        let bytes = std::fs::read(String::from_utf8(asked.stdout).ok()?.trim()).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let defined = file.dynamic_symbols().filter(ObjectSymbol::is_definition);
        Some(defined.filter_map(|s| s.name().ok().map(str::to_owned)).collect())
    }

    #[test]
    fn the_installed_libgomp_has_no_team_that_is_not_known() {
        let Some(installed) = installed() else { return println!("skipped: there is no libgomp") };
        let ours: Vec<&str> = NAMES.iter().map(|n| n.to_str().unwrap()).collect();
        let unknown = |name: &&String| {
            is_of_a_team(name) && !ours.contains(&name.as_str()) && !ALONE.iter().any(|(n, _)| n == *name)
        };
        assert_eq!(installed.iter().filter(unknown).collect::<Vec<_>>(), [""; 0]);
        // Since GCC 9; a misspelt one would never be called.
        let strange: Vec<_> = ours.iter().filter(|n| !installed.iter().any(|i| i == **n)).collect();
        assert_eq!(strange, [&""; 0]);
        assert!(ours.iter().all(|n| is_of_a_team(n)), "{ours:?}");
    }
}
