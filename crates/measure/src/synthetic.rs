//! A prober that computes: what a machine's description says, in the cells of a measurement.
//!
//! It stands in for the machine in tests and where somebody wants to see a report of a machine that
//! is not there. Every proof is what a faultless machine would show.

use std::collections::BTreeMap;

use homenode_machine::Machine;
use homenode_model::{Bytes, NodeId};

use crate::ask::IDLE;
use crate::axes::{CpuNumber, NodeNumber, NodePair, Op, PageSize};
use crate::cell::{CellUnit, MeasuredCell, Proof, Subject};
use crate::host::Host;
use crate::item::{Load, MigrationTest, Streams, Visit};
use crate::prober::Prober;
use crate::stats::SampleSummary;
use crate::streaming;

/// What a page walk adds to a load with 4 KiB pages, where the page tables are in a cache; in
/// nanoseconds. Assumed.
const WALK: f64 = 20.0;
/// What one core moves at most, in 10^6 bytes a second. Assumed.
const CORE: f64 = 12_000.0;
/// Bandwidth of what the description does not limit. Assumed.
const UNLIMITED: f64 = 1e6;

/// Latency at SLIT distance 10, in nanoseconds, where firmware says nothing else. Assumed.
const LOCAL: f64 = 100.0;
/// Bandwidth at that distance, in 10^6 bytes a second. Assumed.
const LOCAL_RATE: f64 = 20_000.0;
/// What moving a page costs whatever its size, and each of its bytes, in nanoseconds. Assumed.
const MOVING: (f64, f64) = (2000.0, 0.3);

/// Computes cells of a machine that is not here.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// None: a recording of a host, whose distances and firmware tables are all there is.
    machine: Option<Machine>,
    host: Host,
}

impl Synthetic {
    /// Of that machine.
    pub fn new(machine: &Machine) -> Self {
        Self { machine: Some(machine.clone()), host: Host::like(machine) }
    }

    /// Of a recorded host: from HMAT where it is, else from SLIT distances.
    pub fn recorded(host: &Host) -> Self {
        Self { machine: None, host: host.clone() }
    }

    fn index(machine: &Machine, node: NodeNumber) -> NodeId {
        let os = machine.os.as_ref();
        let at = os.and_then(|os| os.nodes.iter().position(|n| *n == u32::from(node.0)));
        NodeId(at.map_or(node.0, |i| i as u16))
    }

    fn exists(&self, pair: NodePair) -> bool {
        [pair.cpu, pair.memory].iter().all(|n| self.host.node(*n).is_some())
    }

    /// Nanoseconds.
    fn latency(&self, pair: NodePair, page: PageSize) -> f64 {
        let ns = match &self.machine {
            Some(m) => m.topology.latency.at(Self::index(m, pair.cpu), Self::index(m, pair.memory)).0 as f64,
            None => self
                .host
                .firmware(pair.cpu, pair.memory)
                .and_then(|f| f.read_ns)
                .map_or_else(|| LOCAL * self.farther(pair), |ns| ns as f64),
        };
        if page == PageSize::Small { ns + WALK } else { ns }
    }

    /// How many times as far as local memory.
    fn farther(&self, pair: NodePair) -> f64 {
        self.host.distance(pair.cpu, pair.memory).map_or(1.0, |d| f64::from(d.max(1)) / 10.0)
    }

    /// 10^6 bytes a second of traffic, whoever else is there left out.
    fn path(&self, pair: NodePair) -> f64 {
        let Some(machine) = &self.machine else {
            let said = self.host.firmware(pair.cpu, pair.memory).and_then(|f| f.read_mb_per_s);
            return said.map_or_else(|| LOCAL_RATE / self.farther(pair), |mb| mb as f64);
        };
        let t = &machine.topology;
        let (from, to) = (Self::index(machine, pair.cpu), Self::index(machine, pair.memory));
        let mut limits = vec![t.nodes[to.index()].bandwidth.0];
        if from != to {
            limits.extend([t.link.at(from, to).0, t.nodes[from.index()].port.0, t.nodes[to.index()].port.0]);
        }
        limits.into_iter().filter(|l| *l > 0).map(|l| l as f64).fold(UNLIMITED, f64::min)
    }

    fn proof(&self, pair: NodePair, cpu: CpuNumber, bytes: u64, page: PageSize) -> Proof {
        let pages = BTreeMap::from([(pair.memory, bytes.div_ceil(page.bytes()))]);
        Proof {
            cpu: Some(cpu),
            cpu_read: vec![cpu, cpu],
            node: Some(pair.memory),
            before: pages.clone(),
            after: pages,
            came_from: None,
            by: "description".into(),
            bytes,
            huge: if page == PageSize::Huge { bytes } else { 0 },
        }
    }

    /// As a prober that allocates would say it.
    fn too_large(&self, item: &Visit) -> Option<MeasuredCell> {
        let needs: Vec<(NodeNumber, u64)> = match item {
            Visit::Latency { pair, chase } => vec![(pair.memory, chase.buffer)],
            Visit::Bandwidth(s) => s.pairs.iter().map(|p| (p.memory, 24 * s.elements)).collect(),
            Visit::Loaded(l) => vec![(l.pair.memory, 2 * l.chase.buffer)],
            Visit::Core(_) => Vec::new(),
            Visit::Migration(m) | Visit::NextTouch(m) => vec![(m.from, m.buffer), (m.to, m.buffer)],
        };
        needs.into_iter().find_map(|(node, bytes)| {
            let free = self.host.node(node)?.free;
            (bytes > free).then(|| item.no_room(node, bytes, free))
        })
    }

    fn first(&self, node: NodeNumber) -> CpuNumber {
        self.host.some_cpus(node, 1).first().copied().unwrap_or(CpuNumber(0))
    }

    /// What the misses that one CPU of `pair` has under way bring, in 10^6 bytes a second: a line
    /// each in the time of a latency.
    fn misses(&self, pair: NodePair) -> f64 {
        let Some(machine) = &self.machine else { return CORE };
        let (core, cache) = (&machine.topology.core, machine.topology.caches.last());
        let line = cache.map_or(64, |c| c.line.0) as f64;
        let ns = self.latency(pair, PageSize::Huge).max(1.0);
        (f64::from(core.outstanding.max(1)) * line * 1e3 / ns).min(CORE)
    }

    /// The rate of each pair, in 10^6 bytes a second.
    fn rates(&self, ask: &Streams, op: Op) -> Vec<f64> {
        if let Some(machine) = self.machine.as_ref().filter(|m| m.bus.is_some() || m.window.is_some()) {
            let nodes = |p: NodePair| (Self::index(machine, p.cpu), Self::index(machine, p.memory));
            return streaming::rates(machine, ask, op, nodes, |p| self.latency(p, PageSize::Huge));
        }
        // Pairs at one memory share its controller and its port, those of one node its own port.
        let remote = |p: &&NodePair| p.cpu != p.memory;
        let rate = |pair: NodePair| {
            let share = |limit: f64, of: usize| limit / of.max(1) as f64;
            let at = ask.pairs.iter().filter(|p| p.memory == pair.memory).count();
            let mut rate = share(self.path(pair), at).min(self.misses(pair) * f64::from(ask.threads));
            if let (Some(m), true) = (&self.machine, remote(&&pair)) {
                let out = ask.pairs.iter().filter(remote).filter(|p| p.cpu == pair.cpu).count();
                let port = m.topology.nodes[Self::index(m, pair.cpu).index()].port.0;
                if port > 0 {
                    rate = rate.min(share(port as f64, out));
                }
            }
            rate
        };
        ask.pairs.iter().map(|pair| rate(*pair)).collect()
    }

    fn streams(&self, ask: &Streams) -> Vec<MeasuredCell> {
        let cell = |op: Op, share: Option<usize>| {
            let rates = self.rates(ask, op);
            let mine = || ask.pairs.iter().zip(&rates).enumerate();
            let mine = || mine().filter(|(i, _)| share.is_none_or(|s| s == *i)).map(|(_, of)| of);
            let value = mine().map(|(_, rate)| rate).sum();
            let proof = |p: &NodePair| self.proof(*p, self.first(p.cpu), 24 * ask.elements, ask.page);
            let proofs = mine().map(|(p, _)| proof(p)).collect();
            let (pairs, threads, stores, page) = (ask.pairs.clone(), ask.threads, ask.stores, ask.page);
            number(
                Subject::Bandwidth { pairs, share, threads, op, stores, page },
                CellUnit::MbPerS,
                value,
                proofs,
            )
        };
        let shares = |op: &Op| {
            let each = if ask.pairs.len() > 1 { ask.pairs.len() } else { 0 };
            std::iter::once(None).chain((0..each).map(Some)).map(|s| cell(*op, s)).collect::<Vec<_>>()
        };
        ask.ops.iter().flat_map(shares).collect()
    }

    /// A queue with one server: latency grows as 1 / (1 − utilisation).
    fn loaded(&self, ask: &Load) -> Vec<MeasuredCell> {
        let most = self.path(ask.pair).min(CORE * f64::from(ask.threads));
        let point = |pause: &u32| {
            let rate = if *pause == IDLE { 0.0 } else { most * 0.95 / (1.0 + f64::from(*pause) / 500.0) };
            let ns = self.latency(ask.pair, ask.chase.page) / (1.0 - rate / self.path(ask.pair));
            let subject = Subject::Loaded { pair: ask.pair, mix: ask.mix, pause: *pause };
            let proof = self.proof(ask.pair, self.first(ask.pair.cpu), ask.chase.buffer, ask.chase.page);
            let mut cell = number(subject, CellUnit::Ns, ns, vec![proof]);
            cell.more.insert("injected_mb_per_s".into(), rate);
            cell
        };
        ask.pauses.iter().map(point).collect()
    }

    /// Of a page, in nanoseconds.
    fn moving(&self, ask: &MigrationTest) -> f64 {
        let bytes = ask.page.bytes();
        let of = |m: &Machine| m.topology.migration.of(Bytes(bytes), 0).0.max(1) as f64;
        self.machine.as_ref().map_or_else(|| MOVING.0 + MOVING.1 * bytes as f64, of)
    }

    /// The toucher moves the page, and pays what moving costs.
    fn next_touch(&self, ask: &MigrationTest) -> MeasuredCell {
        let ns = self.moving(ask);
        let subject = Subject::NextTouch { from: ask.from, to: ask.to, page: ask.page };
        let pair = NodePair { cpu: ask.to, memory: ask.to };
        let mut proof = self.proof(pair, self.first(ask.to), ask.buffer, ask.page);
        if ask.from != ask.to {
            proof.came_from = Some(ask.from);
            proof.before = BTreeMap::from([(ask.from, ask.buffer.div_ceil(ask.page.bytes()))]);
        }
        let mut cell = number(subject, CellUnit::Ns, ns, vec![proof]);
        cell.more.insert("mb_per_s".into(), ask.page.bytes() as f64 * 1e3 / ns);
        cell
    }

    fn migration(&self, ask: &MigrationTest) -> MeasuredCell {
        let ns = self.moving(ask);
        let subject = Subject::Migration { from: ask.from, to: ask.to, page: ask.page };
        let pair = NodePair { cpu: ask.from, memory: ask.from };
        let proof = self.proof(pair, self.first(ask.from), ask.buffer, ask.page);
        let mut cell = number(subject, CellUnit::MbPerS, ask.page.bytes() as f64 * 1e3 / ns, vec![proof]);
        cell.more.insert("pages_per_s".into(), 1e9 / ns);
        cell.more.insert("ns_per_page".into(), ns);
        cell
    }
}

fn number(subject: Subject, unit: CellUnit, value: f64, proofs: Vec<Proof>) -> MeasuredCell {
    match SampleSummary::of(&[value, value]) {
        Some(summary) => MeasuredCell::of(subject, unit, value, summary, proofs),
        None => MeasuredCell::absent(subject, unit, "the description gives no finite number", "correct it"),
    }
}

impl Prober for Synthetic {
    fn probe(&mut self, item: &Visit, _stop: &dyn Fn() -> bool) -> Vec<MeasuredCell> {
        let unknown = |pairs: &[NodePair]| pairs.iter().any(|p| !self.exists(*p));
        if let Some(cell) = self.too_large(item) {
            return vec![cell];
        }
        match item {
            Visit::Latency { pair, chase } if !unknown(&[*pair]) => {
                let proof = self.proof(*pair, self.first(pair.cpu), chase.buffer, chase.page);
                let subject = Subject::Latency { pair: *pair, page: chase.page };
                vec![number(subject, CellUnit::Ns, self.latency(*pair, chase.page), vec![proof])]
            }
            Visit::Bandwidth(ask) if !unknown(&ask.pairs) => self.streams(ask),
            Visit::Loaded(ask) if !unknown(&[ask.pair]) => self.loaded(ask),
            Visit::Core(ask) => {
                let nodes = (self.host.node_of(ask.cpus.0), self.host.node_of(ask.cpus.1));
                let (Some(a), Some(b)) = nodes else { return vec![item.absent("a CPU does not exist")] };
                let pair = NodePair { cpu: a, memory: ask.home };
                // The line comes from the other's cache, about as far away as its memory.
                let ns = self.latency(NodePair { cpu: a, memory: b }, PageSize::Huge);
                let subject = Subject::Core { cpus: ask.cpus, nodes: (a, b), home: ask.home };
                let proof = self.proof(pair, ask.cpus.0, 4096, PageSize::Small);
                vec![number(subject, CellUnit::Ns, ns, vec![proof])]
            }
            Visit::Migration(ask) if !unknown(&[NodePair { cpu: ask.from, memory: ask.to }]) => {
                vec![self.migration(ask)]
            }
            Visit::NextTouch(ask) if !unknown(&[NodePair { cpu: ask.to, memory: ask.from }]) => {
                vec![self.next_touch(ask)]
            }
            other => vec![other.absent("a node does not exist")],
        }
    }
}
