//! A measured number with its distribution and its proof.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::axes::{CpuNumber, Mix, NodeNumber, NodePair, Op, PageSize, Stores};
use crate::stats::SampleSummary;

/// What a cell is about: two cells with equal subjects are comparable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Subject {
    /// Time of a load that waits for the one before it, nothing else going on.
    Latency {
        /// Thread and memory.
        pair: NodePair,
        /// The memory's pages.
        page: PageSize,
    },
    /// Bytes a second.
    Bandwidth {
        /// All that ran at once.
        pairs: Vec<NodePair>,
        /// Which of them this is the share of; absent: all together.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        share: Option<usize>,
        /// Threads a pair.
        threads: u32,
        /// The loop.
        op: Op,
        /// Its stores.
        stores: Stores,
        /// The memory's pages.
        page: PageSize,
    },
    /// Latency while others load the same memory.
    Loaded {
        /// Thread and memory.
        pair: NodePair,
        /// What the others do.
        mix: Mix,
        /// Their pause; the more, the less bandwidth.
        pause: u32,
    },
    /// One way of a cache line between two CPUs: half of a round trip.
    Core {
        /// The CPUs.
        cpus: (CpuNumber, CpuNumber),
        /// The nodes they are on.
        nodes: (NodeNumber, NodeNumber),
        /// The line's home.
        home: NodeNumber,
    },
    /// Pages moved by `move_pages`.
    Migration {
        /// Where they were.
        from: NodeNumber,
        /// Where they went.
        to: NodeNumber,
        /// Their size.
        page: PageSize,
    },
    /// Pages that go to the thread that touches them next: what the toucher pays.
    NextTouch {
        /// Where they were.
        from: NodeNumber,
        /// Where the toucher is, and they are afterwards.
        to: NodeNumber,
        /// Their size.
        page: PageSize,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency { pair, page } => write!(f, "latency {pair}, {} pages", page.name()),
            Self::Bandwidth { pairs, share, threads, op, stores, page } => {
                let all: Vec<_> = pairs.iter().map(ToString::to_string).collect();
                let (op, stores, all) = (op.name(), stores.name(), all.join(","));
                write!(f, "{op} {all}, {threads} threads, {stores} stores, {} pages", page.name())?;
                share.map_or(Ok(()), |i| write!(f, ", share of pair {}", i + 1))
            }
            Self::Loaded { pair, mix, pause } => write!(f, "loaded latency {pair}, {mix}, pause {pause}"),
            Self::Core { cpus, home, .. } => write!(f, "{} to {}, line on {home}", cpus.0, cpus.1),
            Self::Migration { from, to, page } => {
                write!(f, "moving {} pages from {from} to {to}", page.name())
            }
            Self::NextTouch { from, to, page } => {
                write!(f, "next touch of {} pages of {from} from {to}", page.name())
            }
        }
    }
}

/// The unit of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CellUnit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// 10^6 bytes a second.
    #[serde(rename = "MB/s")]
    MbPerS,
}

impl CellUnit {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::MbPerS => "MB/s",
        }
    }
    /// Whether less is better.
    pub const fn less_is_better(self) -> bool {
        matches!(self, Self::Ns)
    }
}

/// Whether a cell's number can be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Credibility {
    /// Proved, and stable.
    Ok,
    /// Proved, and the median varies by more than [`SampleSummary::NOISY`].
    Noisy,
    /// Thread, pages or results were not what they should be: there is no number.
    Failed {
        /// What was found.
        why: String,
    },
    /// It could not be measured.
    Absent {
        /// Why.
        why: String,
        /// What to do about it.
        remedy: String,
    },
}

/// What was read back for one thread and its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The CPU that the thread was bound to.
    pub cpu: Option<CpuNumber>,
    /// The CPUs it was on, before and after.
    pub cpu_read: Vec<CpuNumber>,
    /// The node that the memory was to be on.
    pub node: Option<NodeNumber>,
    /// The node that it was to be on before, where that is another: next touch brings it over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub came_from: Option<NodeNumber>,
    /// Pages by node, before.
    pub before: BTreeMap<NodeNumber, u64>,
    /// Pages by node, after.
    pub after: BTreeMap<NodeNumber, u64>,
    /// How that was asked: `move_pages`, or `numa_maps` where that is forbidden.
    pub by: String,
    /// Bytes of the memory.
    pub bytes: u64,
    /// Of these, in huge pages.
    pub huge: u64,
}

/// A number, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredCell {
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// The number: the median of a time, the best of a bandwidth. Absent unless the verdict is ok
    /// or noisy.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: CellUnit,
    /// Whether it can be believed.
    #[serde(flatten)]
    pub verdict: Credibility,
    /// All samples, in the cell's unit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub summary: Option<SampleSummary>,
    /// What belongs to it by kind: `injected_mb_per_s`, `pages_per_s`; of a next touch `mb_per_s`,
    /// the nanoseconds a page of arming and ending it (`arm_ns`, `settle_ns`), the share that is in
    /// huge pages afterwards.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub more: BTreeMap<String, f64>,
    /// A proof for each thread.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub proof: Vec<Proof>,
    /// What a reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

impl MeasuredCell {
    /// A cell that could not be measured.
    pub fn absent(
        subject: Subject,
        unit: CellUnit,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let verdict = Credibility::Absent { why: why.into(), remedy: remedy.into() };
        Self::without(subject, unit, verdict)
    }

    /// A cell whose check failed.
    pub fn failed(subject: Subject, unit: CellUnit, why: impl Into<String>, proof: Vec<Proof>) -> Self {
        Self { proof, ..Self::without(subject, unit, Credibility::Failed { why: why.into() }) }
    }

    /// A cell with a number, noisy if its samples say so.
    pub fn of(
        subject: Subject,
        unit: CellUnit,
        value: f64,
        summary: SampleSummary,
        proof: Vec<Proof>,
    ) -> Self {
        let verdict = if summary.is_noisy() { Credibility::Noisy } else { Credibility::Ok };
        let (value, summary) = (Some(value), Some(summary));
        Self { value, summary, proof, ..Self::without(subject, unit, verdict) }
    }

    const fn without(subject: Subject, unit: CellUnit, verdict: Credibility) -> Self {
        Self {
            subject,
            value: None,
            unit,
            verdict,
            summary: None,
            more: BTreeMap::new(),
            proof: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether it has a number.
    pub const fn is_measured(&self) -> bool {
        self.value.is_some()
    }
}
