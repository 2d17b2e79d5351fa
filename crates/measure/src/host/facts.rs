//! A machine to measure, as plain data.

use serde::{Deserialize, Serialize};

use crate::axes::{CpuNumber, NodeNumber};

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
