//! What the accesses to a page cost, by where it lives.

use alloc::vec::Vec;

use homenode_model::{NodeId, Ns};

use crate::PolicyContext;

/// The latency matrix, by the home first, for nodes that can be one.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    nodes: usize,
    /// Nodes with memory, ascending.
    homes: Vec<NodeId>,
    /// Latency from each node, by position of the home in `homes`. 32 bits, so that a count times it needs 64.
    cells: Vec<u32>,
    /// Position in `homes` by node; `homes.len()` for none.
    position: Vec<usize>,
}

impl Latencies {
    pub(crate) fn new(context: &PolicyContext) -> Self {
        let (nodes, homes) = (context.nodes(), context.memory_nodes());
        let cell = |home: NodeId, node: usize| {
            u32::try_from(context.latency.at(NodeId(node as u16), home).0).unwrap_or(u32::MAX)
        };
        let cells = homes.iter().flat_map(|h| (0..nodes).map(|n| cell(*h, n))).collect();
        let of = |n: u16| homes.iter().position(|h| h.0 == n).unwrap_or(homes.len());
        let position = (0..nodes as u16).map(of).collect();
        Self { nodes, homes, cells, position }
    }
    /// Nodes that can be a home, ascending.
    pub(crate) fn homes(&self) -> &[NodeId] {
        &self.homes
    }
    fn column(&self, position: usize) -> &[u32] {
        &self.cells[position * self.nodes..(position + 1) * self.nodes]
    }
    /// Time that each node spends on a page of `counts` which lives on the home at `position`.
    fn by_node<'a>(&'a self, position: usize, counts: &'a [u32]) -> impl Iterator<Item = u64> + 'a {
        counts.iter().zip(self.column(position)).map(|(c, l)| u64::from(*c) * u64::from(*l))
    }
    /// The largest latency that one node's accesses cause, and the sum over all nodes. The sum saturates only beyond
    /// 65 536 nodes' worth.
    #[inline]
    pub(crate) fn cost(&self, position: usize, counts: &[u32]) -> Cost {
        let add = |c: Cost, t: u64| Cost { largest: c.largest.max(t), sum: c.sum.saturating_add(t) };
        self.by_node(position, counts).fold(Cost::default(), add)
    }
    /// As [`Latencies::cost`], for a home by its id; `None` if it has no memory.
    pub(crate) fn cost_at(&self, home: NodeId, counts: &[u32]) -> Option<Cost> {
        let position = self.position[home.index()];
        (position < self.homes.len()).then(|| self.cost(position, counts))
    }
}

/// Nanoseconds, ordered by the largest first: what Nikolopoulos minimises, then what Löf counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    pub(crate) largest: u64,
    pub(crate) sum: u64,
}

impl Cost {
    /// How much less the largest latency is than `before`.
    pub(crate) const fn gain(self, before: Self) -> Ns {
        Ns(before.largest.saturating_sub(self.largest))
    }
}
