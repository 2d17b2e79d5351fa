//! The room on the nodes while a policy draws up a list of moves.

use alloc::vec::Vec;

use homenode_model::NodeId;

use crate::homes::Homes;

/// The room on each node after the moves listed so far.
#[derive(Clone, Debug)]
pub(crate) struct Room(Vec<u64>);

impl Room {
    pub(crate) fn of(homes: &Homes, nodes: usize) -> Self {
        Self((0..nodes as u16).map(|n| homes.room(NodeId(n))).collect())
    }
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.0[node.index()] > 0
    }
    /// A page goes from one node to another.
    pub(crate) fn moved(&mut self, from: NodeId, to: NodeId) {
        self.0[from.index()] += 1;
        self.copied(to);
    }
    /// A copy comes to a node.
    pub(crate) fn copied(&mut self, to: NodeId) {
        self.0[to.index()] = self.0[to.index()].saturating_sub(1);
    }
}
