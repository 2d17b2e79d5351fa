//! Recording a program: `homenode record`, and the recordings that `compare` makes for itself.
//!
//! | step | where |
//! |---|---|
//! | find the program, refuse what cannot be recorded | [`crate::program`] |
//! | the emulator, for programs that were not built to be recorded | [`emulator`] |
//! | make the directory | [`directory`] |
//! | run and wait | [`run`] |
//! | count, name, write down how it ended | [`finish`] |
//! | tell a person | [`report`] |

pub mod directory;
pub mod emulator;
pub mod finish;
mod names;
mod recorded;
pub mod run;
mod spec;

use std::collections::BTreeMap;

use homenode_error::Result;
use homenode_log::recording::{Meta, RecordedEnd};
use homenode_task::Task;

pub use names::{shown, stem};
pub use recorded::{Recorded, report};
pub use spec::{AccessRecorder, FILTER_LINES, OutputTarget, RecordSpec};

use crate::{program, rank};

/// Runs a program and records it.
///
/// # Errors
/// The program cannot be recorded or started, or the recording cannot be made. What goes wrong
/// after the program has run is in [`Recorded::trouble`].
pub fn record(spec: &RecordSpec, task: &dyn Task) -> Result<Recorded> {
    let path = program::find(&spec.program)?;
    let emulator = match spec.way {
        AccessRecorder::Instrumented => {
            program::refuse_unrecordable(&path)?;
            None
        }
        AccessRecorder::Emulated => Some(emulator::Emulator::find(&path, task)?),
    };
    let environment = run::environment(spec);
    let mut recording = directory::make(&spec.target, meta(spec, &environment))?;
    let ran = match run::run(spec, &path, emulator.as_ref(), &environment, &recording.path, task) {
        Ok(ran) => ran,
        Err(error) => {
            // Nothing was recorded, and what is empty only confuses.
            let _ = directory::remove(&recording.path);
            return Err(error);
        }
    };
    let ended = RecordedEnd {
        status: ran.status.code(),
        signal: std::os::unix::process::ExitStatusExt::signal(&ran.status),
        elapsed_ns: u64::try_from(ran.elapsed.as_nanos()).unwrap_or(u64::MAX),
        io_wait_ns: ran.io_wait.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX)),
    };
    let illegal = ended.signal == Some(rustix::process::Signal::ILL.as_raw());
    let (summary, mut trouble) = finish::finish(&mut recording, ended);
    if illegal && emulator.is_some() {
        trouble.push(format!("QEMU met an instruction that it does not know: {}", emulator::WITHOUT_AVX512));
    }
    Ok(Recorded { recording, status: ran.status, elapsed: ran.elapsed, summary, trouble })
}

fn meta(spec: &RecordSpec, environment: &BTreeMap<String, String>) -> Meta {
    let words = std::iter::once(&spec.program).chain(&spec.args);
    Meta {
        format: homenode_log::VERSION,
        homenode: env!("CARGO_PKG_VERSION").into(),
        kind: spec.way.kind().into(),
        command: words.map(|w| w.to_string_lossy().into_owned()).collect(),
        environment: environment.clone(),
        filter_lines: spec.filter_lines,
        rank: rank::member(),
        ended: None,
    }
}
