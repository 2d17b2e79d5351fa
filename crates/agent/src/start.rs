//! homenode's start in the program.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use homenode_runtime::driver::{Clocks, Driver, DriverSettings, settings};
use homenode_runtime::moving;
use homenode_runtime::nodes::Nodes;
use homenode_wire::plan;

use crate::state::{self, complain};
use crate::{
    align, clib, cpp, finish, first_thread, helper_threads, leave, loops, modules, mover, next, raw_calls,
    regions, slots, statics,
};

/// 0: not started. 1: starting. 2: started.
static STARTED: AtomicU8 = AtomicU8::new(0);

/// Whether homenode arms pages in this process, or may do so once it has started. Threads that are
/// made now must then be able to take page faults.
pub fn may_arm() -> bool {
    static ASKED: AtomicU8 = AtomicU8::new(0);
    if STARTED.load(Ordering::Relaxed) == 2 {
        return state::running() && moving::mechanism() != moving::Mechanism::None;
    }
    if ASKED.load(Ordering::Relaxed) == 0 {
        // SAFETY: a C string. Another library's constructor calls this, on the loader's thread.
        let folder = unsafe { libc::getenv(c"HOMENODE_RUN_DIR".as_ptr()) };
        ASKED.store(if folder.is_null() { 1 } else { 2 }, Ordering::Relaxed);
    }
    ASKED.load(Ordering::Relaxed) == 2
}

/// Reads the settings and makes the driver, once. The library's constructor calls it, or libomp,
/// whichever comes first.
pub fn start() {
    if STARTED.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    state::guarded(|| {
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
            state::starts_here();
            // The launcher was not bound by OpenMP, as the program's first thread may be.
            Nodes::remember(settings.asked_cpus());
            // SAFETY: registers a function that lives as long as the library, which is never
            // unloaded.
            unsafe { libc::pthread_atfork(None, None, Some(finish::in_child)) };
            loops::start(settings);
            if settings.align
                && let Err(why) = align::start()
            {
                complain(&why);
            }
            if (loops::asked() || settings.align) && settings.machine.nodes() < 2 {
                // On one node no page can move. Only schedules and the alignment remain.
                state::note_panics();
                return;
            }
        }
        // CPU time of all threads: some of the measurements below use two.
        let began = (Clocks::KERNEL.process)();
        match settings.and_then(make) {
            Ok(driver) => {
                state::install(driver);
                clib::find();
                raw_calls::look();
                slots::lead();
                if moving::mechanism() != moving::Mechanism::None {
                    moving::handler_stack::give();
                }
                first_thread::at_its_end(leave::first_thread_ends);
                state::begin(began);
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
    state::note_panics();
    let plan = settings.plan.then(|| settings.folder.join(plan::FILE));
    let (mover, eyes) = mover::make(&settings)?;
    helper_threads::expect(eyes.is_some(), settings.record);
    let mut driver = Driver::new(settings, mover, eyes, Clocks::KERNEL)?;
    if let Some(path) = plan {
        // The plan must be known before the first object.
        driver.follow(modules::plan(&driver, &path)?);
        regions::expect_team(driver.asks_for_team());
    }
    statics::add(&mut driver);
    if driver.records() {
        driver.record_modules(&modules::loaded());
    }
    Ok(driver)
}

extern "C" fn constructor() {
    start();
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
