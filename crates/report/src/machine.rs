//! Nodes and latencies of the machine that a recording tells of.

use homenode_dataset::Dataset;
use homenode_dataset::tables::{Link, Node};
use homenode_model::{NodeId, Ps};

/// Largest number of nodes whose latencies are kept: a square of 2048 nodes takes 32 MiB.
const MOST_NODES: usize = 2048;
/// Up to this number of nodes with memory, each is tried as a home. Above, the accessing nodes are.
const MOST_CANDIDATES: usize = 64;

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct MachineSummary {
    /// Numbers of its nodes, ascending.
    pub nodes: Vec<NodeId>,
    /// Nodes that have memory, ascending. A node whose memory is not known has some.
    pub homes: Vec<NodeId>,
    /// Latencies, from node × home; empty where the recording has none.
    latency: Vec<Option<Ps>>,
    width: usize,
}

impl MachineSummary {
    /// Reads nodes and links.
    pub fn of(set: &Dataset) -> Self {
        let mut machine = Self::default();
        for node in set.rows::<Node>() {
            machine.nodes.push(node.node);
            if node.memory_bytes.is_none_or(|b| b.0 > 0) {
                machine.homes.push(node.node);
            }
        }
        for list in [&mut machine.nodes, &mut machine.homes] {
            list.sort_unstable();
            list.dedup();
        }
        let width = machine.nodes.last().map_or(0, |n| n.index() + 1);
        if width <= MOST_NODES {
            machine.width = width;
        }
        for link in set.rows::<Link>() {
            machine.add(&link);
        }
        machine
    }

    fn add(&mut self, link: &Link) {
        let (Some(latency), Some(at)) = (link.latency_ps, self.at(link.from_node, link.to_node)) else {
            return;
        };
        if self.latency.is_empty() {
            self.latency = vec![None; self.width * self.width];
        }
        self.latency[at] = Some(latency);
    }

    fn at(&self, node: NodeId, home: NodeId) -> Option<usize> {
        let inside = node.index() < self.width && home.index() < self.width;
        inside.then(|| node.index() * self.width + home.index())
    }

    /// Whether the recording has latencies.
    pub fn has_latencies(&self) -> bool {
        !self.latency.is_empty()
    }

    /// Latency of an access of `node` to memory of `home`; none where it is not known.
    pub fn latency(&self, node: NodeId, home: NodeId) -> Option<Ps> {
        self.at(node, home).and_then(|at| self.latency.get(at).copied().flatten())
    }

    /// The least time that these accesses take with one home for all of them. None where a
    /// latency is not known for every possible home.
    pub fn best(&self, accesses: &[(NodeId, u64)]) -> Option<Ps> {
        let time = |home: NodeId| -> Option<Ps> {
            let each = accesses.iter().map(|(node, n)| Some(self.latency(*node, home)?.times(*n)));
            each.sum()
        };
        if self.homes.len() <= MOST_CANDIDATES {
            return self.homes.iter().filter_map(|h| time(*h)).min();
        }
        let own = accesses.iter().map(|(n, _)| *n).filter(|n| self.homes.binary_search(n).is_ok());
        let own = own.filter_map(time).min();
        own.or_else(|| self.homes.iter().filter_map(|h| time(*h)).min())
    }
}
