//! What a reader must know before the findings.

use serde::Serialize;

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A word for programs.
    pub kind: WarningKind,
    /// A sentence for people.
    pub text: String,
}

/// The kind of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// The recording does not cover the whole program.
    CutOff,
    /// One thread did the work.
    OneThread,
    /// Threads were not bound and were seen on several nodes.
    Unbound,
    /// One node alone is expected to be faster than all of them.
    OneNodeWins,
    /// The data fits the modelled caches.
    FitsCaches,
    /// Fewer rounds than a judgement needs.
    FewRounds,
    /// Most of the time is initialisation.
    Initialisation,
    /// The program waits for input and output.
    InputOutput,
    /// One thread works while the others wait.
    Serial,
    /// The program does not wait for memory.
    DoesNotWait,
    /// The caches of the machine and the recorder's filter do not fit: counts are approximate.
    Approximate,
    /// Variables have no names: no debug information.
    NoNames,
    /// The source files were changed after the program was built.
    SourceMoved,
}

impl Warning {
    pub(crate) fn new(kind: WarningKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}
