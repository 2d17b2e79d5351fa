//! What the launcher and QEMU's plug-in say to each other.
//!
//! | conversation | types |
//! |---|---|
//! | the lab's monitor: what it is told at the start, in a file | [`Config`] |
//! | on its socket, while the guest runs | [`MonitorCommand`], [`MonitorAnswer`] |
//! | what it found, in a file | [`MonitorReport`] |
//! | the emulator's recorder: what it is told, as a word of QEMU's command line | [`EmulatorSettings`] |

use std::collections::BTreeMap;
use std::path::PathBuf;

use homenode_model::{Bytes, NodeId, Ps, Topology, Way};
use serde::{Deserialize, Serialize};

use crate::bounded::{CPUS, NODES, list, os, some_text, text};
use crate::frame::{Conversation, Message};

/// Intervals of a run.
pub const INTERVALS: usize = 1 << 22;
/// Rows of pages.
pub const PAGES: usize = 1 << 26;
/// Calls around an instruction that the monitor keeps.
pub const CALLS: usize = 8;

/// What `qemu_plugin_hwaddr_phys_addr` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PhysicalAddresses {
    /// The guest's physical address; memory from `low` on is above 4 GiB.
    Physical {
        /// Bytes below the hole under 4 GiB.
        low: Bytes,
    },
    /// Before QEMU 8.2: place in a node's block of memory, plus the block's place among QEMU's
    /// blocks, plus its place in the machine's memory. The latter two are the same here, so what
    /// lies before a node counts twice.
    Blocks {
        /// As above: the guest knows nothing of blocks.
        low: Bytes,
    },
}

/// Where the guest's kernel keeps what says which process a CPU executes, without randomisation of
/// addresses: physical addresses, and places in structures in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLayout {
    /// Physical address of the array of the CPUs' own areas.
    pub areas: u64,
    /// Place of the current task's address in such an area.
    pub current: u64,
    /// Physical address of the variable that says where all physical memory is mapped.
    pub direct: u64,
    /// Place of the process's number in a task.
    pub process: u64,
    /// Place of its name in a task.
    pub name: u64,
}

/// What the monitor is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The modelled machine; its CPUs are the guest's. The reader has to check it
    /// ([`Topology::check`]).
    pub machine: Topology,
    /// What QEMU means by a physical address.
    pub addresses: PhysicalAddresses,
    /// Bytes of a disk that is mapped as memory, before that of the nodes.
    pub disk: Bytes,
    /// Where the guest's kernel keeps what says which process runs.
    pub kernel: Option<KernelLayout>,
    /// Where [`MonitorReport`] goes.
    #[serde(with = "os")]
    pub output: PathBuf,
    /// The socket on which the launcher says when to begin and to end.
    pub control: i32,
}

impl Message for Config {
    const KIND: Conversation = Conversation::MonitorConfig;
    const VERSION: u16 = 1;
    const MOST: usize = 32 << 20;
}

/// What the launcher says on the monitor's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MonitorCommand {
    /// Count no more, and write what was found.
    End,
}

impl Message for MonitorCommand {
    const KIND: Conversation = Conversation::MonitorOrder;
    const VERSION: u16 = 1;
    const MOST: usize = 256;
}

/// What the monitor says when it has done so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorAnswer {
    /// Why it could not; `None`: it is done.
    #[serde(with = "some_text")]
    pub failed: Option<String>,
}

impl Message for MonitorAnswer {
    const KIND: Conversation = Conversation::MonitorAnswer;
    const VERSION: u16 = 1;
    const MOST: usize = 8 << 10;
}

/// Main-memory accesses by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// First access to a line.
    pub cold: u64,
    /// The line had been thrown out.
    pub capacity: u64,
    /// Another CPU had written it.
    pub coherence: u64,
    /// It was there and had to become this CPU's alone.
    pub upgrade: u64,
}

impl Misses {
    /// All of them.
    pub const fn all(&self) -> u64 {
        self.cold.saturating_add(self.capacity).saturating_add(self.coherence).saturating_add(self.upgrade)
    }
}

/// What a CPU did for a process while the monitor counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuShare {
    /// All accesses.
    pub accesses: u64,
    /// Main-memory accesses to this node's memory.
    pub local: u64,
    /// To others'.
    pub remote: u64,
}

/// What a CPU did while the monitor counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Main-memory accesses by cause.
    pub misses: Misses,
    /// By number of the process.
    pub shares: BTreeMap<u16, CpuShare>,
    /// Modelled time if nobody else were there: caches and latencies, one miss at a time.
    pub alone: Ps,
    /// Modelled time: in each interval at least as long as the busiest part of the machine that the
    /// CPU uses is busy.
    pub time: Ps,
}

/// What is modelled of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelledInterval {
    /// The slowest CPU's time if nobody else were there.
    pub alone: Ps,
    /// The part of the machine that what was moved keeps busy longest.
    pub busiest: Way,
    /// How long.
    pub busy: Ps,
}

/// The kernel's number among the processes.
pub const KERNEL: u16 = 0;

/// A process of the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number in the guest; 0: the kernel does not say.
    pub id: u32,
    /// What it was called at last.
    #[serde(with = "text")]
    pub name: String,
}

/// Loads and stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessCounts {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

/// Main-memory accesses of a process to a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageAccesses {
    /// Counted from 0; a mark of the program begins the next.
    pub interval: u32,
    /// Number of the process.
    pub process: u16,
    /// Virtual address divided by 4096.
    pub page: u64,
    /// Place in the guest's memory, in pages.
    pub physical: u64,
    /// The node whose memory that is.
    pub home: NodeId,
    /// Of two rows of a virtual page in one interval, that with the smaller number came first.
    pub visit: u32,
    /// By accessing node.
    #[serde(serialize_with = "list::write::<NODES, _, _>", deserialize_with = "list::read::<NODES, _, _>")]
    pub counts: Vec<AccessCounts>,
}

/// What a program executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecutedCode {
    /// Address of the instruction; 0: the kernel's.
    pub at: u64,
    /// Return addresses of the calls around it, innermost first; 0 where none is known.
    pub calls: [u64; CALLS],
}

/// The first store of a process to a page in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstStore {
    /// As [`PageAccesses::interval`].
    pub interval: u32,
    /// Number of the process.
    pub process: u16,
    /// Virtual address divided by 4096.
    pub page: u64,
    /// The virtual CPU.
    pub cpu: u32,
    /// Index of the code in [`MonitorReport::codes`].
    pub code: u32,
}

/// What the monitor found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorReport {
    /// By number; 1 is the first.
    pub processes: BTreeMap<u16, Process>,
    /// By virtual CPU.
    #[serde(serialize_with = "list::write::<CPUS, _, _>", deserialize_with = "list::read::<CPUS, _, _>")]
    pub cpus: Vec<Cpu>,
    /// By number.
    #[serde(serialize_with = "list::write::<INTERVALS, _, _>")]
    #[serde(deserialize_with = "list::read::<INTERVALS, _, _>")]
    pub intervals: Vec<ModelledInterval>,
    /// By interval, process, virtual page, physical page.
    #[serde(serialize_with = "list::write::<PAGES, _, _>", deserialize_with = "list::read::<PAGES, _, _>")]
    pub pages: Vec<PageAccesses>,
    /// The code of first stores.
    #[serde(serialize_with = "list::write::<PAGES, _, _>", deserialize_with = "list::read::<PAGES, _, _>")]
    pub codes: Vec<ExecutedCode>,
    /// First stores, by process, virtual page, interval.
    #[serde(serialize_with = "list::write::<PAGES, _, _>", deserialize_with = "list::read::<PAGES, _, _>")]
    pub firsts: Vec<FirstStore>,
    /// Accesses that did not fit the model.
    pub lost: u64,
}

impl Message for MonitorReport {
    const KIND: Conversation = Conversation::MonitorFound;
    const VERSION: u16 = 2;
    const MOST: usize = 1 << 30;
}

/// The guest's side of the lab as the kernel calls it: 15 letters of its name.
const GUEST_SIDE: &str = "homenode-lab-gu";

/// Whose accesses they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessOwner {
    /// The program's: it and what it started. Everybody's, where the kernel does not say which
    /// process runs.
    Program,
    /// Processes that were there before the program.
    Others,
    /// The kernel's.
    Kernel,
}

impl MonitorReport {
    /// Whose the accesses of a process are, by its number. The guest's side starts the program, so
    /// that what has a smaller process number than it was there before.
    pub fn whose(&self, process: u16) -> AccessOwner {
        let side = self.processes.values().find(|p| p.name == GUEST_SIDE).map_or(0, |p| p.id);
        match self.processes.get(&process) {
            _ if process == KERNEL => AccessOwner::Kernel,
            Some(p) if p.id > 0 && p.id <= side => AccessOwner::Others,
            _ => AccessOwner::Program,
        }
    }

    /// What a CPU did for them.
    pub fn of(&self, cpu: &Cpu, whose: AccessOwner) -> CpuShare {
        let all = cpu.shares.iter().filter(|(process, _)| self.whose(**process) == whose);
        all.fold(CpuShare::default(), |sum, (_, s)| CpuShare {
            accesses: sum.accesses.saturating_add(s.accesses),
            local: sum.local.saturating_add(s.local),
            remote: sum.remote.saturating_add(s.remote),
        })
    }
}

/// What the emulator's recorder is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatorSettings {
    /// The recording's folder.
    #[serde(with = "os")]
    pub recording: PathBuf,
    /// Lines of the filter.
    pub filter_lines: u32,
    /// Nothing is loaded into the program: all that there is is the program's, and there are no
    /// marks.
    pub alone: bool,
}

impl Message for EmulatorSettings {
    const KIND: Conversation = Conversation::Emulator;
    const VERSION: u16 = 1;
    const MOST: usize = 16 << 10;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_there_before_the_program_is_told_apart() {
        let process = |id, name: &str| Process { id, name: name.into() };
        let share = |accesses, local, remote| CpuShare { accesses, local, remote };
        let cpu = Cpu { shares: [(0, share(5, 1, 1)), (1, share(10, 6, 4))].into(), ..Cpu::default() };
        let mut found = MonitorReport {
            processes: [(1, process(70, "a b"))].into(),
            cpus: vec![cpu],
            ..MonitorReport::default()
        };
        assert_eq!(
            [0, 1, 2].map(|p| found.whose(p)),
            [AccessOwner::Kernel, AccessOwner::Program, AccessOwner::Program]
        );
        found.processes.extend([(2, process(60, GUEST_SIDE)), (3, process(1, "init"))]);
        assert_eq!(
            [1, 2, 3].map(|p| found.whose(p)),
            [AccessOwner::Program, AccessOwner::Others, AccessOwner::Others]
        );
        assert_eq!(found.of(&found.cpus[0], AccessOwner::Program).remote, 4);
    }
}
