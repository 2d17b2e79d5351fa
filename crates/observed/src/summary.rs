//! What all streams of a recording say together.

use homenode_dataset::Basis;
use homenode_wire::live::SourceAnswers;

/// What all streams of a recording say together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsSummary {
    /// Rows of `accesses`.
    pub seen_rows: u64,
    /// Number of reports of the source that somebody used a page.
    pub sightings: u64,
    /// Objects.
    pub objects: u64,
    /// Runs of pages that moved.
    pub migrations: u64,
    /// What tells, of the process that told most.
    pub source: String,
    /// What its answers are.
    pub says: SourceAnswers,
    /// Processes whose stream has no end: they were killed, or went on as another program.
    pub early: Vec<u32>,
    /// Touches that were lost for want of room.
    pub lost: u64,
    /// Memory of homenode for watching, and memory that was watched, in bytes.
    pub state: [u64; 2],
    /// CPU time of homenode in all processes, in nanoseconds.
    pub own_ns: u64,
    /// What cannot be read of the streams, a sentence each.
    pub unread: Vec<String>,
    /// Sentences for a person.
    pub notes: Vec<String>,
}

/// The basis of numbers with these answers.
pub const fn basis(says: SourceAnswers) -> Basis {
    match says {
        SourceAnswers::Sampled { one_in } if one_in > 0 => Basis::Sampled { one_in },
        _ => Basis::Presence,
    }
}
