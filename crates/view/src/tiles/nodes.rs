//! Nodes by index.

use homenode_dataset::Dataset;
use homenode_model::NodeId;
use homenode_report::RecordingReport;
use homenode_report::machine::MachineSummary;
use std::collections::BTreeSet;

/// Most nodes that are told apart.
const MOST: usize = 1024;

/// The nodes of a recording. One index more stands for all that are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedNodes {
    listed: Vec<NodeId>,
}

impl RecordedNodes {
    /// Nodes of the machine, and those that objects tell of.
    pub fn of(set: &Dataset, report: &RecordingReport) -> Self {
        let mut all: BTreeSet<NodeId> = MachineSummary::of(set).nodes.into_iter().collect();
        for object in &report.objects {
            all.extend(object.used_by.iter().chain(&object.accessed_on).map(|n| n.node));
            all.extend(object.residency.iter().map(|n| n.node));
        }
        if let Some(moves) = &report.moves {
            all.extend(moves.routes.iter().flat_map(|r| [r.from_node, r.to_node]));
        }
        Self { listed: all.into_iter().take(MOST).collect() }
    }

    /// These nodes.
    pub fn of_list(nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let all: BTreeSet<NodeId> = nodes.into_iter().take(MOST).collect();
        Self { listed: all.into_iter().collect() }
    }

    /// The listed nodes, ascending.
    pub fn listed(&self) -> &[NodeId] {
        &self.listed
    }

    /// How many indices there are.
    pub fn count(&self) -> usize {
        self.listed.len() + 1
    }

    /// The index of a node.
    pub fn index(&self, node: NodeId) -> usize {
        self.listed.binary_search(&node).unwrap_or(self.listed.len())
    }
}
