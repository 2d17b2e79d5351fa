//! Recording a program: `homenode record`, and the recordings that `compare` makes for itself.
//!
//! | step | where |
//! |---|---|
//! | find the program, refuse what cannot be recorded | [`crate::program`] |
//! | the emulator, for programs that were not built to be recorded | [`emulator`] |
//! | make the directory | [`directory`] |
//! | run and wait | [`run`] |
//! | count, name, write down how it ended | [`finish`] |

pub mod directory;
pub mod emulator;
pub mod finish;
pub mod run;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use homenode_error::Result;
use homenode_log::recording::{Meta, RecordedEnd, Recording};
use homenode_task::Task;

use crate::{program, rank};
use directory::RecordingTarget;
use finish::RecordingContents;

/// Lines of the recorder's filter unless told otherwise: 4096 × 64 B.
pub const FILTER_LINES: u32 = 4096;

/// Where the program's standard output goes. Its standard error is homenode's, but for
/// [`OutputTarget::File`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputTarget {
    /// To homenode's standard output.
    Inherit,
    /// To homenode's standard error: standard output carries a result of homenode.
    Stderr,
    /// With the standard error, to the file [`run::OUTPUT`] in the recording.
    File,
}

/// Who sees the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRecorder {
    /// The program's own code: it was built with homenode's compilers.
    Instrumented,
    /// An emulator that runs the program as it is.
    Emulated,
}

impl AccessRecorder {
    /// The word that goes with every count.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Instrumented => "exact",
            Self::Emulated => "emulated",
        }
    }
}

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct RecordSpec {
    /// The program, as `execvp` takes it.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where the recording goes.
    pub target: RecordingTarget,
    /// Lines of the filter, a power of two; 0: every access is kept.
    pub filter_lines: u32,
    /// `OMP_NUM_THREADS`, unless the environment is to decide.
    pub threads: Option<u32>,
    /// Where its output goes.
    pub streams: OutputTarget,
    /// Who sees the accesses.
    pub way: AccessRecorder,
}

impl RecordSpec {
    /// The program's name and its arguments, for messages.
    pub fn command(&self) -> String {
        let name = std::path::Path::new(&self.program).file_name().unwrap_or(&self.program);
        let words = std::iter::once(name).chain(self.args.iter().map(OsString::as_os_str));
        words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }
}

/// A finished recording.
#[derive(Debug)]
pub struct Recorded {
    /// It.
    pub recording: Recording,
    /// How the program ended.
    pub status: ExitStatus,
    /// How long it took.
    pub elapsed: Duration,
    /// What is in it.
    pub summary: RecordingContents,
    /// What went wrong without being fatal, for a person.
    pub trouble: Vec<String>,
}

impl Recorded {
    /// The last line of what the program wrote to [`OutputTarget::File`].
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.recording.path.join(run::OUTPUT)).unwrap_or_default();
        text.lines()
            .rev()
            .find(|l| !l.trim().is_empty())
            .unwrap_or("(it wrote nothing)")
            .chars()
            .take(300)
            .collect()
    }

    /// Whether the recording covers the program from its start to its end.
    pub fn complete(&self) -> bool {
        self.why_incomplete().is_none()
    }

    /// Why the recording does not cover all of the program; `None` when it does.
    pub fn why_incomplete(&self) -> Option<String> {
        self.summary.why_incomplete(&self.recording)
    }
}

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

/// A path as a person can type it again.
pub fn shown(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "-_=+,./:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The name that a recording gets by default, after a program.
pub fn stem(program: &std::ffi::OsStr) -> PathBuf {
    let name = std::path::Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    let clean: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '-' })
        .take(80)
        .collect();
    PathBuf::from(clean.trim_start_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recordings_name_is_easy_to_type() {
        for (program, name) in [("./app", "app"), ("/a b/x y", "x-y"), ("-odd", "odd"), (".hidden", "hidden")]
        {
            assert_eq!(stem(program.as_ref()), PathBuf::from(name));
        }
    }

    #[test]
    fn paths_are_quoted_when_they_must_be() {
        assert_eq!(shown("a.hnrec".as_ref()), "a.hnrec");
        assert_eq!(shown("a b".as_ref()), "'a b'");
        assert_eq!(shown("it's".as_ref()), r"'it'\''s'");
    }
}
