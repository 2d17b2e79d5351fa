//! Who executes which iterations of parallel loops: what is asked for, what became of it, and the
//! file that a later run replays.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bounded::{list, text, texts};
use crate::frame::{Conversation, Message};

/// The name of the file with recorded schedules in the folder of the run: what a replay is from.
pub const FROM: &str = "schedules.from";
/// Loops of a file.
pub const LOOPS: usize = 1 << 12;
/// Files of the program that have such loops.
pub const CODES: usize = 1 << 8;
/// Threads of a team.
pub const THREADS: usize = 1 << 14;
/// Runs of a thread.
pub const RUNS: usize = 1 << 20;
/// Reasons why a schedule was not used.
pub const REFUSED: usize = 16;
/// Schedules that were kept, by name.
pub const KEPT: usize = 16;

/// Who hands out the iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// The program's own run-time; homenode records which thread got what.
    Record,
    /// Each thread gets what it got in the recorded execution.
    Replay,
    /// Each thread gets one range of iterations.
    Block,
    /// Chunks go round the threads.
    Cyclic,
    /// Chunks go to the node whose threads executed them first.
    Affinity,
    /// The fastest of the others.
    Auto,
}

impl Mode {
    /// All, by name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("record", Self::Record),
        ("replay", Self::Replay),
        ("block", Self::Block),
        ("cyclic", Self::Cyclic),
        ("affinity", Self::Affinity),
        ("auto", Self::Auto),
    ];
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("there is no schedule `{text}`: it is one of {}", all.join(", "))
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, mode)| mode == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedSchedule {
    /// Who hands out the iterations.
    pub mode: Mode,
    /// Recorded schedules lie beside the settings ([`FROM`]).
    pub from: bool,
    /// Recorded schedules are left in the folder of the run ([`Schedules::file_name`]).
    pub to: bool,
}

/// What became of it in one process (exact).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dealt {
    /// What was asked for.
    pub mode: Mode,
    /// Loops in the source that homenode took over at least once, or recorded.
    pub loops: u64,
    /// Executions of loops whose iterations homenode handed out.
    pub taken: u64,
    /// Executions that the program's own run-time handed out.
    pub own: u64,
    /// Chunks that homenode handed out.
    pub chunks: u64,
    /// Of these, chunks as recorded.
    pub replayed: u64,
    /// Chunks of the program's own run-time that were recorded.
    pub recorded: u64,
    /// Schedules that `auto` keeps, by name, with the number of loops.
    #[serde(serialize_with = "list::write::<KEPT, _, _>", deserialize_with = "list::read::<KEPT, _, _>")]
    pub kept: Vec<Kept>,
    /// Loops that `auto` was still trying.
    pub trying: u64,
    /// Recorded schedules that a later run can replay.
    pub tables: u64,
    /// Why a recorded schedule was not replayed, or a loop not recorded, a sentence each.
    #[serde(serialize_with = "texts::write::<REFUSED, _>", deserialize_with = "texts::read::<REFUSED, _>")]
    pub refused: Vec<String>,
}

/// A schedule that `auto` keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The schedule's name.
    #[serde(with = "text")]
    pub name: String,
    /// For how many loops.
    pub loops: u64,
}

/// A file with code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeFile {
    /// Its name, without folders.
    #[serde(with = "text")]
    pub name: String,
    /// Bytes of its instructions.
    pub bytes: u64,
    /// A hash of its instructions: another build is another program.
    pub hash: u64,
}

/// Iterations from `begin` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationRange {
    /// The first.
    pub begin: u64,
    /// One past the last.
    pub end: u64,
}

/// What one thread executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadIterations {
    /// The node that the thread ran on; `None`: not known.
    pub node: Option<u16>,
    /// The iterations.
    #[serde(serialize_with = "list::write::<RUNS, _, _>", deserialize_with = "list::read::<RUNS, _, _>")]
    pub runs: Vec<IterationRange>,
}

/// One loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    /// Index of its file in [`Schedules::codes`].
    pub code: u32,
    /// Where the program starts the loop, from the file's first byte in memory.
    pub offset: u64,
    /// Value of the first iteration.
    pub first: i128,
    /// From one iteration's value to the next.
    pub step: i128,
    /// The bound that values do not reach.
    pub bound: i128,
    /// Iterations of a chunk.
    pub chunk: u64,
    /// By thread number.
    #[serde(serialize_with = "list::write::<THREADS, _, _>")]
    #[serde(deserialize_with = "list::read::<THREADS, _, _>")]
    pub threads: Vec<ThreadIterations>,
}

/// What a later run replays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedules {
    /// The files that have the loops.
    #[serde(serialize_with = "list::write::<CODES, _, _>", deserialize_with = "list::read::<CODES, _, _>")]
    pub codes: Vec<CodeFile>,
    /// The loops.
    #[serde(serialize_with = "list::write::<LOOPS, _, _>", deserialize_with = "list::read::<LOOPS, _, _>")]
    pub loops: Vec<Loop>,
}

impl Message for Schedules {
    const KIND: Conversation = Conversation::Schedules;
    const VERSION: u16 = 1;
    const MOST: usize = 64 << 20;
}

impl Schedules {
    /// The name of the file that process `pid` leaves them in.
    pub fn file_name(pid: u32) -> String {
        format!("schedules.{pid}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        for (name, mode) in Mode::ALL {
            assert_eq!((name.parse(), mode.to_string().as_str()), (Ok(mode), name));
        }
        assert!("static".parse::<Mode>().unwrap_err().contains("record, replay, block, cyclic"));
    }

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let thread = |node, begin, end| ThreadIterations { node, runs: vec![IterationRange { begin, end }] };
        let one = Loop {
            code: 0,
            offset: 0x1234,
            first: -5,
            step: -3,
            bound: -i128::from(u64::MAX),
            chunk: 4,
            threads: vec![thread(Some(1), 0, u64::MAX), thread(None, 3, 4)],
        };
        let code = CodeFile { name: "app".into(), bytes: 100, hash: 7 };
        let all = Schedules { codes: vec![code], loops: vec![one] };
        let bytes = crate::encode(&all).unwrap();
        assert_eq!(crate::decode::<Schedules>(&bytes), Ok(all));
    }
}
