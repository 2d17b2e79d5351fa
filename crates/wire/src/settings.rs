//! What the launcher tells the library in the program: one file in the folder of the run.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use homenode_model::Bytes;
use serde::{Deserialize, Serialize};

use crate::bounded::{CPUS, NODES, list, some_os, text};
use crate::facts::{Arming, Budget};
use crate::frame::{Conversation, Message};
use crate::schedule;

/// The one variable of the environment: the folder of the run. Without it the library does nothing.
pub const RUN_DIR: &str = "HOMENODE_RUN_DIR";
/// The name of the settings' file in that folder.
pub const FILE: &str = "settings";

/// What tells who touches what, as it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// The best that there is.
    #[default]
    Auto,
    /// The processor's samples of accesses with their addresses.
    Pmu,
    /// The kernel's NUMA hinting faults.
    Hinting,
    /// Writes to write-protected pages.
    Writes,
    /// Pages that are taken away at random times, and stay on their node when they are touched.
    Blocks,
    /// Nothing but the start and the end of regions.
    Regions,
}

impl Wanted {
    /// Those that can be asked for by name, best first.
    pub const ALL: [(&'static str, Self); 6] = [
        ("auto", Self::Auto),
        ("pmu", Self::Pmu),
        ("hinting", Self::Hinting),
        ("writes", Self::Writes),
        ("blocks", Self::Blocks),
        ("regions", Self::Regions),
    ];
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, w)| *w).ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("there is no source `{text}`: it is one of {}", all.join(", "))
        })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, w)| w == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// When pages with a known target move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MoveWhile {
    /// The first 32 MiB of a region's start while the team sleeps, the rest by the manner that
    /// turns out cheaper.
    #[default]
    Auto,
    /// At the start of a region, while the team sleeps.
    Asleep,
    /// By a thread of homenode's own, while the team runs.
    Running,
}

impl MoveWhile {
    /// All, by name.
    pub const ALL: [(&'static str, Self); 3] =
        [("auto", Self::Auto), ("asleep", Self::Asleep), ("running", Self::Running)];
}

impl FromStr for MoveWhile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, w)| *w).ok_or_else(|| format!("`{text}` is none of auto, asleep, running"))
    }
}

impl fmt::Display for MoveWhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, w)| w == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// A node of the machine, as this run may use it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsableNode {
    /// The kernel's numbers of its CPUs.
    #[serde(serialize_with = "list::write::<CPUS, _, _>", deserialize_with = "list::read::<CPUS, _, _>")]
    pub cpus: Vec<u32>,
    /// Its memory; zero: none for this process.
    pub memory: Bytes,
    /// The kernel's distances to each node; 10 is local.
    #[serde(serialize_with = "list::write::<NODES, _, _>", deserialize_with = "list::read::<NODES, _, _>")]
    pub distances: Vec<u64>,
}

/// The nodes: reading them takes libraries that have no place in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineNodes {
    /// By the kernel's number, or by the pretended one.
    #[serde(serialize_with = "list::write::<NODES, _, _>", deserialize_with = "list::read::<NODES, _, _>")]
    pub nodes: Vec<UsableNode>,
}

impl MachineNodes {
    /// Nodes with as many CPUs each, numbered through, and as much memory; `remote` is the distance
    /// between any two.
    pub fn even(nodes: u32, cpus: u32, memory: Bytes, remote: u64) -> Self {
        let distances = |n: u32| (0..nodes).map(|m| if m == n { 10 } else { remote }).collect();
        let node = |n: u32| UsableNode {
            cpus: (n * cpus..(n + 1) * cpus).collect(),
            memory,
            distances: distances(n),
        };
        Self { nodes: (0..nodes).map(node).collect() }
    }
}

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The policy's spec.
    #[serde(with = "text")]
    pub policy: String,
    /// When to arm unasked.
    pub arming: Arming,
    /// The nodes, real or pretended.
    pub machine: MachineNodes,
    /// The nodes are pretended.
    pub pretend: bool,
    /// The budget.
    pub budget: Budget,
    /// Until moving has shown that it pays, less is spent than the budget allows: 3 % of the
    /// process's CPU time or 50 ms, whichever is more.
    pub trial: bool,
    /// Hold nothing back and do not judge.
    pub force: bool,
    /// A plan lies beside the settings ([`crate::plan::FILE`]).
    pub plan: bool,
    /// What tells who touches what.
    pub source: Wanted,
    /// Copy without userfaultfd, too.
    pub copy_unseen: bool,
    /// When pages with a known target move.
    pub move_while: MoveWhile,
    /// Folder for the policy's journal, a file for each process.
    #[serde(with = "some_os")]
    pub journal: Option<PathBuf>,
    /// Watch for a recording. Nothing moves.
    pub record: bool,
    /// Folder for the stream of what happens ([`crate::live`]), a file for each process; `None`:
    /// nothing is recorded.
    #[serde(with = "some_os")]
    pub stream: Option<PathBuf>,
    /// Who hands out the iterations of parallel loops; `None`: the program's own run-time.
    pub schedule: Option<schedule::RequestedSchedule>,
    /// Large allocations begin on a page.
    pub align: bool,
}

impl Message for Settings {
    const KIND: Conversation = Conversation::Settings;
    const VERSION: u16 = 5;
    const MOST: usize = 16 << 20;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        for (name, wanted) in Wanted::ALL {
            assert_eq!((name.parse(), wanted.to_string().as_str()), (Ok(wanted), name));
        }
        assert!("perf".parse::<Wanted>().unwrap_err().contains("auto, pmu, hinting, writes"));
    }
}
