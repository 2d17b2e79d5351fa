//! One object of a recording: how it is used, where it lives, who touched it first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use homenode_dataset::SeenCount;
use homenode_dataset::fields::{ElementField, Fields};
use homenode_dataset::tables::{Object, ObjectKind, Residency};
use homenode_model::{Bytes, NodeId, Ns, ObjectId, Ps};
use serde::Serialize;

use crate::amount::{Amount, Share};
use crate::blocks::{Blocks, Grain};
use crate::machine::MachineSummary;
use crate::moves::{MoveSpan, MoveSummary, Moving};
use crate::serial;
use crate::time::Timeline;
use crate::touch::{FirstToucher, Touchers};

/// What a node did, or what was done to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodeAmount {
    /// The node.
    #[serde(serialize_with = "serial::number")]
    pub node: NodeId,
    /// Reports of the source.
    pub seen: u64,
    /// Accesses. None for presence.
    pub count: Option<u64>,
}

impl NodeAmount {
    /// Accesses; of presence, sightings.
    pub fn units(&self) -> u64 {
        self.count.unwrap_or(self.seen)
    }
}

/// Pages that live on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodePages {
    /// The node.
    #[serde(serialize_with = "serial::number")]
    pub node: NodeId,
    /// How many pages.
    pub pages: u64,
}

/// A field of an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldReport {
    /// Its name.
    pub name: String,
    /// Its type as the source writes it.
    pub field_type: String,
    /// Bytes from the element's first byte.
    pub offset: u64,
    /// Its size; 0 where it is not known.
    pub bytes: u64,
}

impl FieldReport {
    fn of(field: ElementField) -> Self {
        let ElementField { name, field_type, offset, bytes } = field;
        Self { name, field_type, offset, bytes }
    }
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectReport {
    /// Number in the recording; none for memory that nobody knows.
    #[serde(serialize_with = "serial::number_or_null")]
    pub object: Option<ObjectId>,
    /// Name that is the same in every recording. Empty for memory that nobody knows.
    pub id: String,
    /// Number of the process; none for memory that nobody knows.
    pub process: Option<u32>,
    /// What people call it. Empty for memory that nobody knows.
    pub name: String,
    /// What it is.
    #[serde(serialize_with = "serial::word")]
    pub kind: ObjectKind,
    /// Type of an element.
    pub element_type: Option<String>,
    /// Size of an element in bytes.
    pub element_bytes: Option<u64>,
    /// Extents, slowest first. Empty where they are not known.
    pub dimensions: Vec<u64>,
    /// Fields of an element that is a structure, in their order in memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldReport>,
    /// Source file of the allocation or declaration.
    pub file: Option<String>,
    /// Line in that file.
    pub line: Option<u32>,
    /// Function with the allocation.
    pub function: Option<String>,
    /// Size. Of memory that nobody knows, 0.
    #[serde(serialize_with = "serial::number")]
    pub bytes: Bytes,
    /// First byte.
    pub address: u64,
    /// How often it was allocated.
    pub allocations: u64,
    /// When it was first allocated.
    #[serde(serialize_with = "serial::number_or_null")]
    pub birth_ns: Option<Ns>,
    /// When it was last freed.
    #[serde(serialize_with = "serial::number_or_null")]
    pub death_ns: Option<Ns>,
    /// Accesses that count.
    pub accesses: Amount,
    /// How many of them were remote.
    pub remote: Share,
    /// Accesses by the node that made them, most first.
    pub used_by: Vec<NodeAmount>,
    /// Accesses by the home of the page, most first.
    pub accessed_on: Vec<NodeAmount>,
    /// Latency of all accesses together. None without latencies or counts.
    #[serde(rename = "memory_time_ps", serialize_with = "serial::number_or_null")]
    pub memory_time: Option<Ps>,
    /// Part of it that the best static home of each block would save. None as for the time.
    #[serde(rename = "avoidable_ps", serialize_with = "serial::number_or_null")]
    pub avoidable: Option<Ps>,
    /// Who touched its pages first, most pages first.
    pub first_touch: Vec<FirstToucher>,
    /// Where its pages lived last, most pages first. Empty where nobody told.
    pub residency: Vec<NodePages>,
    /// What moved; none where nothing did.
    pub moves: Option<MoveSummary>,
}

impl ObjectReport {
    /// The key of the order in which objects are listed: remote accesses, accesses, size; most
    /// first. Id, process and number break ties.
    pub fn rank(&self) -> impl Ord + use<'_> {
        let what = (self.remote.part, self.accesses.units().1, self.bytes);
        (Reverse(what), &self.id, self.process, self.object)
    }

    /// Whether anything but the object's existence is known.
    pub fn is_used(&self) -> bool {
        self.accesses.seen() > 0 || self.moves.is_some() || !self.residency.is_empty()
    }
}

/// Sums by node. Few nodes use one object, so that a sorted list does.
#[derive(Clone, Debug, Default)]
struct ByNode(Vec<(NodeId, u64, u64)>);

impl ByNode {
    fn add(&mut self, node: NodeId, seen: u64, accesses: u64) {
        match self.0.binary_search_by_key(&node, |(n, ..)| *n) {
            Ok(at) => {
                let (_, s, a) = &mut self.0[at];
                (*s, *a) = (s.saturating_add(seen), a.saturating_add(accesses));
            }
            Err(at) => self.0.insert(at, (node, seen, accesses)),
        }
    }

    /// Most first. Without counts: of presence.
    fn finish(self, counts: bool) -> Vec<NodeAmount> {
        let amount = |(node, seen, n)| NodeAmount { node, seen, count: counts.then_some(n) };
        let mut all: Vec<NodeAmount> = self.0.into_iter().map(amount).collect();
        all.sort_by_key(|n| (Reverse(n.units()), n.node));
        all
    }
}

/// Accesses to an object before and behind its moves, each: all of them, and the remote ones.
#[derive(Clone, Copy, Debug)]
struct Around {
    stretch: MoveSpan,
    before: (Amount, Amount),
    after: (Amount, Amount),
}

/// An object while the tables are read.
#[derive(Debug)]
pub(crate) struct Gathered {
    object: Option<Object>,
    accesses: Amount,
    remote: Amount,
    by: ByNode,
    at: ByNode,
    /// None as soon as one latency is missing.
    time: Option<Ps>,
    blocks: Option<Blocks>,
    pub(crate) touchers: Touchers,
    pub(crate) moving: Moving,
    pub(crate) guard: Option<crate::moves::GuardResult>,
    /// None where nothing moved.
    around: Option<Box<Around>>,
    /// The last interval at whose end something lived, and where.
    homes: (u32, BTreeMap<NodeId, u64>),
}

/// An access with what is needed to count it.
pub(crate) struct Counted {
    /// Index of the interval.
    pub at: usize,
    /// First page of the block.
    pub page: u64,
    /// The accessing node.
    pub node: NodeId,
    /// The node whose memory was accessed.
    pub home: NodeId,
    /// How often.
    pub tally: SeenCount,
}

impl Gathered {
    /// An object of the table, or memory that nobody knows.
    pub(crate) fn new(object: Option<Object>, grain: Grain, page_bytes: u64) -> Self {
        let blocks = object.as_ref().map(|o| grain.blocks(o, page_bytes));
        Self {
            object,
            accesses: Amount::default(),
            remote: Amount::default(),
            by: ByNode::default(),
            at: ByNode::default(),
            time: Some(Ps::ZERO),
            blocks,
            touchers: Touchers::default(),
            moving: Moving::default(),
            guard: None,
            around: None,
            homes: (0, BTreeMap::new()),
        }
    }

    /// All moves were read.
    pub(crate) fn close_moves(&mut self) {
        let around = |stretch| Around { stretch, before: Default::default(), after: Default::default() };
        self.around = self.moving.stretch().map(around).map(Box::new);
    }

    pub(crate) fn add(&mut self, access: &Counted, grain: Grain, machine: &MachineSummary) {
        let Counted { at, page, node, home, tally } = *access;
        let accesses = tally.count().map_or(0, |c| c.parts().0);
        self.accesses.add(tally);
        self.by.add(node, tally.seen(), accesses);
        self.at.add(home, tally.seen(), accesses);
        if node != home {
            self.remote.add(tally);
        }
        let time = machine.latency(node, home).filter(|_| tally.count().is_some());
        let time = time.map(|latency| latency.times(accesses));
        self.time = self.time.zip(time).map(|(sum, time)| sum + time);
        if let (Some(blocks), Some(time)) = (&mut self.blocks, time) {
            blocks.add(grain, page, node, accesses, time);
        }
        if let Some(around) = &mut self.around {
            let part = match at {
                at if at < around.stretch.first => Some(&mut around.before),
                at if at > around.stretch.done => Some(&mut around.after),
                _ => None,
            };
            if let Some((all, remote)) = part {
                all.add(tally);
                if node != home {
                    remote.add(tally);
                }
            }
        }
    }

    pub(crate) fn lives(&mut self, run: &Residency) {
        let until = run.until.0;
        if until > self.homes.0 {
            self.homes = (until, BTreeMap::new());
        }
        if until == self.homes.0 {
            let pages = self.homes.1.entry(run.home).or_default();
            *pages = pages.saturating_add(run.pages);
        }
    }

    /// `basis`: that of the whole recording, for an object that nobody accessed.
    pub(crate) fn finish(
        self,
        machine: &MachineSummary,
        timeline: &Timeline,
        rounds: &[homenode_dataset::tables::Iteration],
        basis: Option<homenode_dataset::Basis>,
    ) -> ObjectReport {
        let accesses = self.accesses.or_nothing_of(basis);
        let counts = accesses.count().is_some();
        let timed = counts && machine.has_latencies();
        let share = |(all, remote): &(Amount, Amount)| (all.seen() > 0).then(|| all.share(remote));
        let mut moves = self.moving.finish(timeline, rounds);
        if let Some(moves) = &mut moves {
            moves.remote_before = self.around.as_ref().and_then(|a| share(&a.before));
            moves.remote_after = self.around.as_ref().and_then(|a| share(&a.after));
            moves.guard = self.guard;
        }
        let memory_time = self.time.filter(|_| timed);
        let avoidable = self.blocks.filter(|_| memory_time.is_some()).map(|b| b.avoidable(machine));
        let pages = |(node, pages)| NodePages { node, pages };
        let mut residency: Vec<NodePages> = self.homes.1.into_iter().map(pages).collect();
        residency.sort_by_key(|n| (Reverse(n.pages), n.node));
        let known = self.object.is_some();
        let o = self.object.unwrap_or_else(nobody_knows);
        ObjectReport {
            object: known.then_some(o.object),
            id: o.id,
            process: known.then_some(o.process),
            name: o.name,
            kind: o.kind,
            element_type: o.element_type,
            element_bytes: o.element_bytes,
            dimensions: o.dimensions,
            fields: o.fields.0.into_iter().map(FieldReport::of).collect(),
            file: o.file,
            line: o.line,
            function: o.function,
            bytes: o.bytes,
            address: o.address,
            allocations: o.allocations,
            birth_ns: o.birth_ns,
            death_ns: o.death_ns,
            remote: accesses.share(&self.remote),
            accesses,
            used_by: self.by.finish(counts),
            accessed_on: self.at.finish(counts),
            memory_time,
            avoidable,
            first_touch: self.touchers.finish(),
            residency,
            moves,
        }
    }
}

/// What stands for memory that nobody knows.
fn nobody_knows() -> Object {
    Object {
        object: ObjectId(u32::MAX),
        id: String::new(),
        process: 0,
        name: String::new(),
        kind: ObjectKind::Other,
        element_type: None,
        element_bytes: None,
        dimensions: Vec::new(),
        fields: Fields::default(),
        file: None,
        line: None,
        function: None,
        stack: Vec::new(),
        bytes: Bytes(0),
        address: 0,
        allocations: 0,
        birth_ns: None,
        death_ns: None,
    }
}
