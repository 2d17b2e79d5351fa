//! Parallel regions and barriers, as the front ends of OpenMP's run-times report them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use homenode_runtime::driver::Driver;
use homenode_runtime::moving;
use homenode_runtime::regions::RegionKey;

use crate::{helper_threads, interpose_loader, state};

/// Identifies the thread that started the first region. Only its regions are watched. 0: no region
/// yet.
static TEAM_THREAD: AtomicUsize = AtomicUsize::new(0);
/// There is a plan, and the driver has not compared it with a team yet.
static PLANNED: AtomicBool = AtomicBool::new(false);
/// Number of regions that other threads started.
static OTHERS_REGIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Number of regions that the thread has started and not ended yet.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// End of the thread's stack when it started the outermost of these regions.
    static BEGAN: Cell<usize> = const { Cell::new(0) };
}

/// Says whether the driver waits for a team, to compare the plan with it.
pub fn expect_team(asks: bool) {
    PLANNED.store(asks, Ordering::Relaxed);
}

/// Number of regions that threads other than the first one's started. They were not watched.
pub fn of_other_threads() -> usize {
    OTHERS_REGIONS.load(Ordering::Relaxed)
}

/// Whether the calling thread's regions are watched. The first thread to ask becomes that thread.
fn is_team_thread() -> bool {
    // The address of a thread-local identifies the thread.
    let me = DEPTH.with(|depth| std::ptr::from_ref(depth).addr());
    match TEAM_THREAD.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(first) => first == me,
    }
}

/// The thread starts a team. `threads` returns the team's size, or 0 if it is unknown; it is called
/// only if a plan must be compared with the team.
pub fn begin(function: usize, caller: usize, threads: impl FnOnce() -> usize) {
    if !state::running() {
        return;
    }
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    if depth > 0 {
        return;
    }
    BEGAN.set(stack_here());
    moving::give_up_left();
    if is_team_thread() {
        helper_threads::watch();
        let threads = if PLANNED.load(Ordering::Relaxed) { threads() } else { 0 };
        let moves = state::with(|d| {
            interpose_loader::report(d);
            if threads > 0 {
                d.team(threads);
                PLANNED.store(d.asks_for_team(), Ordering::Relaxed);
            }
            d.region_begin(RegionKey { function, caller });
            d.wants_mover()
        });
        if moves == Some(true) {
            helper_threads::start_moving();
        }
    } else {
        OTHERS_REGIONS.fetch_add(1, Ordering::Relaxed);
    }
}

/// The team has joined: the region ends.
pub fn end() {
    if !state::running() {
        return;
    }
    let depth = DEPTH.get();
    DEPTH.set(depth.saturating_sub(1));
    if depth == 1 && is_team_thread() {
        state::with(Driver::region_end);
    }
}

/// Address near the end of the calling thread's stack. The distance to the end is the same in each
/// call from one place in homenode.
#[inline(never)]
fn stack_here() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}

/// The thread leaves a barrier.
pub fn barrier(caller: usize) {
    // The workers leave the same barrier, so only the team's first thread reports it.
    if state::running() && DEPTH.get() == 1 && is_team_thread() {
        let depth = BEGAN.get().wrapping_sub(stack_here());
        state::with(|d| d.barrier(caller, depth));
    }
}
