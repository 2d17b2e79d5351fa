//! What a policy is told about the machine when it is made.

use alloc::vec::Vec;

use homenode_model::{Bytes, NodeId, Topology};

/// The machine as policies see it: how many pages fit where, and where memory is near.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyContext {
    /// Pages that fit on each node, by node id; 0 for a node without memory.
    pub capacity: Vec<u64>,
    /// For each node the nodes with memory, nearest first.
    pub nearest: Vec<Vec<NodeId>>,
    /// Page size.
    pub page: Bytes,
}

impl PolicyContext {
    /// The machine `topology` with pages of `page` bytes.
    pub fn of(topology: &Topology, page: Bytes) -> Self {
        Self {
            capacity: topology.nodes.iter().map(|n| n.memory.0 / page.0.max(1)).collect(),
            nearest: topology.node_ids().map(|n| topology.nearest_memory(n)).collect(),
            page,
        }
    }
    /// The same machine with other capacities, where part of the memory is in use by others.
    #[must_use]
    pub fn with_capacity(mut self, capacity: Vec<u64>) -> Self {
        self.capacity = capacity;
        self.capacity.resize(self.nearest.len(), 0);
        self
    }
    /// Nodes that can hold at least one page, ascending: the only ones that can be a home.
    pub fn memory_nodes(&self) -> Vec<NodeId> {
        (0u16..).zip(&self.capacity).filter(|(_, c)| **c > 0).map(|(n, _)| NodeId(n)).collect()
    }
}
