//! homenode's end in the program: at the program's end, before it, or in a forked child.

use std::path::Path;

use homenode_runtime::driver::settings;
use homenode_runtime::{moving, report};
use homenode_wire::Message;
use homenode_wire::facts::Facts;

use crate::{loops, modules, objects, regions, state};

/// Turns homenode off in a forked child: the child's memory is a copy of the parent's.
pub unsafe extern "C" fn in_child() {
    state::turn_off();
    loops::in_child();
}

/// Writes a message for the launcher. A rename makes it visible whole or not at all, even if the
/// program is killed meanwhile. Errors are ignored: the launcher may be gone.
fn leave_message<M: Message>(folder: &Path, name: &str, message: &M) {
    let new = folder.join(format!("new.{}", std::process::id()));
    match homenode_wire::encode(message) {
        Ok(bytes) => {
            if std::fs::write(&new, bytes).is_ok() {
                let _ = std::fs::rename(&new, folder.join(name));
            }
        }
        Err(why) => state::complain(&format!("nothing is left for the launcher: {why}")),
    }
}

/// Disarms all memory, then leaves the report for the launcher.
fn finish() {
    if !state::turn_off() {
        if state::is_broken() && state::is_own_process() {
            state::guarded(report_of_an_error);
        } else if loops::is_on() && state::is_own_process() {
            state::guarded(report_of_loops);
        }
        return;
    }
    state::take(|mut driver| {
        driver.end();
        let others = regions::of_other_threads();
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
        facts.schedule = loops::finish(leave_message);
        leave_message(folder, &Facts::file_name(facts.pid), &facts);
        // Signal handlers may still read the driver's memory.
        std::mem::forget(driver);
    });
}

/// Ends homenode early, with its report: the program is about to forbid itself system calls, and a
/// later one might kill it.
pub fn stop() {
    if state::running() && state::is_own_process() {
        finish();
        state::guarded(moving::stop);
    } else if loops::is_on() && state::is_own_process() {
        finish();
    }
}

/// Leaves the report of a process in which no page could move and homenode only handed out loops'
/// iterations.
fn report_of_loops() {
    if let (Some((folder, mut facts)), Some(dealt)) = (loops::facts_alone(), loops::finish(leave_message)) {
        facts.schedule = Some(dealt);
        facts.modules = modules::loaded();
        leave_message(&folder, &Facts::file_name(facts.pid), &facts);
    }
}

/// Leaves the report of an internal error that turned homenode off. The driver may be inconsistent,
/// so this does not use it.
fn report_of_an_error() {
    if let (Some(why), Some(folder)) = (state::broken(), std::env::var_os(settings::RUN_DIR)) {
        let facts = Facts::of_an_error(std::process::id(), &why);
        leave_message(folder.as_ref(), &Facts::file_name(facts.pid), &facts);
    }
}

extern "C" fn destructor() {
    finish();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
