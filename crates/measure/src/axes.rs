//! What measurements differ in: nodes, CPUs, pages, loops, stores, mixes of reads and writes.

use std::fmt;
use std::str::FromStr;

use homenode_model::NodeId;
use serde::{Deserialize, Serialize};

/// A node, by the kernel's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeNumber(pub u16);

/// A CPU, by the kernel's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuNumber(pub u32);

impl From<NodeNumber> for NodeId {
    fn from(node: NodeNumber) -> Self {
        Self(node.0)
    }
}

impl fmt::Display for NodeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

impl fmt::Display for CpuNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU {}", self.0)
    }
}

/// A thread on one node and its memory on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodePair {
    /// Where the thread runs.
    pub cpu: NodeNumber,
    /// Where its memory is.
    pub memory: NodeNumber,
}

impl NodePair {
    /// A thread on node `cpu`, memory on node `memory`.
    pub const fn new(cpu: u16, memory: u16) -> Self {
        Self { cpu: NodeNumber(cpu), memory: NodeNumber(memory) }
    }
}

impl fmt::Display for NodePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.cpu.0, self.memory.0)
    }
}

impl FromStr for NodePair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a pair of nodes such as 0:1 (thread's node : memory's node)");
        let (cpu, memory) = text.split_once(':').ok_or_else(wrong)?;
        let number = |t: &str| t.trim().parse::<u16>().map_err(|_| wrong());
        Ok(Self::new(number(cpu)?, number(memory)?))
    }
}

/// The size of the pages that memory is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PageSize {
    /// 4 KiB.
    #[serde(rename = "4KiB")]
    Small,
    /// 2 MiB, transparent.
    #[serde(rename = "2MiB")]
    Huge,
}

impl PageSize {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Small, Self::Huge];

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Small => homenode_sys::PAGE as u64,
            Self::Huge => homenode_sys::HUGE as u64,
        }
    }
    /// `4 KiB`
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "4 KiB",
            Self::Huge => "2 MiB",
        }
    }
}

/// A loop over memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Sum of a: 8 bytes a step.
    Read,
    /// c = q: 8 bytes.
    Write,
    /// c = a: 16 bytes, as STREAM counts.
    Copy,
    /// b = q c: 16 bytes.
    Scale,
    /// c = a + b: 24 bytes.
    Add,
    /// a = b + q c: 24 bytes.
    Triad,
}

impl Op {
    /// All, in the order in which they run: STREAM's four, then what STREAM lacks.
    pub const ALL: [Self; 6] = [Self::Copy, Self::Scale, Self::Add, Self::Triad, Self::Read, Self::Write];

    /// Bytes an element, as STREAM counts: what the program reads and writes, without the lines
    /// that a store reads first.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Read | Self::Write => 8,
            Self::Copy | Self::Scale => 16,
            Self::Add | Self::Triad => 24,
        }
    }
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }
}

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stores {
    /// Through the caches.
    Regular,
    /// Past them.
    NonTemporal,
}

impl Stores {
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::NonTemporal => "non-temporal",
        }
    }
}

/// Lines of memory traffic that are read, and lines that are written back beside them. With
/// `(1, 1)` each line is read and written; with `writes` 0 none is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mix {
    /// Lines read …
    pub reads: u32,
    /// Lines written for that number of lines read, 0 or 1.
    pub writes: u32,
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.reads, self.writes)
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a mix of reads and writes such as 1:0, 2:1 or 1:1");
        let (reads, writes) = text.split_once(':').ok_or_else(wrong)?;
        let number = |t: &str| t.trim().parse::<u32>().map_err(|_| wrong());
        let mix = Self { reads: number(reads)?, writes: number(writes)? };
        // A store reads its line first, so there are never fewer reads than writes.
        let fits = mix.reads >= 1 && mix.reads <= 16 && mix.writes <= 1;
        if fits { Ok(mix) } else { Err(wrong() + "; a store reads its line first: N:1, or 1:0") }
    }
}
