//! The machine as a policy sees it when it is made.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use homenode_model::{Bytes, LineNo, Matrix, MbPerS, NodeId, Ns, Placement, Ps, Topology};

/// The machine as policies see it: capacities, distances, and the costs of accesses and moves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyContext {
    /// Pages that fit on each node, by node id; 0 for a node without memory.
    pub capacity: Vec<u64>,
    /// For each node the nodes with memory, nearest first.
    pub nearest: Vec<Vec<NodeId>>,
    /// Page size.
    pub page: Bytes,
    /// Latency of an access without contention, (CPU's node, memory's node).
    pub latency: Matrix<Ns>,
    /// Bandwidth of each node's memory, by node id; 0 = not limited.
    pub bandwidth: Vec<MbPerS>,
    /// Bytes of an access to main memory.
    pub line: Bytes,
    /// Cost of moving one page for the thread that moves it, while all CPUs run the program.
    pub migration: Ns,
    /// Nodes that the program's threads run on, ascending; empty if the driver does not know them.
    pub running: Vec<NodeId>,
    /// Homes known in advance, for the policy `plan`.
    pub plan: Option<Arc<Placement>>,
}

impl PolicyContext {
    /// The machine `topology` with pages of `page` bytes.
    pub fn of(topology: &Topology, page: Bytes) -> Self {
        let others = (topology.cpus.len() as u64).saturating_sub(1);
        Self {
            capacity: topology.nodes.iter().map(|n| n.memory.0 / page.0.max(1)).collect(),
            nearest: topology.node_ids().map(|n| topology.nearest_memory(n)).collect(),
            page,
            latency: topology.latency.clone(),
            bandwidth: topology.nodes.iter().map(|n| n.bandwidth).collect(),
            line: topology.caches.last().map_or(Bytes(LineNo::BYTES), |c| c.line),
            migration: topology.migration.of(page, others),
            running: Vec::new(),
            plan: None,
        }
    }
    /// The same machine with the nodes that the program's threads run on, in any order.
    #[must_use]
    pub fn with_running(mut self, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let nodes: BTreeSet<NodeId> = nodes.into_iter().collect();
        self.running = nodes.into_iter().collect();
        self
    }
    /// The same machine with other capacities, where part of the memory is in use by others.
    #[must_use]
    pub fn with_capacity(mut self, capacity: Vec<u64>) -> Self {
        self.capacity = capacity;
        self.capacity.resize(self.nearest.len(), 0);
        self
    }
    /// The same machine with homes known in advance.
    #[must_use]
    pub fn with_plan(mut self, plan: Arc<Placement>) -> Self {
        self.plan = Some(plan);
        self
    }
    /// Number of nodes.
    pub const fn nodes(&self) -> usize {
        self.nearest.len()
    }
    /// Nodes that can hold at least one page, ascending: the only ones that can be a home.
    pub fn memory_nodes(&self) -> Vec<NodeId> {
        (0u16..).zip(&self.capacity).filter(|(_, c)| **c > 0).map(|(n, _)| NodeId(n)).collect()
    }
    /// Nodes with memory that threads run on; if there are none, all nodes with memory.
    pub fn distribution_nodes(&self) -> Vec<NodeId> {
        let all = self.memory_nodes();
        let with_threads: Vec<NodeId> = all.iter().copied().filter(|n| self.running.contains(n)).collect();
        if with_threads.is_empty() { all } else { with_threads }
    }
    /// How long an access keeps the memory of `node` busy.
    pub fn occupancy(&self, node: NodeId) -> Ps {
        self.bandwidth.get(node.index()).map_or(Ps::ZERO, |b| b.occupancy(self.line))
    }
}
