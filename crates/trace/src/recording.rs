//! A recording's logs, opened.

use std::path::PathBuf;

use homenode_log::LogError;
use homenode_log::file::LogReader;

use crate::found::{self, Copies};
use crate::order::Order;
use crate::padding::Padding;
use crate::space::{AddressSpace, StaticObject};
use crate::turns::LockTurns;

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
