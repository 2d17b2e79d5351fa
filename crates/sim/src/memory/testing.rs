//! Machines and streams for the tests, as short as the sentence that describes them.

use homenode_model::{
    Bytes, Core, CpuId, LineNo, Matrix, MbPerS, MigrationCost, Node, Ns, Ps, Ticks, Topology,
};
use homenode_policy::{PolicyContext, build};

use super::{Memory, MemoryError, MemoryOptions, Outcome};
use crate::stream::{Cause, MemChunk, MemItem, MemWhat};
use homenode_order::step::{Mark, Sync, SyncId};

/// Page size of all tests.
pub(crate) const PAGE: Bytes = Bytes(4096);
/// Lines a page has.
pub(crate) const LINES: u64 = 64;

/// A machine under construction. Unlimited bandwidths, 100 ns local, 250 ns remote, blocking CPUs,
/// 1 ns a tick, moves for nothing.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub nodes: u16,
    pub cpus: u32,
    pub local: u64,
    pub remote: u64,
    pub controller: u64,
    pub port: u64,
    pub link: u64,
    pub access: u64,
    pub outstanding: u32,
    pub pages: Vec<u64>,
    pub migration: MigrationCost,
    pub remote_cacheable: bool,
    pub counts_references: bool,
    pub options: MemoryOptions,
}

/// `nodes` nodes of 4 CPUs each, and memory for 1000 pages.
pub(crate) fn machine(nodes: u16) -> Machine {
    Machine {
        nodes,
        cpus: 4,
        local: 100,
        remote: 250,
        controller: 0,
        port: 0,
        link: 0,
        access: 1000,
        outstanding: 1,
        pages: vec![1000; usize::from(nodes)],
        migration: MigrationCost::default(),
        remote_cacheable: true,
        counts_references: false,
        options: MemoryOptions::default(),
    }
}

impl Machine {
    pub(crate) fn build(&self) -> Topology {
        let nodes = usize::from(self.nodes);
        let node = |n: usize| Node {
            memory: PAGE.times(self.pages[n]),
            bandwidth: MbPerS(self.controller),
            port: MbPerS(self.port),
        };
        Topology {
            name: "test".into(),
            nodes: (0..nodes).map(node).collect(),
            cpus: (0..u32::from(self.nodes) * self.cpus)
                .map(|c| homenode_model::NodeId((c / self.cpus) as u16))
                .collect(),
            latency: Matrix::from_fn(nodes, |a, b| Ns(if a == b { self.local } else { self.remote })),
            link: Matrix::from_fn(nodes, |_, _| MbPerS(self.link)),
            caches: Vec::new(),
            page_sizes: vec![PAGE],
            core: Core { access: Ps(self.access), outstanding: self.outstanding },
            migration: self.migration.clone(),
            remote_cacheable: self.remote_cacheable,
            counts_references: self.counts_references,
        }
    }
    /// The first CPU of `node`, and so on.
    pub(crate) fn cpu(&self, node: u32, i: u32) -> CpuId {
        CpuId(node * self.cpus + i)
    }
    /// One thread on each node.
    pub(crate) fn spread(&self) -> Vec<CpuId> {
        (0..u32::from(self.nodes)).map(|n| self.cpu(n, 0)).collect()
    }
    pub(crate) fn memory(&self, binding: &[CpuId], policy: &str) -> Memory {
        let topology = self.build();
        let policy =
            build(policy, &PolicyContext::of(&topology, PAGE).with_plan(Default::default())).unwrap();
        Memory::new(&topology, binding, PAGE, policy, &self.options).unwrap()
    }
    pub(crate) fn try_run(
        &self,
        binding: &[CpuId],
        policy: &str,
        threads: &[Program],
    ) -> Result<Outcome, MemoryError> {
        let mut memory = self.memory(binding, policy);
        memory.feed(&whole(threads))?;
        memory.finish()
    }
    pub(crate) fn run(&self, binding: &[CpuId], policy: &str, threads: &[Program]) -> Outcome {
        let outcome = self.try_run(binding, policy, threads).unwrap();
        check(&outcome, self);
        outcome
    }
}

/// What holds for every outcome.
pub(crate) fn check(outcome: &Outcome, machine: &Machine) {
    for t in &outcome.threads {
        assert_eq!(t.busy + t.memory + t.wait + t.moving, t.end, "a thread's time is accounted for");
    }
    for (page, home) in outcome.placement.iter() {
        assert!(machine.pages[home.index()] > 0, "{page} on a node without memory");
    }
    for (used, capacity) in outcome.used.iter().zip(&machine.pages) {
        assert!(used <= capacity);
    }
    let l = outcome.latency;
    assert!(l.floor <= l.bound && l.bound <= l.placement, "{l:?}");
}

/// A stream in one chunk.
pub(crate) fn whole(threads: &[Program]) -> MemChunk {
    let threads: Vec<Vec<MemItem>> = threads.iter().map(|p| p.items.clone()).collect();
    let items = threads.iter().map(|t| t.len() as u64).sum();
    MemChunk { threads, items, last: true }
}

/// What one thread does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub items: Vec<MemItem>,
    tick: u64,
}

impl Program {
    pub(crate) fn new() -> Self {
        Self::default()
    }
    fn push(mut self, what: MemWhat) -> Self {
        self.items.push(MemItem { tick: Ticks(self.tick), what });
        self
    }
    /// Ticks go by.
    pub(crate) fn compute(mut self, ticks: u64) -> Self {
        self.tick += ticks;
        self
    }
    pub(crate) fn access(self, page: u64, line: u64, write: bool, cause: Cause) -> Self {
        self.push(MemWhat::Access { line: LineNo(page * LINES + line), write, cause })
    }
    pub(crate) fn read(self, page: u64) -> Self {
        self.access(page, 0, false, Cause::Capacity)
    }
    /// Reads each of `pages`, `times` times over.
    pub(crate) fn reads(mut self, pages: std::ops::Range<u64>, times: u64) -> Self {
        for i in 0..times {
            for page in pages.clone() {
                self = self.access(page, i % LINES, false, Cause::Capacity);
            }
        }
        self
    }
    pub(crate) fn cache_time(self, ps: u64) -> Self {
        self.push(MemWhat::CacheTime(Ps(ps)))
    }
    /// Touches a page without an access to memory.
    pub(crate) fn touch(self, page: u64) -> Self {
        self.push(MemWhat::Touch { line: LineNo(page * LINES) })
    }
    pub(crate) fn signal(self, id: u32) -> Self {
        self.push(MemWhat::Sync(Sync::Signal(SyncId(id))))
    }
    pub(crate) fn wait(self, id: u32, n: u32) -> Self {
        self.push(MemWhat::Sync(Sync::Wait { id: SyncId(id), n }))
    }
    /// A barrier of `n` threads.
    pub(crate) fn barrier(self, id: u32, n: u32) -> Self {
        self.signal(id).wait(id, n)
    }
    pub(crate) fn mark(self, mark: Mark) -> Self {
        self.push(MemWhat::Mark(mark))
    }
    pub(crate) fn end(self) -> Self {
        self.push(MemWhat::Sync(Sync::End))
    }
}
