//! Beginning and end of the recorder in a program: what the environment asks for.

use std::path::PathBuf;

use homenode_log::Mark;
use homenode_recorder::state::{self, DEFAULT_FILTER_LINES, Options};

use crate::{emulator, modules, thread, tls};

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

/// Whether there is something to record.
fn open() -> bool {
    let emulated = std::env::var_os(emulator::DIRECTORY);
    let Some(path) =
        emulated.as_ref().map_or_else(|| std::env::var_os("HOMENODE_TRACE_DIR"), |p| Some(p.clone()))
    else {
        return false;
    };
    let options = Options {
        directory: PathBuf::from(path),
        filter_lines: number("HOMENODE_TRACE_FILTER").unwrap_or(DEFAULT_FILTER_LINES),
        count_only: number("HOMENODE_TRACE_COUNT_ONLY") == Some(1),
        claim: true,
    };
    match state::open(&options) {
        Ok(()) => true,
        // What the emulated program starts runs without the emulator.
        Err(_) if emulated.is_some() => false,
        Err(why) => {
            state::complain(&why);
            false
        }
    }
}

extern "C" fn in_child() {
    state::stay_off();
    // SAFETY: the child's only thread, its own block.
    unsafe { (*tls::tls()).forget() };
}

/// Writes out what all threads have, also those that still run.
pub extern "C" fn stop() {
    if state::recording() && state::own_process() {
        let _ = std::panic::catch_unwind(|| {
            modules::write_new();
            emulator::end();
            state::stop();
        });
    }
}
