//! The cost of the accesses to a page, by its home.

use alloc::vec::Vec;

use homenode_model::{NodeId, Ns};

use crate::PolicyContext;

/// Longest latency, about 2 ms. No memory is slower; longer ones count as this.
const LONGEST: u64 = 1 << 21;

/// The latency matrix, by the home first, for nodes that can be one.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    nodes: usize,
    /// Nodes with memory, ascending.
    homes: Vec<NodeId>,
    /// Latency from each node, by position of the home in `homes`. 32 bits, so that its product
    /// with a count fits 64 bits.
    cells: Vec<u32>,
    /// Position in `homes` by node; `homes.len()` if the node cannot be a home.
    position: Vec<usize>,
}

impl Latencies {
    pub(crate) fn new(context: &PolicyContext) -> Self {
        let (nodes, homes) = (context.nodes(), context.memory_nodes());
        let cell =
            |home: NodeId, node: usize| context.latency.at(NodeId(node as u16), home).0.min(LONGEST) as u32;
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
    /// The cost of one node's accesses to it.
    #[inline]
    pub(crate) fn part(&self, position: usize, node: usize, counts: &[u32]) -> u64 {
        u64::from(counts[node]) * u64::from(self.cells[position * self.nodes + node])
    }
    /// The largest latency that one node's accesses cause, and the sum over all nodes. A sum of
    /// 32-bit counts times [`LONGEST`] over 1024 nodes stays below 2^63.
    #[inline]
    pub(crate) fn cost(&self, position: usize, counts: &[u32]) -> Cost {
        let column = self.column(position);
        match self.nodes {
            // Loops of known length need no counter.
            2 => few::<2>(column, counts),
            4 => few::<4>(column, counts),
            8 => few::<8>(column, counts),
            _ => product(column, counts),
        }
    }
    /// The largest latency alone.
    #[inline(always)]
    pub(crate) fn largest(&self, position: usize, counts: &[u32]) -> u64 {
        let column = self.column(position);
        match (column.first_chunk::<4>(), counts.first_chunk::<4>()) {
            (Some(column), Some(counts)) if self.nodes == 4 => largest(column, counts),
            _ => largest(column, counts),
        }
    }
    /// As [`Latencies::cost`], for a home by its id; `None` if it has no memory.
    pub(crate) fn cost_at(&self, home: NodeId, counts: &[u32]) -> Option<Cost> {
        let position = self.position[home.index()];
        (position < self.homes.len()).then(|| self.cost(position, counts))
    }
}

#[inline(always)]
fn product(column: &[u32], counts: &[u32]) -> Cost {
    // Saturation never happens. It keeps compilers from wide registers, in which the largest of
    // four 64-bit numbers costs more than a comparison each.
    let times = counts.iter().zip(column).map(|(c, l)| u64::from(*c) * u64::from(*l));
    times.fold(Cost::default(), |c, t| Cost { largest: c.largest.max(t), sum: c.sum.saturating_add(t) })
}

#[inline(always)]
fn largest(column: &[u32], counts: &[u32]) -> u64 {
    counts.iter().zip(column).fold(0, |most, (c, l)| most.max(u64::from(*c) * u64::from(*l)))
}

#[inline(always)]
fn few<const N: usize>(column: &[u32], counts: &[u32]) -> Cost {
    match (column.first_chunk::<N>(), counts.first_chunk::<N>()) {
        (Some(column), Some(counts)) => product(column, counts),
        _ => product(column, counts),
    }
}

/// Nanoseconds, ordered by the largest latency first (Nikolopoulos minimises it), then by the sum
/// (Löf counts it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    pub(crate) largest: u64,
    pub(crate) sum: u64,
}

impl Cost {
    /// How much smaller the largest latency is than `before`'s.
    pub(crate) const fn gain(self, before: Self) -> Ns {
        Ns(before.largest.saturating_sub(self.largest))
    }
}
