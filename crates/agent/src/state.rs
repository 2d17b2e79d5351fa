//! The process's only driver, and the rules by which front ends (the replaced functions) call it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};

use homenode_model::Ns;
use homenode_runtime::driver::{Clocks, Driver, DriverSettings, settings};
use homenode_runtime::nodes::Nodes;
use homenode_runtime::own_thread::{self, own_threads};
use homenode_runtime::regions::RegionKey;
use homenode_runtime::{moving, report, watch};
use homenode_wire::facts::Facts;
use homenode_wire::{Message, plan};

use crate::told::{self, Told};
use crate::{
    align, clib, cpp, interpose_loader, leave, loops, modules, mover, next, objects, raw_calls, slots,
    statics,
};

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
/// There is a driver, and this process is not a forked child.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// 0: not started. 1: starting. 2: started.
static STARTED: AtomicU8 = AtomicU8::new(0);
/// Identifies the thread that started the first region. Only its regions are watched. 0: no region
/// yet.
static TEAM_THREAD: AtomicUsize = AtomicUsize::new(0);
/// The policy needs homenode's own thread, and that thread has not started yet. It starts with the
/// first region.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// This run is recorded. A recorded program is watched even if it has no parallel region.
static RECORDED: AtomicBool = AtomicBool::new(false);
/// There is a plan, and the driver has not compared it with a team yet.
static PLANNED: AtomicBool = AtomicBool::new(false);
/// Number of regions that other threads started.
static OTHERS_REGIONS: AtomicUsize = AtomicUsize::new(0);
/// homenode's first internal error, with its place in the source.
static BROKEN: OnceLock<String> = OnceLock::new();
/// Id of the process that homenode started in. A forked child leaves no report.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// libomp reports its regions through OMPT.
static LIBOMP: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The thread is executing homenode. Its allocations are homenode's, not the program's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Number of regions that the thread has started and not ended yet.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// End of the thread's stack when it started the outermost of these regions.
    static BEGAN: Cell<usize> = const { Cell::new(0) };
}

/// Writes a line to standard error. Allocates, so signal handlers must not call it.
pub fn complain(text: &str) {
    let line = format!("homenode: {text}\n");
    // SAFETY: the buffer is the line. A failure is ignored: there is nowhere to report it.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Whether homenode arms pages in this process, or may do so once it has started. Threads that are
/// made now must then be able to take page faults.
pub fn may_arm() -> bool {
    static ASKED: AtomicU8 = AtomicU8::new(0);
    if STARTED.load(Ordering::Relaxed) == 2 {
        return running() && moving::mechanism() != moving::Mechanism::None;
    }
    if ASKED.load(Ordering::Relaxed) == 0 {
        // SAFETY: a C string. Another library's constructor calls this, on the loader's thread.
        let folder = unsafe { libc::getenv(c"HOMENODE_RUN_DIR".as_ptr()) };
        ASKED.store(if folder.is_null() { 1 } else { 2 }, Ordering::Relaxed);
    }
    ASKED.load(Ordering::Relaxed) == 2
}

/// Whether homenode is on: front ends report to the driver.
#[inline]
pub fn running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// Whether the calling thread is executing homenode.
#[inline]
pub fn inside() -> bool {
    INSIDE.get()
}

/// homenode's internal error as a phrase for a message.
fn broken() -> Option<String> {
    BROKEN.get().map(|what| format!("an error of homenode's own ({what})"))
}

/// Notes the place and text of a panic. The default hook would print to the program's standard
/// error.
fn note_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let place = panic.location().map_or_else(String::new, ToString::to_string);
    let _ = BROKEN.set(format!("{place}: {text}"));
}

/// Runs `f` as homenode. Restores `errno`, counts allocations as homenode's, and turns homenode off
/// if `f` panics. `None`: the thread was executing homenode already, or `f` panicked.
pub fn guarded<R>(f: impl FnOnce() -> R) -> Option<R> {
    if INSIDE.replace(true) {
        return None;
    }
    // SAFETY: this thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    let result = catch_unwind(AssertUnwindSafe(f));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    INSIDE.set(false);
    if result.is_err() {
        RUNNING.store(false, Ordering::Relaxed);
        complain(&format!("{}: it is off from here on; the program goes on", broken().unwrap_or_default()));
    }
    result.ok()
}

/// Runs `f` with the driver. Waits for the driver's lock. `None`: there is no driver, or the thread
/// is executing homenode already.
pub fn with<R>(f: impl FnOnce(&mut Driver) -> R) -> Option<R> {
    if !running() {
        return None;
    }
    guarded(|| {
        let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
        driver.as_mut().map(|driver| {
            told::tell_all(driver);
            f(driver)
        })
    })?
}

/// Reports `what` to the driver and never waits. If another thread holds the driver, the report is
/// kept, and the next caller delivers it.
pub fn tell(what: Told) {
    if !running() {
        return;
    }
    guarded(|| match DRIVER.try_lock() {
        Ok(mut driver) => {
            if let Some(driver) = driver.as_mut() {
                told::tell_all(driver);
                told::tell(driver, what);
            }
        }
        Err(TryLockError::Poisoned(_)) => {}
        Err(TryLockError::WouldBlock) => told::keep(what),
    });
}

/// Reads the settings and makes the driver, once. The library's constructor calls it, or libomp,
/// whichever comes first.
pub fn start() {
    if STARTED.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    guarded(|| {
        next::look_all();
        cpp::look_all();
        let folder = std::env::var_os(settings::RUN_DIR).filter(|f| !f.is_empty());
        let Some(settings) = folder.and_then(|f| DriverSettings::read(Path::new(&f))) else { return };
        if under_valgrind() {
            return complain(
                "it does nothing for this program: valgrind simulates the processor, and knows neither \
                 userfaultfd nor the instruction that reads a thread's node",
            );
        }
        if let Ok(settings) = &settings {
            PROCESS.store(std::process::id(), Ordering::Relaxed);
            // The launcher was not bound by OpenMP, as the program's first thread may be.
            Nodes::remember(settings.asked_cpus());
            // SAFETY: registers a function that lives as long as the library, which is never
            // unloaded.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            loops::start(settings);
            if settings.align
                && let Err(why) = align::start()
            {
                complain(&why);
            }
            if (loops::asked() || settings.align) && settings.machine.nodes() < 2 {
                // On one node no page can move. Only schedules and the alignment remain.
                std::panic::set_hook(Box::new(note_panic));
                return;
            }
        }
        // CPU time of all threads: some of the measurements below use two.
        let began = (Clocks::KERNEL.process)();
        match settings.and_then(make) {
            Ok(driver) => {
                *DRIVER.lock().unwrap_or_else(PoisonError::into_inner) = Some(driver);
                clib::find();
                raw_calls::look();
                slots::lead();
                if moving::mechanism() != moving::Mechanism::None {
                    moving::handler_stack::give();
                }
                leave::watch_first_thread();
                let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
                driver.iter_mut().for_each(|d| d.started_up(began));
                RUNNING.store(true, Ordering::Release);
            }
            Err(why) => complain(&format!("it does nothing for this program: {why}")),
        }
    });
    STARTED.store(2, Ordering::Release);
}

/// Whether valgrind runs this process: its own libraries are preloaded.
fn under_valgrind() -> bool {
    std::env::var_os("LD_PRELOAD").is_some_and(|list| list.to_string_lossy().contains("/vgpreload_"))
}

fn make(settings: DriverSettings) -> Result<Driver, String> {
    std::panic::set_hook(Box::new(note_panic));
    let plan = settings.plan.then(|| settings.folder.join(plan::FILE));
    let (mover, eyes) = mover::make(&settings)?;
    WATCHED.store(eyes.is_some(), Ordering::Relaxed);
    RECORDED.store(settings.record, Ordering::Relaxed);
    let mut driver = Driver::new(settings, mover, eyes, Clocks::KERNEL)?;
    if let Some(path) = plan {
        // The plan must be known before the first object.
        driver.follow(modules::plan(&driver, &path)?);
        PLANNED.store(driver.asks_for_team(), Ordering::Relaxed);
    }
    statics::add(&mut driver);
    if driver.records() {
        driver.record_modules(&modules::loaded());
    }
    Ok(driver)
}

/// Turns homenode off in a forked child: the child's memory is a copy of the parent's.
pub unsafe extern "C" fn in_child() {
    RUNNING.store(false, Ordering::Relaxed);
    loops::in_child();
}

/// Whether the caller is in the process that homenode started in. False in a child of `vfork`,
/// which shares the parent's memory.
pub fn is_own_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id()
}

/// Notes that libomp has accepted homenode as its tool.
pub fn with_libomp() {
    LIBOMP.store(true, Ordering::Relaxed);
}

/// Whether the calling thread's regions are watched. The first thread to ask becomes that thread.
fn is_team_thread() -> bool {
    // The address of a thread-local identifies the thread.
    let me = INSIDE.with(|i| std::ptr::from_ref(i).addr());
    match TEAM_THREAD.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(first) => first == me,
    }
}

/// The thread starts a team. `threads` returns the team's size, or 0 if it is unknown; it is called
/// only if a plan must be compared with the team.
pub fn region_begin(function: usize, caller: usize, threads: impl FnOnce() -> usize) {
    if !running() {
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
        if WATCHED.load(Ordering::Relaxed) {
            start_watching();
        }
        let threads = if PLANNED.load(Ordering::Relaxed) { threads() } else { 0 };
        let moves = with(|d| {
            files(d);
            if threads > 0 {
                d.team(threads);
                PLANNED.store(d.asks_for_team(), Ordering::Relaxed);
            }
            d.region_begin(RegionKey { function, caller });
            d.wants_mover()
        });
        if moves == Some(true) {
            start_moving();
        }
    } else {
        OTHERS_REGIONS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reports to the driver the static arrays of modules that were loaded or unloaded since the last
/// call.
#[inline]
pub fn files(driver: &mut Driver) {
    if interpose_loader::changed() {
        raw_calls::look();
        statics::look(driver);
    }
}

/// The program creates a thread. From its first one on, two threads may share memory, so a
/// recording begins to watch.
pub fn thread_begins() {
    if RECORDED.load(Ordering::Relaxed) && running() && !inside() && is_own_process() {
        start_watching();
    }
}

/// Starts homenode's own thread, if the policy or the recording needs one and it has not started.
#[cold]
fn start_watching() {
    if !WATCHED.swap(false, Ordering::Relaxed) {
        return;
    }
    let started = guarded(|| watch::thread::start(tick));
    if started != Some(true) {
        with(|d| d.note("nothing was watched: no thread could be made for it".into()));
    }
}

/// Starts the thread that moves pages while the team runs, unless it runs.
#[cold]
fn start_moving() {
    static RUNS: AtomicBool = AtomicBool::new(false);
    /// Marks of the program get the driver meanwhile.
    const PAUSE: Ns = Ns(500_000);
    if RUNS.swap(true, Ordering::Relaxed) {
        return;
    }
    let run = || {
        while with(Driver::move_beside).flatten().is_some_and(|rest| own_threads::sleep(rest.max(PAUSE))) {}
        RUNS.store(false, Ordering::Relaxed);
    };
    if guarded(|| own_thread::start("homenode-move", 256 << 10, run).is_ok()) != Some(true) {
        with(Driver::has_no_mover);
    }
}

/// One step of homenode's own thread. Returns the time until the next step; `None` ends the thread.
fn tick() -> Option<Ns> {
    let next = with(Driver::tick)?;
    keep_modules();
    next
}

/// Records the modules that were loaded since the recording began. This is not left to the
/// program's end, because a killed program records nothing there. Takes at most 1 % of the time.
fn keep_modules() {
    static DUE: AtomicU64 = AtomicU64::new(0);
    const SOONEST: Ns = Ns(1_000_000_000);
    let begin = (Clocks::KERNEL.wall)();
    if begin.0 < DUE.load(Ordering::Relaxed) || with(|d| d.records()) != Some(true) {
        return;
    }
    let cpu = (Clocks::KERNEL.thread)();
    // A thread that holds the loader's lock may wait for the driver, so this takes the two locks
    // one after the other.
    let loaded = guarded(modules::loaded).unwrap_or_default();
    let took = with(|d| {
        d.record_modules(&loaded);
        let took = (Clocks::KERNEL.thread)() - cpu;
        d.spent(took);
        took
    });
    let gap = took.unwrap_or_default().times(100).max(SOONEST);
    DUE.store(begin.0 + gap.0, Ordering::Relaxed);
}

/// Writes a message for the launcher. A rename makes it visible whole or not at all, even if the
/// program is killed meanwhile. Errors are ignored: the launcher may be gone.
fn leave<M: Message>(folder: &Path, name: &str, message: &M) {
    let new = folder.join(format!("new.{}", std::process::id()));
    match homenode_wire::encode(message) {
        Ok(bytes) => {
            if std::fs::write(&new, bytes).is_ok() {
                let _ = std::fs::rename(&new, folder.join(name));
            }
        }
        Err(why) => complain(&format!("nothing is left for the launcher: {why}")),
    }
}

/// The team has joined: the region ends.
pub fn region_end() {
    if !running() {
        return;
    }
    let depth = DEPTH.get();
    DEPTH.set(depth.saturating_sub(1));
    if depth == 1 && is_team_thread() {
        with(Driver::region_end);
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
    if running() && DEPTH.get() == 1 && is_team_thread() {
        let depth = BEGAN.get().wrapping_sub(stack_here());
        with(|d| d.barrier(caller, depth));
    }
}

/// Ends homenode at the program's end: disarms all memory, then leaves the report for the launcher.
fn finish() {
    if !RUNNING.swap(false, Ordering::AcqRel) {
        if BROKEN.get().is_some() && is_own_process() {
            guarded(report_of_an_error);
        } else if loops::is_on() && is_own_process() {
            guarded(report_of_loops);
        }
        return;
    }
    guarded(|| {
        let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut driver) = driver.take() else { return };
        told::tell_all(&mut driver);
        driver.end();
        let others = OTHERS_REGIONS.load(Ordering::Relaxed);
        if others > 0 {
            driver.note(format!("{others} regions that other threads started were not watched"));
        }
        if let Some(text) = objects::lost() {
            driver.note(text);
        }
        let loaded = modules::loaded();
        driver.record_modules(&loaded);
        driver.end_recording();
        let folder = &driver.settings().folder;
        let mut facts = report::facts(&driver, loaded);
        facts.schedule = loops::finish(leave);
        leave(folder, &Facts::file_name(facts.pid), &facts);
        // Signal handlers may still read the driver's memory.
        std::mem::forget(driver);
    });
}

/// Ends homenode early, with its report: the program is about to forbid itself system calls, and a
/// later one might kill it.
pub fn stop() {
    if running() && is_own_process() {
        finish();
        guarded(moving::stop);
    } else if loops::is_on() && is_own_process() {
        finish();
    }
}

/// Leaves the report of a process in which no page could move and homenode only handed out loops'
/// iterations.
fn report_of_loops() {
    if let (Some((folder, mut facts)), Some(dealt)) = (loops::facts_alone(), loops::finish(leave)) {
        facts.schedule = Some(dealt);
        facts.modules = modules::loaded();
        leave(&folder, &Facts::file_name(facts.pid), &facts);
    }
}

/// Leaves the report of an internal error that turned homenode off. The driver may be inconsistent,
/// so this does not use it.
fn report_of_an_error() {
    if let (Some(why), Some(folder)) = (broken(), std::env::var_os(settings::RUN_DIR)) {
        let facts = Facts::of_an_error(std::process::id(), &why);
        leave(folder.as_ref(), &Facts::file_name(facts.pid), &facts);
    }
}

extern "C" fn constructor() {
    start();
}

extern "C" fn destructor() {
    finish();
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
