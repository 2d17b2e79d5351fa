//! What to record, and how.

use std::ffi::OsString;

use super::directory::RecordingTarget;

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
    /// With the standard error, to the file [`OUTPUT`](super::directory::OUTPUT) in the recording.
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
