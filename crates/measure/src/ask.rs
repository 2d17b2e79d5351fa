//! What somebody wants measured, and what of it a machine can be asked for.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::axes::{Mix, NodeNumber, NodePair, Op, PageSize, Stores};
use crate::cell::{CellUnit, MeasuredCell, Subject};
use crate::host::{Host, HostNode};
use crate::item::{Chase, CoreToCore, Load, MigrationTest, Streams, Visit};

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasurementKind {
    /// Idle latency.
    Latency,
    /// Bandwidth.
    Bandwidth,
    /// Latency against bandwidth.
    Loaded,
    /// A cache line between two CPUs.
    Core,
    /// Moving pages.
    Migration,
}

impl MeasurementKind {
    /// All, in the order in which they are measured.
    pub const ALL: [Self; 5] = [Self::Latency, Self::Bandwidth, Self::Loaded, Self::Core, Self::Migration];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::Loaded => "loaded",
            Self::Core => "core",
            Self::Migration => "migration",
        }
    }
}

impl fmt::Display for MeasurementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MeasurementKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|k| k.name() == text.trim()).ok_or_else(|| {
            format!("'{text}' is not measured; latency, bandwidth, loaded, core and migration are")
        })
    }
}

/// A wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureRequest {
    /// Which kinds.
    pub kinds: BTreeSet<MeasurementKind>,
    /// Pairs whose bandwidth is measured all at once; none: every pair on its own.
    pub pairs: Vec<NodePair>,
    /// Nodes, for threads and for memory; none: all.
    pub nodes: Vec<NodeNumber>,
    /// Page sizes.
    pub pages: Vec<PageSize>,
    /// Loops.
    pub ops: Vec<Op>,
    /// Kinds of stores.
    pub stores: Vec<Stores>,
    /// Threads a pair; `None`: one for each usable core of the thread's node.
    pub threads: Option<u32>,
    /// Bytes of a latency buffer and of each STREAM array; `None`: 4 times all last-level cache.
    pub buffer: Option<u64>,
    /// Bytes between the slots of a chase.
    pub stride: u64,
    /// Traffic under which latency is measured.
    pub mixes: Vec<Mix>,
    /// Pauses of those who load, a point of the curve each; `u32::MAX`: no load.
    pub pauses: Vec<u32>,
    /// Bytes that are moved at a time.
    pub move_buffer: u64,
    /// Milliseconds of an idle latency, without placing memory. Other kinds take their share of it.
    pub time_ms: u64,
    /// Rounds of a bandwidth that count.
    pub rounds: u32,
    /// How often all of it is measured, with memory placed anew, if the limit allows.
    #[serde(default = "once")]
    pub passes: u32,
    /// Seconds that all of it may take: where it would take longer, buffers are cut, which is
    /// noted, and what does not begin before is not measured, which its cells say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u64>,
}

impl MeasureRequest {
    /// Everything.
    pub fn all() -> Self {
        Self {
            kinds: MeasurementKind::ALL.into(),
            pairs: Vec::new(),
            nodes: Vec::new(),
            pages: PageSize::ALL.to_vec(),
            ops: Op::ALL.to_vec(),
            stores: vec![Stores::Regular, Stores::NonTemporal],
            threads: None,
            buffer: None,
            stride: 256,
            mixes: vec![
                Mix { reads: 1, writes: 0 },
                Mix { reads: 2, writes: 1 },
                Mix { reads: 1, writes: 1 },
            ],
            pauses: vec![IDLE, 20_000, 5000, 2000, 1000, 500, 200, 100, 50, 0],
            move_buffer: 64 << 20,
            time_ms: 1000,
            rounds: 5,
            passes: 2,
            limit_s: None,
        }
    }

    /// What fits in a minute on four nodes: fewer loops, fewer points, shorter.
    pub fn quick() -> Self {
        Self {
            ops: vec![Op::Triad, Op::Read],
            stores: vec![Stores::Regular],
            mixes: vec![Mix { reads: 1, writes: 0 }],
            pauses: vec![IDLE, 2000, 200, 0],
            move_buffer: 16 << 20,
            time_ms: 300,
            rounds: 4,
            passes: 3,
            limit_s: Some(60),
            ..Self::all()
        }
    }

    /// Bytes of a buffer on `host`: what was asked for, else what STREAM's rule says.
    pub fn buffer_on(&self, host: &Host) -> u64 {
        let rule = match host.last_level_cache {
            0 => UNKNOWN_CACHE,
            cache => cache.saturating_mul(4).max(LEAST_BUFFER),
        };
        self.buffer.unwrap_or(rule)
    }
}

const fn once() -> u32 {
    1
}

/// The pause that means: no load.
pub const IDLE: u32 = u32::MAX;
/// Smallest buffer by rule: what a machine with small caches keeps in page tables and TLBs would
/// show otherwise.
const LEAST_BUFFER: u64 = 64 << 20;
/// A buffer where nobody says how large caches are.
const UNKNOWN_CACHE: u64 = 256 << 20;

/// What will be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasurePlan {
    /// In this order.
    pub items: Vec<Visit>,
    /// Cells that cannot be measured, known before anything starts.
    pub refused: Vec<MeasuredCell>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl MeasurePlan {
    /// About how long it takes. What is placed as for the item before is not placed again.
    pub fn estimate(&self) -> Duration {
        let mut before = None;
        let mut of = |item: &Visit| {
            let (what, bytes) = item.placed();
            let again = before.replace(what.clone()) == Some(what);
            item.estimate().saturating_sub(if again { placing(bytes) } else { Duration::ZERO })
        };
        self.items.iter().map(&mut of).sum()
    }
}

/// Placing memory, at 2 GB/s.
fn placing(bytes: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / 2e9)
}

impl Visit {
    /// Kind, nodes and pages of the memory that it needs, and how much.
    fn placed(&self) -> ((MeasurementKind, Vec<NodeNumber>, PageSize), u64) {
        match self {
            Self::Latency { pair, chase } => {
                ((MeasurementKind::Latency, vec![pair.memory], chase.page), chase.buffer)
            }
            Self::Bandwidth(s) => {
                let nodes = s.pairs.iter().map(|p| p.memory).collect();
                ((MeasurementKind::Bandwidth, nodes, s.page), 24 * s.elements * s.pairs.len() as u64)
            }
            Self::Loaded(l) => {
                ((MeasurementKind::Loaded, vec![l.pair.memory], l.chase.page), 2 * l.chase.buffer)
            }
            Self::Core(c) => ((MeasurementKind::Core, vec![c.home], PageSize::Small), 0),
            Self::Migration(m) | Self::NextTouch(m) => {
                ((MeasurementKind::Migration, vec![m.from], m.page), m.buffer)
            }
        }
    }

    /// About how long it takes: placing memory, streams at 8 GB/s, and what was asked for.
    pub fn estimate(&self) -> Duration {
        let placing = placing(self.placed().1);
        match self {
            // Laps are linked anew: about 30 ns a slot.
            Self::Latency { chase, .. } => {
                let slots = chase.buffer / chase.stride.max(1);
                placing + Duration::from_nanos(30 * slots) + chase.time
            }
            Self::Bandwidth(s) => {
                let moved: u64 = s.ops.iter().map(|op| op.bytes() * s.elements).sum();
                let round = Duration::from_secs_f64((moved * s.pairs.len() as u64) as f64 / 8e9);
                placing + (round * (s.rounds + 1)).min(s.time + round * 4)
            }
            Self::Loaded(l) => placing + l.chase.time * l.pauses.len() as u32,
            Self::Core(c) => c.time,
            Self::Migration(m) | Self::NextTouch(m) => placing + m.time,
        }
    }
}

/// Turns a wish into items for `host`; what cannot be is refused with the reason, and the rest is
/// done.
pub fn plan(host: &Host, ask: &MeasureRequest) -> MeasurePlan {
    let whole = ask.buffer_on(host);
    let mut plan = plan_with(host, ask, whole);
    let Some(limit) = ask.limit_s.filter(|_| ask.buffer.is_none()).map(Duration::from_secs) else {
        return plan;
    };
    let mut buffer = whole;
    // A little less than all of it: an estimate is one.
    while plan.estimate() > limit.mul_f64(0.9) && buffer > LEAST_BUFFER {
        buffer = (buffer / 2).max(LEAST_BUFFER);
        plan = plan_with(host, ask, buffer);
    }
    if buffer < whole {
        plan.notes.insert(
            0,
            format!(
                "buffers have {} MiB instead of {} so that it takes about {} s; --buffer, or no --quick, measures with all of it",
                buffer >> 20,
                whole >> 20,
                limit.as_secs()
            ),
        );
    }
    plan
}

fn plan_with(host: &Host, ask: &MeasureRequest, buffer: u64) -> MeasurePlan {
    let mut planner = Planner { host, ask, buffer, plan: MeasurePlan::default() };
    planner.buffer_notes();
    for kind in &ask.kinds {
        match kind {
            MeasurementKind::Latency => planner.latency(),
            MeasurementKind::Bandwidth => planner.bandwidth(),
            MeasurementKind::Loaded => planner.loaded(),
            MeasurementKind::Core => planner.core(),
            MeasurementKind::Migration => planner.migration(),
        }
    }
    planner.plan
}

struct Planner<'a> {
    host: &'a Host,
    ask: &'a MeasureRequest,
    buffer: u64,
    plan: MeasurePlan,
}

impl Planner<'_> {
    fn buffer_notes(&mut self) {
        let cache = self.host.last_level_cache;
        let mib = |b: u64| b >> 20;
        if cache == 0 && self.ask.buffer.is_none() {
            let used = mib(self.buffer);
            self.plan.notes.push(format!(
                "the system does not say how large caches are: buffers have {used} MiB; --buffer asks for more"
            ));
        } else if self.buffer < cache.saturating_mul(4) {
            self.plan.notes.push(format!(
                "buffers of {} MiB are less than 4 times the {} MiB of last-level cache: caches show in the values",
                mib(self.buffer),
                mib(cache)
            ));
        }
        for node in &self.ask.nodes {
            if self.host.node(*node).is_none() {
                let why = format!("{node} does not exist; this machine has {}", self.known());
                self.plan.notes.push(why);
            }
        }
    }

    fn known(&self) -> String {
        let all: Vec<_> = self.host.nodes.iter().map(|n| n.node.to_string()).collect();
        let word = if all.len() == 1 { "node" } else { "nodes" };
        format!("{word} {}", all.join(", "))
    }

    fn wanted(&self, node: NodeNumber) -> bool {
        self.ask.nodes.is_empty() || self.ask.nodes.contains(&node)
    }

    fn time(&self, share: f64) -> Duration {
        Duration::from_millis(self.ask.time_ms).mul_f64(share)
    }

    /// Pairs to measure one by one, memory nodes outermost, so that memory is placed once. Of pairs
    /// that were asked for those that cannot be are refused, a cell each as `cell` makes it.
    fn pairs(&mut self, subject: &dyn Fn(NodePair) -> (Subject, CellUnit)) -> Vec<NodePair> {
        let host = self.host;
        let asked = &self.ask.nodes;
        let mut cpus = host.with_cpus();
        let mut memories = host.with_memory();
        if !asked.is_empty() {
            cpus.retain(|n| asked.contains(n));
            memories.retain(|n| asked.contains(n));
            // Named and not there, or without memory: a cell, not silence.
            for memory in asked.iter().filter(|n| !memories.contains(n)) {
                for cpu in cpus.iter().copied().chain(cpus.is_empty().then_some(*memory)) {
                    self.refuse(NodePair { cpu, memory: *memory }, subject);
                }
            }
        }
        memories.iter().flat_map(|m| cpus.iter().map(|c| NodePair { cpu: *c, memory: *m })).collect()
    }

    fn refuse(&mut self, pair: NodePair, subject: &dyn Fn(NodePair) -> (Subject, CellUnit)) -> bool {
        let Some((why, remedy)) = self.trouble(pair) else { return false };
        let (subject, unit) = subject(pair);
        self.plan.refused.push(MeasuredCell::absent(subject, unit, why, remedy));
        true
    }

    /// Why a pair cannot be measured, and what to do.
    fn trouble(&self, pair: NodePair) -> Option<(String, String)> {
        let missing = |node: NodeNumber| {
            let why = format!("{node} does not exist");
            (why, format!("this machine has {}", self.known()))
        };
        let with =
            |nodes: Vec<NodeNumber>| nodes.iter().map(|n| n.0.to_string()).collect::<Vec<_>>().join(", ");
        let Some(cpu) = self.host.node(pair.cpu) else { return Some(missing(pair.cpu)) };
        let Some(memory) = self.host.node(pair.memory) else { return Some(missing(pair.memory)) };
        if !cpu.has_cpus() {
            let why = match cpu.unusable_cpus.len() {
                0 => format!("{} has no CPUs: no thread can run there", pair.cpu),
                n => format!("none of the {n} CPUs of {} may be used by this process", pair.cpu),
            };
            return Some((why, format!("nodes whose CPUs can be used: {}", with(self.host.with_cpus()))));
        }
        if memory.memory == 0 {
            let why = format!("{} has no memory", pair.memory);
            return Some((why, format!("nodes with memory: {}", with(self.host.with_memory()))));
        }
        if !memory.allowed {
            let why = format!("the memory of {} is outside of this process's cpuset", pair.memory);
            return Some((
                why,
                "allow it: cpuset.mems of the control group, or docker run --cpuset-mems".into(),
            ));
        }
        None
    }

    fn latency(&mut self) {
        for page in self.ask.pages.clone() {
            for pair in self.pairs(&|pair| (Subject::Latency { pair, page }, CellUnit::Ns)) {
                let chase = self.chase(page);
                self.plan.items.push(Visit::Latency { pair, chase });
            }
        }
    }

    fn chase(&self, page: PageSize) -> Chase {
        Chase { buffer: self.buffer, stride: self.ask.stride, page, laps: 0, time: self.time(1.0) }
    }

    fn threads(&self, nodes: &[NodeNumber]) -> u32 {
        let cores = |n: &NodeNumber| {
            let same = nodes.iter().filter(|m| *m == n).count().max(1);
            self.host.node(*n).map_or(1, |n| (n.cores.len() / same).max(1))
        };
        let fewest = nodes.iter().map(cores).min().unwrap_or(1);
        self.ask.threads.unwrap_or(fewest as u32)
    }

    /// Bytes of an array: in a hurry four times the last-level caches of the nodes whose threads
    /// run, for no other cache takes anything of it.
    fn array(&self, pairs: &[NodePair]) -> u64 {
        let all = self.host.with_cpus().len().max(1) as u64;
        let running: BTreeSet<NodeNumber> = pairs.iter().map(|p| p.cpu).collect();
        match (self.ask.limit_s, self.ask.buffer) {
            (Some(_), None) => {
                (self.buffer / all * running.len() as u64).clamp(LEAST_BUFFER.min(self.buffer), self.buffer)
            }
            _ => self.buffer,
        }
    }

    fn bandwidth(&mut self) {
        for page in self.ask.pages.clone() {
            let one = |pair: NodePair| {
                let (op, stores) = (Op::Triad, Stores::Regular);
                (
                    Subject::Bandwidth { pairs: vec![pair], share: None, threads: 1, op, stores, page },
                    CellUnit::MbPerS,
                )
            };
            let groups: Vec<Vec<NodePair>> = if self.ask.pairs.is_empty() {
                self.pairs(&one).into_iter().map(|p| vec![p]).collect()
            } else {
                let mut all = self.ask.pairs.clone();
                all.retain(|p| !self.refuse(*p, &one));
                if all.is_empty() { Vec::new() } else { vec![all] }
            };
            for pairs in groups {
                for stores in self.ask.stores.clone() {
                    let past = stores == Stores::NonTemporal;
                    // A read has no store.
                    let ops: Vec<Op> =
                        self.ask.ops.iter().copied().filter(|op| !(past && *op == Op::Read)).collect();
                    if ops.is_empty() {
                        continue;
                    }
                    let threads = self.threads(&pairs.iter().map(|p| p.cpu).collect::<Vec<_>>());
                    self.plan.items.push(Visit::Bandwidth(Streams {
                        pairs: pairs.clone(),
                        threads,
                        ops,
                        stores,
                        page,
                        elements: self.array(&pairs) / 8,
                        rounds: self.ask.rounds,
                        time: self.time(5.0),
                    }));
                }
            }
        }
    }

    /// The page size that the TLB disturbs least, of those asked for.
    fn largest_page(&self) -> PageSize {
        self.ask.pages.iter().copied().max().unwrap_or(PageSize::Small)
    }

    fn loaded(&mut self) {
        let page = self.largest_page();
        for mix in self.ask.mixes.clone() {
            for pair in self.pairs(&|pair| (Subject::Loaded { pair, mix, pause: 0 }, CellUnit::Ns)) {
                let chase = Chase { time: self.time(0.25), ..self.chase(page) };
                let cores = self.host.node(pair.cpu).map_or(1, |n| n.cores.len() as u32);
                let threads = self.ask.threads.unwrap_or(cores.saturating_sub(1)).max(1);
                let pauses = self.ask.pauses.clone();
                self.plan.items.push(Visit::Loaded(Load { pair, mix, pauses, chase, threads }));
            }
        }
    }

    fn core(&mut self) {
        let nodes: Vec<&HostNode> =
            self.host.nodes.iter().filter(|n| n.has_cpus() && self.wanted(n.id())).collect();
        let time = self.time(0.1);
        let mut none = true;
        for (i, a) in nodes.iter().enumerate() {
            for b in &nodes[i..] {
                let cpus = if a.node == b.node {
                    let two = self.host.some_cpus(a.id(), 2);
                    let [x, y] = two[..] else { continue };
                    (x, y)
                } else {
                    (self.host.some_cpus(a.id(), 1)[0], self.host.some_cpus(b.id(), 1)[0])
                };
                let homes: BTreeSet<NodeNumber> =
                    [a, b].iter().filter(|n| n.has_memory()).map(|n| n.id()).collect();
                for home in homes {
                    none = false;
                    self.plan.items.push(Visit::Core(CoreToCore { cpus, home, time }));
                }
            }
        }
        if none {
            self.plan.notes.push("core to core: it takes two CPUs, and there are fewer".into());
        }
    }

    fn migration(&mut self) {
        let nodes: Vec<NodeNumber> =
            self.host.with_memory().into_iter().filter(|n| self.wanted(*n)).collect();
        self.moves(&nodes);
        // On the diagonal nothing changes its node: what the mechanism itself costs, which one node
        // has, too.
        let touchers: Vec<NodeNumber> =
            self.host.with_cpus().into_iter().filter(|n| self.wanted(*n)).collect();
        for page in self.ask.pages.clone() {
            for from in &nodes {
                for to in nodes.iter().filter(|n| touchers.contains(n)) {
                    self.plan.items.push(Visit::NextTouch(self.a_move(*from, *to, page)));
                }
            }
        }
    }

    fn a_move(&self, from: NodeNumber, to: NodeNumber, page: PageSize) -> MigrationTest {
        let (buffer, rounds) = (self.ask.move_buffer, self.ask.rounds);
        MigrationTest { from, to, page, buffer, rounds, time: self.time(0.5) }
    }

    fn moves(&mut self, nodes: &[NodeNumber]) {
        if nodes.len() < 2 {
            self.plan
                .notes
                .push("migration: pages move between two nodes with memory, and there are fewer".into());
            return;
        }
        for page in self.ask.pages.clone() {
            for from in nodes {
                for to in nodes.iter().filter(|n| *n != from) {
                    self.plan.items.push(Visit::Migration(self.a_move(*from, *to, page)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_machine::host::from_synthetic;

    fn host(description: &str) -> Host {
        Host::like(&from_synthetic(description).unwrap())
    }

    fn count(plan: &MeasurePlan, kind: fn(&Visit) -> bool) -> usize {
        plan.items.iter().filter(|i| kind(i)).count()
    }

    #[test]
    fn four_nodes_have_every_pair() {
        let host = host("pack:4 [numa(memory=8GB)] l3:1(size=32MB) core:4 pu:1");
        let plan = plan(&host, &MeasureRequest::quick());
        assert_eq!(count(&plan, |i| matches!(i, Visit::Latency { .. })), 2 * 16);
        assert_eq!(count(&plan, |i| matches!(i, Visit::Bandwidth(_))), 2 * 16);
        assert_eq!(count(&plan, |i| matches!(i, Visit::Loaded(_))), 16);
        assert_eq!(count(&plan, |i| matches!(i, Visit::Core(_))), 4 + 6 * 2, "the line on either side");
        assert_eq!(count(&plan, |i| matches!(i, Visit::Migration(_))), 2 * 12);
        assert_eq!(count(&plan, |i| matches!(i, Visit::NextTouch(_))), 2 * 16);
        assert_eq!((plan.refused.len(), plan.notes.len()), (0, 0));
        let Visit::Latency { chase, .. } = &plan.items[0] else { panic!("latency comes first") };
        // A described cache is cut down to a power of two of sets.
        assert!(host.last_level_cache > 4 * (24 << 20), "four caches");
        assert_eq!(chase.buffer, 4 * host.last_level_cache);
    }

    #[test]
    fn in_a_hurry_buffers_are_cut_and_that_is_said() {
        // Four nodes with 384 MiB of last-level cache each.
        let host = host("pack:4 [numa(memory=64GB)] l3:1(size=384MB) core:8 pu:1");
        let cut = plan(&host, &MeasureRequest::quick());
        assert!(cut.estimate() <= Duration::from_secs(60), "{:?}", cut.estimate());
        assert!(cut.notes[0].contains("so that it takes about 60 s"), "{:?}", cut.notes);
        assert!(cut.notes[1].contains("less than 4 times"), "{:?}", cut.notes);
        let whole = plan(&host, &MeasureRequest { limit_s: None, ..MeasureRequest::quick() });
        let Visit::Latency { chase, .. } = &whole.items[0] else { panic!("latency comes first") };
        assert_eq!(chase.buffer, 4 * host.last_level_cache);
        // A small machine needs no cutting; arrays have four times the caches of the one node whose
        // threads run.
        let small = self::host("pack:4 [numa(memory=8GB)] l3:1(size=32MB) core:4 pu:1");
        let plan = plan(&small, &MeasureRequest::quick());
        assert_eq!(
            (plan.notes.len(), plan.estimate() <= Duration::from_secs(60)),
            (0, true),
            "{:?}",
            plan.notes
        );
        let arrays: Vec<u64> = plan
            .items
            .iter()
            .filter_map(|i| if let Visit::Bandwidth(s) = i { Some(s.elements * 8) } else { None })
            .collect();
        assert!(arrays.iter().all(|a| *a == small.last_level_cache), "{arrays:?}");
    }

    #[test]
    fn one_node_is_measured_and_the_rest_explained() {
        let plan = plan(&host("pack:1 [numa(memory=8GB)] core:2 pu:1"), &MeasureRequest::all());
        assert!(count(&plan, |i| matches!(i, Visit::Latency { .. })) == 2);
        assert!(count(&plan, |i| matches!(i, Visit::Core(_))) == 1);
        assert_eq!(plan.notes.iter().filter(|n| n.starts_with("migration:")).count(), 1);
        assert_eq!(count(&plan, |i| matches!(i, Visit::NextTouch(_))), 2, "what the mechanism costs");
    }

    #[test]
    fn what_cannot_be_is_refused_and_the_rest_is_done() {
        let mut host = host("pack:3 [numa(memory=8GB)] core:2 pu:1");
        host.nodes[1].memory = 0;
        host.nodes[2].cpus.clear();
        host.nodes[2].cores.clear();
        let ask = MeasureRequest {
            kinds: [MeasurementKind::Bandwidth].into(),
            pairs: vec![NodePair::new(0, 0), NodePair::new(0, 1), NodePair::new(2, 0), NodePair::new(0, 7)],
            pages: vec![PageSize::Small],
            stores: vec![Stores::Regular],
            ..MeasureRequest::quick()
        };
        let plan = super::plan(&host, &ask);
        let [Visit::Bandwidth(streams)] = &plan.items[..] else { panic!("{:?}", plan.items) };
        assert_eq!(streams.pairs, [NodePair::new(0, 0)]);
        let said: Vec<String> = plan.refused.iter().map(|c| format!("{:?}", c.verdict)).collect();
        assert_eq!(said.len(), 3);
        assert!(said[0].contains("node 1 has no memory"), "{said:?}");
        assert!(said[1].contains("node 2 has no CPUs"), "{said:?}");
        assert!(said[2].contains("node 7 does not exist"), "{said:?}");
        let ask = MeasureRequest {
            kinds: [MeasurementKind::Latency].into(),
            nodes: vec![NodeNumber(0), NodeNumber(1), NodeNumber(9)],
            ..ask
        };
        let plan = super::plan(&host, &ask);
        assert_eq!(plan.items.len(), 2, "both nodes' CPUs to the one memory");
        assert_eq!(plan.refused.len(), 4);
    }

    #[test]
    fn pairs_at_once_share_a_nodes_cores() {
        let host = host("pack:2 [numa(memory=8GB)] core:4 pu:1");
        let pairs = vec![NodePair::new(0, 0), NodePair::new(0, 1)];
        let ask =
            MeasureRequest { kinds: [MeasurementKind::Bandwidth].into(), pairs, ..MeasureRequest::quick() };
        let Visit::Bandwidth(streams) = &plan(&host, &ask).items[0] else { panic!("bandwidth") };
        assert_eq!((streams.pairs.len(), streams.threads), (2, 2));
    }
}
