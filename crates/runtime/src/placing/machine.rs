//! The nodes as this process sees them: the machine's, or pretended ones if the live runtime
//! pretends.

use homenode_model::{Bytes, NodeId};

use super::{Failure, Result};
use crate::moving;
use crate::nodes::Nodes;

/// Nodes that this process may use.
#[derive(Clone, Debug)]
pub struct UsableNodes {
    nodes: Nodes,
    /// Number of pretended nodes; 0 if the nodes are real.
    pretended: u16,
}

impl UsableNodes {
    /// The machine as it is now. CPUs and memory come and go.
    pub fn here() -> Self {
        let (nodes, pretended) = (Nodes::of_process(), moving::pretended());
        match pretended {
            0 => Self { nodes, pretended },
            n => Self { nodes: nodes.pretend(n), pretended },
        }
    }

    /// Nodes with memory or CPUs, by the kernel's numbers, ascending.
    pub fn nodes(&self) -> Vec<NodeId> {
        match self.pretended {
            0 => self.nodes.usable(),
            n => (0..n).map(NodeId).collect(),
        }
    }

    /// CPUs of a node.
    pub fn cpus(&self, node: NodeId) -> Vec<u32> {
        if self.pretended == 0 {
            return self.nodes.cpus(node).to_vec();
        }
        // Dealt in turn, as the mover deals them.
        let dealt = |cpu: &u32| moving::node_of_cpu(*cpu) == node;
        let all = self.nodes.usable().into_iter().flat_map(|n| self.nodes.cpus(n));
        let mut cpus: Vec<u32> = all.copied().filter(dealt).collect();
        cpus.sort_unstable();
        cpus
    }

    /// Node of a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<NodeId> {
        self.nodes().into_iter().find(|n| self.cpus(*n).contains(&cpu))
    }

    /// Total and free memory of a node.
    pub fn memory(&self, node: NodeId) -> (Bytes, Bytes) {
        (self.nodes.memory(node), self.nodes.free(node))
    }

    /// The kernel's distance: 10 is local.
    pub fn distance(&self, from: NodeId, to: NodeId) -> Option<u64> {
        self.nodes.distance(from, to)
    }

    /// The only node with memory, if there is one only. Every page is then on it.
    pub fn only(&self) -> Option<NodeId> {
        let mut with_memory = self.nodes().into_iter().filter(|n| self.memory(*n).0 > Bytes::ZERO);
        let first = with_memory.next()?;
        with_memory.next().is_none().then_some(first)
    }

    /// `number` as an existing node.
    ///
    /// # Errors
    /// The node does not exist, or this process may not use it.
    pub fn node(&self, number: i32) -> Result<NodeId> {
        let nodes = self.nodes();
        let node = u16::try_from(number).ok().map(NodeId).filter(|n| nodes.contains(n));
        node.ok_or_else(|| {
            Failure::no_node(format!(
                "there is no node {number} for this process; it may use {}",
                list(&nodes)
            ))
        })
    }

    /// `number` as a node with memory.
    ///
    /// # Errors
    /// The node does not exist or has no memory.
    pub fn node_with_memory(&self, number: i32) -> Result<NodeId> {
        let node = self.node(number)?;
        if self.memory(node).0 > Bytes::ZERO {
            return Ok(node);
        }
        let all: Vec<_> = self.nodes().into_iter().filter(|n| self.memory(*n).0 > Bytes::ZERO).collect();
        Err(Failure::no_node(format!(
            "node {number} has no memory that this process may use; memory is on {}",
            list(&all)
        )))
    }
}

fn list(nodes: &[NodeId]) -> String {
    if nodes.is_empty() {
        return "none".into();
    }
    let numbers: Vec<_> = nodes.iter().map(|n| n.0.to_string()).collect();
    format!("node {}", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_node_with_this_cpu() {
        let machine = UsableNodes::here();
        let (cpu, node) = homenode_sys::numa::here();
        let seen = machine.node_of(cpu).expect("the node of the CPU that runs this");
        // Between the two questions the thread may have gone to another CPU of another node.
        assert!(seen == node || machine.nodes().len() > 1);
        assert!(machine.memory(seen).0 > Bytes::ZERO || machine.nodes().len() > 1);
    }

    #[test]
    fn a_node_that_is_not_there_is_told_with_those_that_are() {
        for number in [-1, 9999, i32::MAX] {
            let f = UsableNodes::here().node(number).unwrap_err();
            assert_eq!(f.code, homenode_model::code::HN_ENODE);
            assert!(f.text.starts_with(&format!("there is no node {number} ")), "{f}");
        }
    }
}
