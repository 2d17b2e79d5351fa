//! homenode's own threads in the program: one watches, the other moves pages beside the team.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use homenode_model::Ns;
use homenode_runtime::driver::{Clocks, Driver};
use homenode_runtime::own_thread::{self, own_threads};
use homenode_runtime::watch;

use crate::{modules, state};

/// The policy needs the thread that watches, and that thread has not started yet. It starts with
/// the first region.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// This run is recorded. A recorded program is watched even if it has no parallel region.
static RECORDED: AtomicBool = AtomicBool::new(false);

/// Says whether the policy needs the thread that watches, and whether this run is recorded.
pub fn expect(watched: bool, recorded: bool) {
    WATCHED.store(watched, Ordering::Relaxed);
    RECORDED.store(recorded, Ordering::Relaxed);
}

/// The program creates a thread. From its first one on, two threads may share memory, so a
/// recording begins to watch.
pub fn thread_begins() {
    if RECORDED.load(Ordering::Relaxed) && state::running() && !state::inside() && state::is_own_process() {
        start_watching();
    }
}

/// Starts the thread that watches, if the policy or the recording needs it and it has not started.
#[inline]
pub fn watch() {
    if WATCHED.load(Ordering::Relaxed) {
        start_watching();
    }
}

#[cold]
fn start_watching() {
    if !WATCHED.swap(false, Ordering::Relaxed) {
        return;
    }
    let started = state::guarded(|| watch::thread::start(tick));
    if started != Some(true) {
        state::with(|d| d.note("nothing was watched: no thread could be made for it".into()));
    }
}

/// Starts the thread that moves pages while the team runs, unless it runs.
#[cold]
pub fn start_moving() {
    static RUNS: AtomicBool = AtomicBool::new(false);
    /// Marks of the program get the driver meanwhile.
    const PAUSE: Ns = Ns(500_000);
    if RUNS.swap(true, Ordering::Relaxed) {
        return;
    }
    let run = || {
        while state::with(Driver::move_beside)
            .flatten()
            .is_some_and(|rest| own_threads::sleep(rest.max(PAUSE)))
        {}
        RUNS.store(false, Ordering::Relaxed);
    };
    if state::guarded(|| own_thread::start("homenode-move", 256 << 10, run).is_ok()) != Some(true) {
        state::with(Driver::has_no_mover);
    }
}

/// One step of the thread that watches. Returns the time until the next step; `None` ends the
/// thread.
fn tick() -> Option<Ns> {
    let next = state::with(Driver::tick)?;
    keep_modules();
    next
}

/// Records the modules that were loaded since the recording began. This is not left to the
/// program's end, because a killed program records nothing there. Takes at most 1 % of the time.
fn keep_modules() {
    static DUE: AtomicU64 = AtomicU64::new(0);
    const SOONEST: Ns = Ns(1_000_000_000);
    let begin = (Clocks::KERNEL.wall)();
    if begin.0 < DUE.load(Ordering::Relaxed) || state::with(|d| d.records()) != Some(true) {
        return;
    }
    let cpu = (Clocks::KERNEL.thread)();
    // A thread that holds the loader's lock may wait for the driver, so this takes the two locks
    // one after the other.
    let loaded = state::guarded(modules::loaded).unwrap_or_default();
    let took = state::with(|d| {
        d.record_modules(&loaded);
        let took = (Clocks::KERNEL.thread)() - cpu;
        d.spent(took);
        took
    });
    let gap = took.unwrap_or_default().times(100).max(SOONEST);
    DUE.store(begin.0 + gap.0, Ordering::Relaxed);
}
