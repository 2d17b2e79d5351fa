//! What an access costs where, on one machine with one binding: the constants of stage 3.

use std::num::NonZeroU32;

use homenode_model::{Bytes, CpuId, LineNo, NodeId, Topology};

use crate::memory::{MemoryOptions, Percent, WORD};

/// Transactions of one thread with one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Misses: the thread waits, the controller works.
    pub(super) misses: u32,
    /// Those of them that go on with a stream: a part of the latency is hidden.
    pub(super) streamed: u32,
    /// Upgrades: the thread waits.
    pub(super) upgrades: u32,
    /// Hits that cost something if the page is remote and remote memory is not cached.
    pub(super) hits: u32,
    /// Write-backs: the controller works.
    pub(super) write_backs: u32,
}

impl Counts {
    pub(super) const NONE: Self = Self { misses: 0, streamed: 0, upgrades: 0, hits: 0, write_backs: 0 };

    pub(super) fn add(&mut self, other: Self) {
        self.misses = self.misses.saturating_add(other.misses);
        self.streamed = self.streamed.saturating_add(other.streamed);
        self.upgrades = self.upgrades.saturating_add(other.upgrades);
        self.hits = self.hits.saturating_add(other.hits);
        self.write_backs = self.write_backs.saturating_add(other.write_backs);
    }
}

/// Latencies and service times in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Nodes, with memory or without.
    pub(super) nodes: usize,
    /// Nodes with memory: the homes that a page may have. A home is an index into this.
    pub(super) homes: Vec<NodeId>,
    /// Pages that fit on each home.
    pub(super) room: Vec<u64>,
    /// The node of each thread.
    pub(super) threads: Vec<NodeId>,
    /// Time of a tick.
    pub(super) tick: u64,
    /// Accesses that a thread may have under way.
    pub(super) outstanding: u64,
    /// log2 of the 64-byte lines of a page.
    pub(super) lines: u32,
    /// Least and most that it costs the mover to move a page.
    pub(super) moving: (u64, u64),
    /// 64-byte lines of a line of the last cache.
    pub(super) line_step: u64,
    pub(super) remote_cacheable: bool,
    coverage: Percent,
    latency: Vec<u64>,
    line: Vec<u64>,
    word: Vec<u64>,
    links: Vec<u64>,
}

impl Costs {
    pub(super) fn new(machine: &Topology, binding: &[CpuId], page: Bytes, options: &MemoryOptions) -> Self {
        let outstanding = options.outstanding.map_or(machine.core.outstanding, NonZeroU32::get);
        let homes = machine.nodes_with_memory();
        let line = machine.caches.last().map_or(Bytes(LineNo::BYTES), |c| c.line);
        let service = |bytes: Bytes| {
            homes.iter().map(|h| machine.nodes[h.index()].bandwidth.occupancy(bytes).0).collect()
        };
        let pairs = || machine.node_ids().flat_map(|a| homes.iter().map(move |h| (a, *h)));
        let others = binding.len().saturating_sub(1) as u64;
        Self {
            nodes: machine.nodes.len(),
            room: homes.iter().map(|h| machine.nodes[h.index()].memory.0 / page.0).collect(),
            threads: binding.iter().map(|c| machine.node_of(*c)).collect(),
            tick: machine.core.access.0,
            outstanding: u64::from(outstanding.max(1)),
            lines: page.0.trailing_zeros() - LineNo::SHIFT,
            moving: (machine.migration.of(page, 0).ps().0, machine.migration.of(page, others).ps().0),
            line_step: (line.0 / LineNo::BYTES).max(1),
            remote_cacheable: machine.remote_cacheable,
            coverage: options.coverage,
            latency: pairs().map(|(n, h)| machine.latency.at(n, h).ps().0).collect(),
            line: service(line),
            word: service(WORD),
            links: pairs()
                .map(|(n, h)| if n == h { 0 } else { machine.link.at(h, n).occupancy(line).0 })
                .collect(),
            homes,
        }
    }
    /// Latency of memory at `home` for CPUs of `node`.
    #[inline]
    pub(super) fn latency(&self, node: usize, home: usize) -> u64 {
        self.latency[node * self.homes.len() + home]
    }
    /// Latency of the memory nearest to `node`.
    pub(super) fn nearest(&self, node: usize) -> u64 {
        (0..self.homes.len()).map(|h| self.latency(node, h)).min().unwrap_or(0)
    }
    #[inline]
    fn cached(&self, node: usize, home: usize) -> bool {
        self.remote_cacheable || self.homes[home].index() == node
    }
    /// Hits of a cache that go to `home` all the same, for remote memory is not cached there.
    pub(super) fn references(&self, c: Counts, node: usize, home: usize) -> u64 {
        if self.cached(node, home) { 0 } else { u64::from(c.hits) }
    }
    /// Σ latency that a thread of `node` meets.
    #[inline]
    pub(super) fn waiting(&self, c: Counts, node: usize, home: usize) -> u64 {
        let hits = if self.homes[home].index() == node { 0 } else { u64::from(c.hits) };
        self.latencies(c, hits, self.latency(node, home))
    }
    /// The least that a thread of `node` can wait: hits are free on its own node.
    pub(super) fn waiting_least(&self, c: Counts, node: usize) -> u64 {
        self.latencies(c, 0, self.nearest(node))
    }
    #[inline]
    fn latencies(&self, c: Counts, hits: u64, latency: u64) -> u64 {
        let whole = u64::from(c.misses - c.streamed.min(c.misses)) + u64::from(c.upgrades) + hits;
        let part = u64::from(c.streamed).saturating_mul(self.coverage.off(latency));
        whole.saturating_mul(latency).saturating_add(part)
    }
    /// Time at work of the home's controller.
    #[inline]
    pub(super) fn serving(&self, c: Counts, node: usize, home: usize) -> u64 {
        if self.cached(node, home) {
            (u64::from(c.misses) + u64::from(c.write_backs)).saturating_mul(self.line[home])
        } else {
            (u64::from(c.misses) + u64::from(c.upgrades) + u64::from(c.hits)).saturating_mul(self.word[home])
        }
    }
    /// Time at work on one line of all controllers, and of all links.
    pub(super) fn last_lines(&self) -> (u64, u64) {
        let sum = |times: &[u64]| times.iter().fold(0, |sum: u64, t| sum.saturating_add(*t));
        (sum(&self.line).max(sum(&self.word)), sum(&self.links))
    }
    /// Time at work of the link to a thread of another node, for lines it fetches.
    #[inline]
    pub(super) fn carrying(&self, c: Counts, node: usize, home: usize) -> u64 {
        if self.cached(node, home) {
            u64::from(c.misses).saturating_mul(self.links[node * self.homes.len() + home])
        } else {
            0
        }
    }
}
