//! What there is: nodes, CPUs, memory, caches, and the state that makes measurements lie.
//!
//! Read from a root folder, `/` or one in which somebody's `sys` and `proc` were recorded, so that
//! tests run on machines that nobody here has. Node and CPU numbers are the kernel's: they are what
//! the kernel is asked with.

mod described;
mod state;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use homenode_machine::Machine;
use serde::{Deserialize, Serialize};

use crate::item::{CpuNumber, NodeNumber};
use tree::Tree;

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostNode {
    /// Its number.
    pub node: u16,
    /// CPUs that this process may use, ascending; none: it never touches.
    pub cpus: Vec<CpuNumber>,
    /// The first usable CPU of each core: a thread each is what SMT siblings do not disturb.
    pub cores: Vec<CpuNumber>,
    /// CPUs of it that are off-line or outside of the process's cpuset.
    pub unusable_cpus: Vec<CpuNumber>,
    /// Bytes of memory; 0: none.
    pub memory: u64,
    /// Bytes that an allocation can have: free, and what the kernel gives back at once (clean file
    /// pages).
    pub free: u64,
    /// Whether this process may use its memory.
    pub allowed: bool,
    /// SLIT distances to each node of the host, in their order; empty: not known.
    pub distances: Vec<u32>,
}

impl HostNode {
    /// As an id.
    pub const fn id(&self) -> NodeNumber {
        NodeNumber(self.node)
    }
    /// Whether threads of this process can run there.
    pub fn has_cpus(&self) -> bool {
        !self.cpus.is_empty()
    }
    /// Whether memory of this process can be there.
    pub const fn has_memory(&self) -> bool {
        self.memory > 0 && self.allowed
    }
}

/// What firmware says of a pair (HMAT, as Linux shows it for the nearest initiators).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firmware {
    /// Thread's node.
    pub cpu: NodeNumber,
    /// Memory's node.
    pub memory: NodeNumber,
    /// Nanoseconds of a read.
    pub read_ns: Option<u64>,
    /// 10^6 bytes a second of reading.
    pub read_mb_per_s: Option<u64>,
}

/// Settings that change what is measured, each as the system words it; absent: it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostState {
    /// Frequency governors in use.
    pub governor: Option<String>,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`.
    pub smt: Option<String>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub thp: Option<String>,
    /// NUMA balancing: 0 off, 1 on, 2 tiering.
    pub numa_balancing: Option<String>,
    /// CPUs that the scheduler leaves alone (`isolcpus`).
    pub isolated: Option<String>,
    /// Most memory that the control group may have, in bytes.
    pub cgroup_memory: Option<u64>,
    /// CPU time that the control group may have: quota and period in microseconds.
    pub cgroup_cpu: Option<String>,
    /// Processes that ran or waited for a CPU in the last minute, on average.
    pub load: Option<String>,
    /// A hypervisor is below: another guest's work shows as noise, and node numbers are what it
    /// says.
    pub virtual_machine: bool,
}

/// A machine to measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The processor.
    pub cpu_model: String,
    /// The kernel's release; what was described, when nothing is real.
    pub kernel: String,
    /// Nodes, ascending.
    pub nodes: Vec<HostNode>,
    /// All last-level caches together, in bytes; 0: not known.
    pub last_level_cache: u64,
    /// What firmware says.
    #[serde(default)]
    pub firmware: Vec<Firmware>,
    /// Settings.
    pub state: HostState,
    /// Described, not real: nothing is measured.
    #[serde(default)]
    pub synthetic: bool,
    /// What is there and cannot be used, a sentence each.
    #[serde(default)]
    pub hidden: Vec<String>,
}

/// Why there is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The tree lacks what every Linux has.
    #[error("reading {path}: {said}")]
    NotATree {
        /// What was read.
        path: String,
        /// What the system said.
        said: String,
    },
    /// No CPU can be used.
    #[error("no CPU under {0} may be used by this process")]
    NoCpu(String),
}

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
        tree::host(&Tree::new(root))
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
        let free = tree::free_now(&tree, node).unwrap_or(known.free);
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
