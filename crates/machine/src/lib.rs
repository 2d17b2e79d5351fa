//! Machines: this one, from a file, from a preset.
//!
//! | you have | you call |
//! |---|---|
//! | what a user typed after `--machine` | [`resolve()`] |
//! | nothing yet | [`list`] |
//! | a machine file | [`Machine::load`], [`Machine::from_toml`], [`Machine::to_toml`] |
//! | a topology that hwloc recorded | [`host::from_xml_file`], [`host::from_synthetic`] |
//! | threads to place | [`spread`], [`packed`] |
//!
//! A [`Machine`] is a [`Topology`] in which *each number has a source*: a paper, a data sheet, this
//! kernel, or the word `assumed`. Sources are data, not comments, so that a result can print where
//! its constants come from ([`Machine::values`]).

mod bind;
mod error;
mod fit;
pub mod host;
mod nearest;
mod preset;
mod quantity;
mod read;
mod resolve;
mod values;
mod write;

use std::collections::BTreeMap;

use homenode_model::{MbPerS, Ps, Topology};

pub use bind::{packed, spread};
pub use error::Error;
pub use fit::fit_cache;
pub use preset::{PresetInfo, list, preset};
pub use quantity::{show_bandwidth, show_bytes, show_ns, show_ps};
pub use resolve::resolve;
pub use values::{ASSUMED, Value};

/// Most nodes that a machine may have.
pub const MAX_NODES: usize = 1024;
/// Most CPUs that a machine may have.
pub const MAX_CPUS: usize = 65_536;
/// Largest machine file that is read.
pub const MAX_FILE: u64 = 16 << 20;
/// Longest text (name, description, source) in a machine file, in bytes.
pub const MAX_TEXT: usize = 1000;

/// A machine and where its numbers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The numbers.
    pub topology: Topology,
    /// One sentence for `machine list`; may be empty.
    pub about: String,
    /// The source of each number by its path (`nodes.3.memory`, `caches.0.hit`, `latency`); see
    /// [`Machine::values`] for all paths. A path that is absent is [`ASSUMED`].
    pub sources: BTreeMap<String, String>,
    /// Constants that were fitted to a printed number of one program, and are used for it alone.
    pub fitted: Vec<Fitted>,
    /// The buses between the CPUs of a node and its memory, where a description has them. The
    /// rates that `homenode-measure` computes from a description use them; the simulator has no
    /// buses.
    pub bus: Option<Bus>,
    /// Instructions that a CPU has in flight at most, where a description says so. A CPU misses no
    /// farther ahead. The same rates use it; the simulator has
    /// [`Core::outstanding`](homenode_model::Core) alone.
    pub window: Option<u32>,
    /// The kernel's numbers of CPUs and nodes, when this describes a machine that a kernel runs on.
    pub os: Option<OsNumbers>,
    /// Where the whole came from.
    pub origin: MachineOrigin,
}

/// A bus on which some CPUs of a node reach the node's memory and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// All that passes, in both directions together.
    pub bandwidth: MbPerS,
    /// Consecutive CPUs of a node that share one bus.
    pub cpus: u32,
}

/// What no data sheet tells and one number cannot tell for all programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// The program, as `kernel list` names it. The source stands in [`Machine::sources`] under
    /// `fitted.PROGRAM.coverage`.
    pub program: String,
    /// Percent of the latency that prefetching hides of misses in sequential streams.
    pub coverage: u8,
    /// What an access that needs no memory costs in this program, instead of
    /// [`Core::access`](homenode_model::Core): how long its arithmetic takes. The source stands
    /// under `fitted.PROGRAM.access`.
    pub access: Option<Ps>,
}

impl Machine {
    /// The fitted coverage of a program, in percent.
    pub fn coverage(&self, program: &str) -> Option<u8> {
        self.fitted.iter().find(|f| f.program == program).map(|f| f.coverage)
    }

    /// The machine as it is to a program: with the cost of an access that was fitted to it.
    pub fn topology_for(&self, program: &str) -> Topology {
        let mut topology = self.topology.clone();
        if let Some(access) = self.fitted.iter().find(|f| f.program == program).and_then(|f| f.access) {
            topology.core.access = access;
        }
        topology
    }
}

/// The kernel's number of each CPU and node, by [`CpuId`](homenode_model::CpuId) and
/// [`NodeId`](homenode_model::NodeId): those are dense, the kernel's have holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OsNumbers {
    /// By `CpuId`.
    pub cpus: Vec<u32>,
    /// By `NodeId`.
    pub nodes: Vec<u32>,
}

/// Where a [`Machine`] came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineOrigin {
    /// The machine that this process runs on, through hwloc.
    Host,
    /// A preset, by name.
    Preset(&'static str),
    /// A file, by path; or whatever else the text handed to [`Machine::from_toml`] was called.
    File(String),
    /// A topology that hwloc recorded or made up, by path or description.
    Hwloc(String),
}

impl std::fmt::Display for MachineOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host => f.write_str("this machine"),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::File(path) => write!(f, "file {path}"),
            Self::Hwloc(what) => write!(f, "hwloc topology {what}"),
        }
    }
}
