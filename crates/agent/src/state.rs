//! The one driver of the process, and the rules under which front ends reach it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};

use homenode_model::Ns;
use homenode_runtime::driver::{Clocks, Driver, Settings, settings};
use homenode_runtime::regions::RegionKey;
use homenode_runtime::{moving, report, watch};
use homenode_wire::facts::Facts;
use homenode_wire::{Message, plan};

use crate::told::{self, Told};
use crate::{
    alloc, clib, cpp, interpose_loader, leave, loops, modules, mover, next, raw_calls, slots, statics,
};

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
/// There is a driver, and this is the process that it was made for.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// 0 before, 1 while, 2 after the start.
static STARTED: AtomicU8 = AtomicU8::new(0);
/// Its regions are the program's sequence of regions: the thread that started the first one.
static TEAM_THREAD: AtomicUsize = AtomicUsize::new(0);
/// A thread of homenode's own is to ask and look; it starts with the first region.
static WATCHED: AtomicBool = AtomicBool::new(false);
/// What is seen is for a recording: programs without parallel regions are watched, too.
static RECORDED: AtomicBool = AtomicBool::new(false);
/// There is a plan, and no team yet to compare it with.
static PLANNED: AtomicBool = AtomicBool::new(false);
/// Regions that another thread started.
static OTHERS_REGIONS: AtomicUsize = AtomicUsize::new(0);
/// The first error of homenode's own, with its place in the source.
static BROKEN: OnceLock<String> = OnceLock::new();
/// The process that homenode was started in: a forked child leaves no report.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// libomp tells of its regions.
static LIBOMP: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The thread is in homenode: what it allocates is homenode's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Regions that the thread has started and that have not ended.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Where its stack ended when it started the outermost of them.
    static BEGAN: Cell<usize> = const { Cell::new(0) };
}

/// Says something on the standard error. Allocates; not for handlers.
pub fn complain(text: &str) {
    let line = format!("homenode: {text}\n");
    // SAFETY: writes the line; nobody can be told that it fails.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Whether homenode may come to take pages away from threads that are made now: it does, or it is
/// yet to start.
pub fn may_arm() -> bool {
    static ASKED: AtomicU8 = AtomicU8::new(0);
    if STARTED.load(Ordering::Relaxed) == 2 {
        return running() && moving::mechanism() != moving::Mechanism::None;
    }
    if ASKED.load(Ordering::Relaxed) == 0 {
        // SAFETY: a C string; another library's constructor asks, or the loader's thread.
        let folder = unsafe { libc::getenv(c"HOMENODE_RUN_DIR".as_ptr()) };
        ASKED.store(if folder.is_null() { 1 } else { 2 }, Ordering::Relaxed);
    }
    ASKED.load(Ordering::Relaxed) == 2
}

/// Whether front ends have something to tell.
#[inline]
pub fn running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// Whether the thread is in homenode.
#[inline]
pub fn inside() -> bool {
    INSIDE.get()
}

/// What went wrong, as a person can pass it on.
fn broken() -> Option<String> {
    BROKEN.get().map(|what| format!("an error of homenode's own ({what})"))
}

/// Notes the place of a panic. Its own words would go to the program's standard error.
fn note_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let place = panic.location().map_or_else(String::new, ToString::to_string);
    let _ = BROKEN.set(format!("{place}: {text}"));
}

/// Runs `f` as homenode: `errno` is kept, allocations are not the program's, and a panic turns
/// homenode off.
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

/// Does something with the driver; `None` when there is none, or the thread is in homenode already.
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

/// Tells the driver; if somebody has it, later: never waits.
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

/// Reads the settings and makes the driver, once. Called by the constructor, or by libomp if that
/// is earlier.
pub fn start() {
    if STARTED.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    guarded(|| {
        next::look_all();
        cpp::look_all();
        let folder = std::env::var_os(settings::RUN_DIR).filter(|f| !f.is_empty());
        let Some(settings) = folder.and_then(|f| Settings::read(Path::new(&f))) else { return };
        if let Ok(settings) = &settings {
            PROCESS.store(std::process::id(), Ordering::Relaxed);
            // SAFETY: registers a function that lives as long as the library, which is never
            // unloaded.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            loops::start(settings);
            if loops::asked() && settings.machine.nodes() < 2 {
                // Nothing can move; the program's loops are all that there is to do.
                std::panic::set_hook(Box::new(note_panic));
                return;
            }
        }
        // Of all threads: some of what is measured here takes two.
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

fn make(settings: Settings) -> Result<Driver, String> {
    std::panic::set_hook(Box::new(note_panic));
    let plan = settings.plan.then(|| settings.folder.join(plan::FILE));
    let (mover, eyes) = mover::make(&settings)?;
    WATCHED.store(eyes.is_some(), Ordering::Relaxed);
    RECORDED.store(settings.record, Ordering::Relaxed);
    let mut driver = Driver::new(settings, mover, eyes, Clocks::KERNEL)?;
    if let Some(path) = plan {
        // Before any object is told of.
        driver.follow(modules::plan(&driver, &path)?);
        PLANNED.store(driver.asks_for_team(), Ordering::Relaxed);
    }
    statics::add(&mut driver);
    if driver.records() {
        driver.record_modules(&modules::loaded());
    }
    Ok(driver)
}

/// In a forked child there is no homenode: its memory is the parent's.
pub unsafe extern "C" fn in_child() {
    RUNNING.store(false, Ordering::Relaxed);
    loops::in_child();
}

/// Whether the caller is of the process that homenode was made for, not of a child that shares its
/// memory.
pub fn is_own_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id()
}

/// libomp has a tool: us.
pub fn with_libomp() {
    LIBOMP.store(true, Ordering::Relaxed);
}

/// Whether the calling thread's regions are the sequence that is watched.
fn is_team_thread() -> bool {
    // Any address that is the thread's own and does not move.
    let me = INSIDE.with(|i| std::ptr::from_ref(i).addr());
    match TEAM_THREAD.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(first) => first == me,
    }
}

/// The thread starts a team. `threads` tells of how many, if a plan is to be compared with it; 0:
/// that is not known.
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
        with(|d| {
            files(d);
            if threads > 0 {
                d.team(threads);
                PLANNED.store(d.asks_for_team(), Ordering::Relaxed);
            }
            d.region_begin(RegionKey { function, caller });
        });
    } else {
        OTHERS_REGIONS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Has the driver told what files have brought and taken away since it was last asked.
#[inline]
pub fn files(driver: &mut Driver) {
    if interpose_loader::changed() {
        raw_calls::look();
        statics::look(driver);
    }
}

/// The program makes a thread: from its first one on somebody may share memory with somebody.
pub fn thread_begins() {
    if RECORDED.load(Ordering::Relaxed) && running() && !inside() && is_own_process() {
        start_watching();
    }
}

/// The first region begins: from now on there is something to see.
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

/// What homenode's own thread does from time to time.
fn tick() -> Option<Ns> {
    let next = with(Driver::tick)?;
    keep_modules();
    next
}

/// Tells a recording of files that were loaded since it began: a program that is killed tells
/// nothing at its end. The look takes at most one part in a hundred of the time.
fn keep_modules() {
    static DUE: AtomicU64 = AtomicU64::new(0);
    const SOONEST: Ns = Ns(1_000_000_000);
    let begin = (Clocks::KERNEL.wall)();
    if begin.0 < DUE.load(Ordering::Relaxed) || with(|d| d.records()) != Some(true) {
        return;
    }
    let cpu = (Clocks::KERNEL.thread)();
    // Who has the loader's lock may wait for the driver: one after the other.
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

/// Leaves a message for the launcher, whole or not at all: the program may be killed in the middle
/// of it. A launcher that is gone takes none.
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

/// The team has joined.
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

/// Where the stack of the calling thread ends, but for a distance that is the same in each call
/// from one place of homenode's.
#[inline(never)]
fn stack_here() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}

/// The thread leaves a barrier.
pub fn barrier(caller: usize) {
    // Workers' barriers are the same ones: only the team's first thread tells.
    if running() && DEPTH.get() == 1 && is_team_thread() {
        let depth = BEGAN.get().wrapping_sub(stack_here());
        with(|d| d.barrier(caller, depth));
    }
}

/// The program ends: everything in place, then the report.
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
        if let Some(text) = alloc::lost() {
            driver.note(text);
        }
        let loaded = modules::loaded();
        driver.record_modules(&loaded);
        driver.end_recording();
        let folder = &driver.settings().folder;
        let mut facts = report::facts(&driver, loaded);
        facts.schedule = loops::finish(leave);
        leave(folder, &Facts::file_name(facts.pid), &facts);
        // Its memory may hold what handlers still look at.
        std::mem::forget(driver);
    });
}

/// The program is about to forbid itself system calls, perhaps with death: everything in place, the
/// report, and nothing any more.
pub fn stop() {
    if running() && is_own_process() {
        finish();
        guarded(moving::stop);
    } else if loops::is_on() && is_own_process() {
        finish();
    }
}

/// Nothing could move, and homenode has handed out iterations all the same.
fn report_of_loops() {
    if let (Some((folder, mut facts)), Some(dealt)) = (loops::facts_alone(), loops::finish(leave)) {
        facts.schedule = Some(dealt);
        facts.modules = modules::loaded();
        leave(&folder, &Facts::file_name(facts.pid), &facts);
    }
}

/// Homenode ended before the program did. The driver is as the error left it: it is not asked any
/// more.
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
