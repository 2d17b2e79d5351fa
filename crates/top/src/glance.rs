//! What is shown at one moment.

use std::collections::BTreeMap;

use homenode_dataset::foreign::clean;
use homenode_dataset::tables::{Access, Interval, Migration, MigrationCause, MigrationOutcome, Node, Object};
use homenode_dataset::{Basis, Dataset};
use homenode_model::{Bytes, NodeId, Ns, ObjectId};
use homenode_report::objects::{NodeAmount, NodePages, ObjectReport};
use homenode_report::{Amount, RecordingReport, Share, Unit};
use homenode_text::answer;
use homenode_text::touchers::touched_by;
use homenode_view::live::{NodeSightings, Pulse};
use serde_json::{Value, json};

/// The name and version of a line of JSON.
pub const SCHEMA: &str = "homenode/top/1";
/// Latest moves that are kept.
pub const MOVES: usize = 32;
/// Objects that are kept.
pub const OBJECTS: usize = 1000;

/// What the program does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing is recorded yet.
    #[default]
    Waiting,
    /// It runs.
    Runs,
    /// It has ended, and its recording is complete.
    Ended,
    /// It is gone, and its recording has no end.
    Gone,
}

impl State {
    /// In words; those of the page.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Waiting => "waiting for the program",
            Self::Runs => "the program runs",
            Self::Ended => "the program has ended",
            Self::Gone => "the program is gone; its recording has no end",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Runs => "runs",
            Self::Ended => "ended",
            Self::Gone => "gone",
        }
    }
}

/// What happened lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// How long *lately* is.
    pub over: Ns,
    /// Pages that moved.
    pub moved: u64,
    /// How often somebody was seen at pages.
    pub sightings: u64,
    /// How often of these from another node than the pages' home.
    pub remote: u64,
}

/// A node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLine {
    /// Its number.
    pub node: NodeId,
    /// Its CPUs; `None`: not known.
    pub cpus: Option<u64>,
    /// Threads of the program that ran there last; `None`: not known.
    pub threads: Option<u64>,
    /// Pages that live there; `None`: not known.
    pub pages: Option<u64>,
    /// How often its threads were seen at pages; `None`: nobody looks.
    pub seen: Option<u64>,
    /// How often of these at pages of another node.
    pub remote: u64,
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectLine {
    /// What people call it.
    pub name: String,
    /// Name that is the same in every recording; `None`: the kernel's name for a mapping.
    pub id: Option<String>,
    /// Size; `None`: it is not one object.
    pub bytes: Option<Bytes>,
    /// Accesses that count; `None`: nobody looks.
    pub accesses: Option<Amount>,
    /// How many of them were remote; `None`: nobody looks.
    pub remote: Option<Share>,
    /// Who touched most of its pages first.
    pub touched: String,
    /// Accesses by the node that made them.
    pub used_by: Vec<NodeAmount>,
    /// Where its pages live.
    pub lives: Vec<NodePages>,
    /// Pages that moved.
    pub moved: u64,
}

/// A move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveLine {
    /// When.
    pub time: Ns,
    /// The object's name.
    pub object: String,
    /// The first page.
    pub page: u64,
    /// Pages.
    pub pages: u64,
    /// Former home.
    pub from: NodeId,
    /// New home.
    pub to: NodeId,
    /// Why.
    pub cause: MigrationCause,
    /// What came of it.
    pub outcome: MigrationOutcome,
}

/// What is shown at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glance {
    /// The program as a person types it.
    pub command: String,
    /// What it does.
    pub state: State,
    /// The sums since the start; `None`: nobody tells.
    pub pulse: Option<Pulse>,
    /// What happened lately; `None`: nobody tells.
    pub now: Option<Now>,
    /// The nodes are pretended.
    pub pretended: bool,
    /// The nodes.
    pub nodes: Vec<NodeLine>,
    /// What shares are shares of.
    pub unit: Option<Unit>,
    /// What counts are worth.
    pub basis: Option<Basis>,
    /// Most remote ones first.
    pub objects: Vec<ObjectLine>,
    /// Latest first.
    pub moves: Vec<MoveLine>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl From<&ObjectReport> for ObjectLine {
    fn from(o: &ObjectReport) -> Self {
        Self {
            name: clean(&answer::name(o)),
            id: o.object.map(|_| clean(&o.id)),
            bytes: o.object.map(|_| o.bytes),
            accesses: Some(o.accesses),
            remote: Some(o.remote),
            touched: clean(&touched_by(&o.first_touch)),
            used_by: o.used_by.clone(),
            lives: o.residency.clone(),
            moved: o.moves.as_ref().map_or(0, |m| m.pages),
        }
    }
}

/// The sums since the start, from the tables of a recording with an end.
fn sums(set: &Dataset, report: &RecordingReport) -> Pulse {
    let mut all = Pulse { intervals: set.rows::<Interval>().count() as u64, ..Pulse::default() };
    all.time_ns = report.summary.ended.as_ref().map_or(0, |ended| ended.elapsed_ns);
    all.iterations = report.summary.iterations.as_ref().map_or(0, |i| i.count);
    for access in set.rows::<Access>() {
        let seen = access.tally.seen();
        all.sightings = all.sightings.saturating_add(seen);
        if access.node != access.home {
            all.remote = all.remote.saturating_add(seen);
        }
    }
    for moves in report.objects.iter().filter_map(|o| o.moves.as_ref()) {
        all.moved = all.moved.saturating_add(moves.pages);
        all.refused = all.refused.saturating_add(moves.refused);
    }
    if let Some(cost) = &report.summary.own_cost {
        (all.own_ns, all.cpu_ns) = (cost.own_ns.0, cost.cpu_ns.0);
    }
    all
}

impl Glance {
    /// Takes over what the tables tell. After the program's end, these are the sums, too.
    pub fn read(&mut self, set: &Dataset) {
        let report = RecordingReport::of(set);
        if self.state == State::Ended {
            self.pulse = Some(sums(set, &report));
        }
        self.unit = Some(report.summary.remote.of);
        self.basis = report.summary.accesses.basis();
        self.pretended = report.summary.pretended;
        self.objects = report.objects.iter().take(OBJECTS).map(ObjectLine::from).collect();
        self.moves = moves(set);
        let mut pages: BTreeMap<NodeId, u64> = BTreeMap::new();
        for home in report.objects.iter().flat_map(|o| &o.residency) {
            let sum = pages.entry(home.node).or_default();
            *sum = sum.saturating_add(home.pages);
        }
        let known = !pages.is_empty();
        let mut nodes: BTreeMap<NodeId, NodeLine> = BTreeMap::new();
        for node in report.summary.nodes.iter().copied().chain(pages.keys().copied()) {
            let pages = known.then(|| pages.get(&node).copied().unwrap_or(0));
            nodes.insert(node, NodeLine { node, pages, ..NodeLine::default() });
        }
        for row in set.rows::<Node>() {
            if let Some(node) = nodes.get_mut(&row.node) {
                node.cpus = Some(row.cpus.into());
            }
        }
        self.nodes = nodes.into_values().collect();
        self.notes = report.summary.coarsened.iter().chain(&report.summary.notes).map(|n| clean(n)).collect();
    }

    /// Takes over who was seen at whose memory.
    pub fn see(&mut self, traffic: &NodeSightings) {
        for (&(node, home), &n) in traffic {
            let at = self.nodes.iter().position(|known| known.node == node).unwrap_or_else(|| {
                self.nodes.push(NodeLine { node, ..NodeLine::default() });
                self.nodes.len() - 1
            });
            let line = &mut self.nodes[at];
            line.seen = Some(line.seen.unwrap_or(0).saturating_add(n));
            if node != home {
                line.remote = line.remote.saturating_add(n);
            }
        }
        self.nodes.sort_by_key(|n| n.node);
    }

    /// As one line of JSON.
    pub fn json(&self) -> Value {
        let pages = |all: &[NodePages]| -> Vec<Value> {
            all.iter().map(|n| json!({"node": n.node.0, "pages": n.pages})).collect()
        };
        let node = |n: &NodeLine| {
            let remote = n.seen.map(|_| n.remote);
            json!({"node": n.node.0, "cpus": n.cpus, "threads": n.threads, "pages": n.pages,
                "sightings": n.seen, "remote": remote})
        };
        let object = |o: &ObjectLine| {
            json!({"name": o.name, "id": o.id, "bytes": o.bytes.map(|b| b.0), "accesses": o.accesses,
                "remote": o.remote, "used_by": o.used_by, "lives_on": pages(&o.lives), "moved": o.moved})
        };
        let one = |m: &MoveLine| {
            json!({"time_ns": m.time.0, "object": m.object, "page": m.page, "pages": m.pages,
                "from_node": m.from.0, "to_node": m.to.0, "cause": m.cause.as_str(),
                "outcome": m.outcome.as_str()})
        };
        let now = self.now.map(
            |n| json!({"over_ns": n.over.0, "moved": n.moved, "sightings": n.sightings, "remote": n.remote}),
        );
        json!({
            "schema": SCHEMA,
            "command": self.command,
            "state": self.state.word(),
            "so_far": self.pulse,
            "now": now,
            "pretended": self.pretended,
            "nodes": self.nodes.iter().map(node).collect::<Vec<_>>(),
            "unit": self.unit.map(|u| u.as_str()),
            "basis": self.basis.map(|b| b.word().as_str()),
            "objects": self.objects.iter().map(object).collect::<Vec<_>>(),
            "moves": self.moves.iter().map(one).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// The latest moves, latest first.
fn moves(set: &Dataset) -> Vec<MoveLine> {
    let mut latest: BTreeMap<(Ns, u64), Migration> = BTreeMap::new();
    for (row, migration) in (0_u64..).zip(set.rows::<Migration>()) {
        latest.insert((migration.time_ns, row), migration);
        if latest.len() > MOVES {
            latest.pop_first();
        }
    }
    let wanted: Vec<Option<ObjectId>> = latest.values().map(|m| m.object).collect();
    let names: BTreeMap<ObjectId, String> = set
        .rows::<Object>()
        .filter(|o| wanted.contains(&Some(o.object)))
        .map(|o| (o.object, o.name))
        .collect();
    let line = |m: Migration| {
        let name = m.object.and_then(|o| names.get(&o));
        MoveLine {
            time: m.time_ns,
            object: clean(&answer::named(name.map_or("", String::as_str), name.is_some())),
            page: m.page,
            pages: m.pages,
            from: m.from_node,
            to: m.to_node,
            cause: m.cause,
            outcome: m.outcome,
        }
    };
    latest.into_values().rev().map(line).collect()
}
