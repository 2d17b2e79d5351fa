//! What a recording is, whether it is whole, and what is remote in it.

use homenode_dataset::meta::Clock;
use homenode_dataset::{Ended, Missing, RecordingKind};
use homenode_model::{NodeId, Ns, Ps};
use serde::Serialize;

use crate::amount::{Amount, Share};
use crate::serial;
use crate::time::{Iterations, LeftOut};

/// Which accesses count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Those of timed intervals: initialisation and the program's end are left out.
    Timed,
    /// All of them: no interval is timed.
    Everything,
}

/// What homenode itself cost, of all processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OwnCost {
    /// CPU time of homenode.
    #[serde(serialize_with = "serial::number")]
    pub own_ns: Ns,
    /// CPU time of the processes, homenode's included.
    #[serde(serialize_with = "serial::number")]
    pub cpu_ns: Ns,
}

/// What a recording is, whether it is whole, and what is remote in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Whether nothing is missing.
    pub whole: bool,
    /// What is missing, as far as any table of the recording shows it.
    #[serde(serialize_with = "serial::sentences")]
    pub missing: Vec<Missing>,
    /// What made it.
    pub kind: RecordingKind,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The machine: its name.
    pub machine: String,
    /// Whether its nodes are pretended.
    pub pretended: bool,
    /// Numbers of its nodes.
    #[serde(serialize_with = "serial::numbers")]
    pub nodes: Vec<NodeId>,
    /// The policy.
    pub policy: Option<String>,
    /// What reported the accesses: the recorder, a sensor or a monitor.
    pub source: String,
    /// Whose time it tells.
    pub clock: Clock,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of the blocks that `avoidable_ps` tells apart.
    pub block_pages: u64,
    /// Host, job and rank.
    pub host: Option<String>,
    /// See `host`.
    pub job: Option<String>,
    /// See `host`.
    pub rank: Option<u32>,
    /// How the program ended.
    pub ended: Option<Ended>,
    /// Threads of the program, as far as they are listed.
    pub threads: u64,
    /// Which accesses count.
    pub scope: Scope,
    /// Accesses that count.
    pub accesses: Amount,
    /// How many of them were remote.
    pub remote: Share,
    /// Accesses of intervals that do not count.
    pub accesses_left_out: Amount,
    /// Intervals that do not count.
    pub left_out: Option<LeftOut>,
    /// Rounds of the outer loop.
    pub iterations: Option<Iterations>,
    /// Latency of all accesses that count. None without latencies or counts.
    #[serde(rename = "memory_time_ps", serialize_with = "serial::number_or_null")]
    pub memory_time: Option<Ps>,
    /// Part of it that the best static home of each block would save.
    #[serde(rename = "avoidable_ps", serialize_with = "serial::number_or_null")]
    pub avoidable: Option<Ps>,
    /// What homenode itself cost; none where nobody measured it.
    pub own_cost: Option<OwnCost>,
    /// The guard's verdict.
    pub verdict: Option<String>,
    /// What was coarsened, a sentence each.
    pub coarsened: Vec<String>,
    /// What a reader should know, a sentence each.
    pub notes: Vec<String>,
}
