//! A recording as a whole: its logs, opened, and what is known of it once they have been read.

use std::path::PathBuf;

use homenode_log::LogError;
use homenode_log::file::LogReader;
use homenode_model::{ObjectId, ThreadId};

use crate::firsts::UnitFirstTouches;
use crate::found::{self, Copies, IterationOrigin};
use crate::order::{BypassRecord, Order};
use crate::padding::Padding;
use crate::space::{AddressSpace, Birth, StaticObject, TracedObject};
use crate::step::ByteRange;
use crate::turns::LockTurns;

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

/// Why a recording's logs cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A log cannot be read at all.
    #[error("{0}")]
    Log(LogError),
    /// The recording has no thread.
    #[error("the recording has no thread: nothing ran, or nothing was instrumented")]
    Empty,
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// What is known of the program beside the logs.
#[derive(Clone, Debug, Default)]
pub struct ProgramFacts {
    /// Its static objects.
    pub statics: Vec<StaticObject>,
    /// Objects whose rows are to lie on pages of their own.
    pub padding: Padding,
    /// Forks of one line.
    pub copies: Copies,
}

/// A recording's logs, opened several times: for the order of locks, for the rounds of a program
/// that does not tell of them, and for everything.
///
/// # Errors
/// A log cannot be opened or is not one.
pub fn open(logs: &[PathBuf], known: ProgramFacts) -> Result<Order<LogReader>, OpenError> {
    let mut turns = LockTurns::default();
    let mut begun = Vec::new();
    for path in logs {
        let Some(log) = LogReader::open_begun(path)? else { continue };
        begun.push(path.clone());
        // Damage is met again, and told, when the log is read for its accesses.
        let _ = turns.add(log);
    }
    turns.sort();
    let mut sources = Vec::new();
    for path in &begun {
        sources.push(LogReader::open(path)?);
    }
    let without_header = (logs.len() - begun.len()) as u64;
    let space = AddressSpace::new(known.statics).with_padding(known.padding);
    let mut order = Order::new(sources, turns, space)?.with_empty(without_header);
    if let Some(rounds) = found::find(&begun, &known.copies)? {
        order = order.with_rounds(rounds);
    }
    if order.threads() == 0 { Err(OpenError::Empty) } else { Ok(order) }
}
