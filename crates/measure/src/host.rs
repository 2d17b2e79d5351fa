//! What there is: nodes, CPUs, memory, caches, and the state that makes measurements lie.
//!
//! Read from a root folder, `/` or one in which somebody's `sys` and `proc` were recorded, so that
//! tests run on machines that nobody here has. Node and CPU numbers are the kernel's: they are what
//! the kernel is asked with.

mod described;
mod facts;
mod state;
mod system;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use homenode_machine::Machine;

use crate::axes::{CpuNumber, NodeNumber};
pub use facts::{Firmware, Host, HostError, HostNode, HostState};
use tree::Tree;

impl Host {
    /// The machine that this process runs on.
    ///
    /// # Errors
    /// `/sys` or `/proc` are not there.
    pub fn this() -> Result<Self, HostError> {
        Self::at(Path::new("/"))
    }

    /// The machine whose `sys` and `proc` are under `root`; or a text file that
    /// `scripts/record-sysfs.sh` wrote of one.
    ///
    /// # Errors
    /// [`HostError::NotATree`], [`HostError::NoCpu`].
    pub fn at(root: &Path) -> Result<Self, HostError> {
        system::host(&Tree::new(root))
    }

    /// A machine as described: a preset, a file, hwloc's notation. Node and CPU numbers are the
    /// kernel's where it has them.
    pub fn like(machine: &Machine) -> Self {
        described::host(machine)
    }

    /// The node of that number.
    pub fn node(&self, node: NodeNumber) -> Option<&HostNode> {
        self.nodes.iter().find(|n| n.id() == node)
    }
    /// The node that a CPU is on.
    pub fn node_of(&self, cpu: CpuNumber) -> Option<NodeNumber> {
        self.nodes.iter().find(|n| n.cpus.contains(&cpu)).map(HostNode::id)
    }
    /// `n` CPUs of a node, cores before siblings; fewer if it has fewer.
    pub fn some_cpus(&self, node: NodeNumber, n: usize) -> Vec<CpuNumber> {
        let Some(node) = self.node(node) else { return Vec::new() };
        let siblings = node.cpus.iter().filter(|c| !node.cores.contains(c));
        node.cores.iter().chain(siblings).copied().take(n).collect()
    }
    /// Bytes that can still be allocated on a node of this machine, now, with a reserve left to the
    /// system.
    pub fn room(&self, node: NodeNumber) -> u64 {
        let Some(known) = self.node(node) else { return 0 };
        let tree = Tree::new(Path::new("/"));
        let free = system::free_now(&tree, node).unwrap_or(known.free);
        let reserve = (known.memory / 64).clamp(8 << 20, 1 << 30);
        free.saturating_sub(reserve).min(state::cgroup_room(&tree).unwrap_or(u64::MAX))
    }
    /// Nodes whose CPUs can be used.
    pub fn with_cpus(&self) -> Vec<NodeNumber> {
        self.nodes.iter().filter(|n| n.has_cpus()).map(HostNode::id).collect()
    }
    /// Nodes whose memory can be used.
    pub fn with_memory(&self) -> Vec<NodeNumber> {
        self.nodes.iter().filter(|n| n.has_memory()).map(HostNode::id).collect()
    }
    /// SLIT distance.
    pub fn distance(&self, from: NodeNumber, to: NodeNumber) -> Option<u32> {
        let column = self.nodes.iter().position(|n| n.id() == to)?;
        self.node(from)?.distances.get(column).copied()
    }
    /// What firmware says of a pair.
    pub fn firmware(&self, cpu: NodeNumber, memory: NodeNumber) -> Option<&Firmware> {
        self.firmware.iter().find(|f| (f.cpu, f.memory) == (cpu, memory))
    }
    /// Nodes with CPUs from `node`'s view, nearest first, itself included; ties by number.
    pub fn nearest_cpus(&self, node: NodeNumber) -> Vec<NodeNumber> {
        let mut all = self.with_cpus();
        all.sort_by_key(|n| (*n != node, self.distance(node, *n).unwrap_or(u32::MAX), *n));
        all
    }
    /// Where each CPU is.
    pub fn cpus(&self) -> BTreeMap<CpuNumber, NodeNumber> {
        self.nodes.iter().flat_map(|n| n.cpus.iter().map(|c| (*c, n.id()))).collect()
    }
    /// Sentences about the state that a reader of numbers should know.
    pub fn remarks(&self) -> Vec<String> {
        state::remarks(self)
    }
}
