//! What a recording says of itself: `dataset.json`, and the table `meta` of an export.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use homenode_model::{Bytes, Ns};

use crate::basis::Basis;
use crate::error::Missing;
use crate::foreign::clean;
use crate::members::Bases;
use crate::schema::{table, words};

/// Version of `dataset.json` and of the tables beside it.
pub const VERSION: u32 = 1;

words! {
    /// What made the recording.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum RecordingKind {
        /// `homenode run --record`: the program ran here, and its pages moved.
        Run = "run",
        /// `homenode record --on live`: the program ran here, and nothing moved.
        Live = "live",
        /// `homenode record --on lab`: the program ran on the virtual machine.
        Lab = "lab",
        /// A recorded program was simulated on a machine under a policy.
        Simulated = "simulated",
        /// The generator made it: it stands for no program.
        Synthetic = "synthetic",
    }
}

words! {
    /// Whose time the recording tells.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Clock {
        /// The wall clock of the machine that ran the program.
        Wall = "wall",
        /// A modelled clock: no native time enters it.
        Modelled = "modelled",
    }
}

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Exit status, if it exited.
    pub status: Option<i32>,
    /// Signal, if one killed it.
    pub signal: Option<i32>,
    /// Time of the whole program, on the recording's clock.
    pub elapsed_ns: u64,
}

/// `dataset.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetMeta {
    /// Version of the format.
    pub format: u32,
    /// Version of homenode that wrote it.
    pub homenode: String,
    /// What made it.
    pub kind: RecordingKind,
    /// Basis of its access counts, in words. A row's own basis decides.
    pub basis: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment variables of an allow-list.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The machine: its name.
    pub machine: String,
    /// Whether its nodes are pretended.
    #[serde(default)]
    pub pretended: bool,
    /// The policy, as its users spell it.
    pub policy: Option<String>,
    /// What reported the accesses: the recorder, a sensor or a monitor.
    pub source: String,
    /// Whose time it tells.
    pub clock: Clock,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Host, job and rank: the partitions of an export.
    #[serde(default)]
    pub host: Option<String>,
    /// See `host`.
    #[serde(default)]
    pub job: Option<String>,
    /// See `host`.
    #[serde(default)]
    pub rank: Option<u32>,
    /// Whether holding pages back showed that moving pays: the guard's verdict.
    #[serde(default)]
    pub verdict: Option<String>,
    /// What a reader should know, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What was coarsened to stay within the budget, a sentence each.
    #[serde(default)]
    pub coarsened: Vec<String>,
    /// Why it is not whole although it has an end, a sentence each.
    #[serde(default)]
    pub incomplete: Vec<String>,
    /// Rows of each table, written at the end: a table with fewer was cut off.
    #[serde(default)]
    pub rows: BTreeMap<String, u64>,
    /// Of a merged data set: what is added to each member's numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Bases>,
    /// How the program ended; absent while it runs, and for ever if the recording was cut off.
    #[serde(default)]
    pub ended: Option<Ended>,
}

impl DatasetMeta {
    /// What a recording of `kind` says at its start.
    pub fn new(kind: RecordingKind, basis: Basis, command: Vec<String>) -> Self {
        Self {
            format: VERSION,
            homenode: env!("CARGO_PKG_VERSION").into(),
            kind,
            basis: basis.to_string(),
            command,
            environment: BTreeMap::new(),
            machine: String::new(),
            pretended: false,
            policy: None,
            source: String::new(),
            clock: if kind == RecordingKind::Simulated { Clock::Modelled } else { Clock::Wall },
            page_bytes: 4096,
            host: None,
            job: None,
            rank: None,
            verdict: None,
            notes: Vec::new(),
            coarsened: Vec::new(),
            incomplete: Vec::new(),
            rows: BTreeMap::new(),
            members: Vec::new(),
            ended: None,
        }
    }

    /// The same with every text made harmless for a terminal.
    #[must_use]
    pub(crate) fn cleaned(mut self) -> Self {
        let texts = [&mut self.homenode, &mut self.basis, &mut self.machine, &mut self.source];
        let options = [&mut self.policy, &mut self.host, &mut self.job, &mut self.verdict];
        let lists = [&mut self.command, &mut self.notes, &mut self.coarsened, &mut self.incomplete];
        let all = texts.into_iter().chain(options.into_iter().flatten()).chain(lists.into_iter().flatten());
        all.for_each(|t| *t = clean(t));
        self.rows = self.rows.iter().map(|(k, v)| (clean(k), *v)).collect();
        self.environment = self.environment.iter().map(|(k, v)| (clean(k), clean(v))).collect();
        self
    }
}

table! {
    /// The recording itself: one row.
    "meta" MetaRow {
        /// Version of the format.
        format: u32,
        /// Version of homenode that wrote it.
        homenode: String,
        /// What made it.
        kind: RecordingKind,
        /// Basis of its access counts, in words. A row's own basis decides.
        basis: String,
        /// Program and arguments.
        command: Vec<String>,
        /// Environment variables of an allow-list, each as `NAME=VALUE`.
        environment: Vec<String>,
        /// Name of the machine.
        machine: String,
        /// Whether its nodes are pretended.
        pretended: bool,
        /// The policy, as its users spell it.
        policy: Option<String>,
        /// What reported the accesses: the recorder, a sensor or a monitor.
        source: String,
        /// Whose time it tells.
        clock: Clock,
        /// Size of a page.
        page_bytes: Bytes,
        /// Whether holding pages back showed that moving pays: the guard's verdict.
        verdict: Option<String>,
        /// What a reader should know, a sentence each.
        notes: Vec<String>,
        /// What was coarsened to stay within the budget, a sentence each.
        coarsened: Vec<String>,
        /// What is missing or damaged, a sentence each. Empty where the recording is whole.
        missing: Vec<String>,
        /// Exit status of the program. Null where it did not exit.
        status: Option<u32>,
        /// The signal that ended the program. Null where none did.
        signal: Option<u32>,
        /// Time of the whole program. Null where the recording was cut off.
        elapsed_ns: Option<Ns>,
    }
}

impl MetaRow {
    /// The row of a recording.
    pub fn of(meta: &DatasetMeta, missing: &[Missing]) -> Self {
        let m = meta.clone();
        let ended = m.ended.as_ref();
        Self {
            format: m.format,
            homenode: m.homenode,
            kind: m.kind,
            basis: m.basis,
            command: m.command,
            environment: m.environment.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            machine: m.machine,
            pretended: m.pretended,
            policy: m.policy,
            source: m.source,
            clock: m.clock,
            page_bytes: Bytes(m.page_bytes),
            verdict: m.verdict,
            notes: m.notes,
            coarsened: m.coarsened,
            missing: missing.iter().map(ToString::to_string).collect(),
            status: ended.and_then(|e| e.status).and_then(|s| u32::try_from(s).ok()),
            signal: ended.and_then(|e| e.signal).and_then(|s| u32::try_from(s).ok()),
            elapsed_ns: ended.map(|e| Ns(e.elapsed_ns)),
        }
    }
}
