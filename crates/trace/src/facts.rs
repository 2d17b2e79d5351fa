//! What is known of a recording after it was read.

use homenode_model::{ObjectId, ThreadId};

use crate::firsts::UnitFirstTouches;
use crate::space::{Birth, TracedObject};
use crate::step::ByteRange;

/// What is known of the recording after it was read.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Threads.
    pub threads: usize,
    /// Passed accesses.
    pub accesses: u64,
    /// Times a thread had to be let go because the recording was cut off.
    pub cut_off: u64,
    /// Threads whose log does not tell of their end.
    pub unfinished: u64,
    /// Logs without a record.
    pub empty: u64,
    /// Lines that bypass the recorder's filter.
    pub bypass: BypassRecord,
    /// Why the recording could not be read to its end.
    pub damage: Option<String>,
    /// Objects by id.
    pub objects: Vec<TracedObject>,
    /// Canonical ranges of the objects.
    pub ranges: Vec<(ByteRange, ObjectId)>,
    /// Allocations and static variables in order of birth; of many allocations the first.
    pub births: Vec<Birth>,
    /// The threads' stacks.
    pub stacks: Vec<(ThreadId, ByteRange)>,
    /// Program counter of each region.
    pub region_pcs: Vec<u64>,
    /// How the iterations are known; `None`: there are none.
    pub iterations: Option<IterationOrigin>,
    /// Who touched what first.
    pub firsts: UnitFirstTouches,
}

/// What the recorder says about lines that bypass its filter, because one thread writes and another
/// uses them between two barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BypassRecord {
    /// Lines.
    pub lines: u64,
    /// Accesses that passed the filter for this reason.
    pub accesses: u64,
    /// Threads that reached the recorder's cap, after which the lines were filtered again.
    pub capped: u64,
    /// Fences and task waits: synchronisation whose partner the recorder does not know.
    pub fences: u64,
}

/// How the iterations of a recording are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IterationOrigin {
    /// The program called `hn_iteration`.
    Told,
    /// They were found in the sequence of regions.
    Found,
}

impl IterationOrigin {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::Found => "found",
        }
    }
}
