//! Where pages live before a policy has seen any access.

use homenode_model::{NodeId, PageNo};

use alloc::vec::Vec;

use crate::PolicyContext;

/// The placement that a policy starts from. The policy's own decisions come afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initial {
    /// On the node of the first toucher. With serial initialisation, all pages are on one node
    /// (Löf's SI).
    #[default]
    FirstTouch,
    /// Interleaved by page number (Tao's and Nikolopoulos' experiments start so).
    RoundRobin,
    /// All on the first node with memory.
    OneNode,
    /// On the node that is farthest from the first toucher: the worst case.
    Farthest,
}

/// Answers faults by [`Initial`].
#[derive(Clone, Debug)]
pub(crate) struct Start {
    how: Initial,
    nodes: Vec<NodeId>,
    farthest: Vec<Option<NodeId>>,
}

impl Start {
    pub(crate) fn new(context: &PolicyContext, how: Initial) -> Self {
        let farthest = context.nearest.iter().map(|n| n.last().copied()).collect();
        Self { how, nodes: context.memory_nodes(), farthest }
    }
    /// The home for a page that `toucher` touches first.
    pub(crate) fn wanted(&self, page: PageNo, toucher: NodeId) -> NodeId {
        let wanted = match self.how {
            Initial::FirstTouch => None,
            Initial::RoundRobin => {
                page.0.checked_rem(self.nodes.len() as u64).map(|t| self.nodes[t as usize])
            }
            Initial::OneNode => self.nodes.first().copied(),
            Initial::Farthest => self.farthest[toucher.index()],
        };
        wanted.unwrap_or(toucher)
    }
}
