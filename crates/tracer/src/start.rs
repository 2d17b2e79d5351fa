//! Start and end of the recorder in a program, by its environment.

use std::path::{Path, PathBuf};

use homenode_log::Mark;
use homenode_recorder::state::{self, DEFAULT_FILTER_LINES, RecorderOptions};

use crate::{emulator, modules, process, thread, tls};

/// Runs when the library is loaded, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs when the process exits, after the program's own destructors.
#[used]
#[unsafe(link_section = ".fini_array")]
static STOP: extern "C" fn() = stop;

/// Reads the environment and starts the initial thread; idempotent.
pub extern "C" fn start() {
    if state::decided() {
        return;
    }
    tls::publish_offset();
    if std::panic::catch_unwind(open).unwrap_or(false) {
        // SAFETY: the handler only stores to atomics and this thread's block.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        emulator::begin();
        thread::start();
        thread::mark(|| Mark::Heap { address: modules::heap_start() });
        modules::write_new();
    } else {
        state::stay_off();
    }
}

fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.parse().ok()
}

/// Opens the recording. Returns whether there is something to record.
fn open() -> bool {
    let emulated = std::env::var_os(emulator::DIRECTORY);
    let marks = std::env::var_os(emulator::MARKS).and_then(|all| own_folder(Path::new(&all)));
    let given = || std::env::var_os("HOMENODE_TRACE_DIR").map(PathBuf::from);
    let Some(directory) = marks.clone().or_else(|| emulated.clone().map(PathBuf::from)).or_else(given) else {
        return false;
    };
    let options = RecorderOptions {
        directory,
        filter_lines: if marks.is_some() {
            1
        } else {
            number("HOMENODE_TRACE_FILTER").unwrap_or(DEFAULT_FILTER_LINES)
        },
        count_only: number("HOMENODE_TRACE_COUNT_ONLY") == Some(1),
        claim: true,
    };
    match state::open(&options) {
        Ok(()) => true,
        // Programs that the emulated program starts run without the emulator.
        Err(_) if emulated.is_some() || marks.is_some() => false,
        Err(why) => {
            state::complain(&why);
            false
        }
    }
}

/// Programs that one process may execute one after the other.
const PROGRAMS: u32 = 64;

/// This process's own folder, `PROCESS.N`: the process's number, and the index of the program in
/// it.
fn own_folder(all: &Path) -> Option<PathBuf> {
    let folder =
        (0..PROGRAMS).map(|n| all.join(format!("{}.{n}", std::process::id()))).find_map(|folder| {
            match std::fs::create_dir(&folder) {
                Ok(()) => Some(Some(folder)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => None,
                Err(_) => Some(None),
            }
        })??;
    std::fs::create_dir(folder.join("threads")).ok()?;
    Some(folder)
}

extern "C" fn in_child() {
    state::stay_off();
    // SAFETY: the child's only thread, its own block.
    unsafe { (*tls::tls()).forget() };
}

/// Writes out what all threads have, including those that still run.
pub extern "C" fn stop() {
    if state::recording() && state::own_process() {
        let _ = std::panic::catch_unwind(|| {
            modules::write_new();
            if emulator::marks_alone() {
                thread::mark(process::clock);
            }
            emulator::end();
            homenode_recorder::stop();
        });
    }
}

/// `_exit` of instrumented code: no destructor runs after it.
///
/// # Safety
/// As `_exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap__exit(status: i32) -> ! {
    stop();
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}
