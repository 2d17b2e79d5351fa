//! `lab.json`, with what no table holds: the modelled machine, the totals of each CPU and process,
//! and the busiest part of the machine.

use homenode_model::{Topology, Way};
use homenode_wire::monitor::Misses;
use serde::Serialize;

use super::LabRun;
use crate::monitor::{AccessOwner, CpuShare, MonitorReport};

/// The file beside the tables.
pub const FILE: &str = "lab.json";
/// Name and version of its form.
const SCHEMA: &str = "homenode/lab/4";

/// `lab.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    /// Name and version of the form.
    pub schema: &'static str,
    /// The basis of the numbers.
    pub basis: &'static str,
    /// The modelled machine.
    pub machine: String,
    /// Linux's version.
    pub linux: String,
    /// Calls of `hn_iteration`.
    pub iterations_told: u64,
    /// Modelled caches, innermost first.
    pub caches: Vec<ModelledCache>,
    /// Virtual CPUs.
    pub cpus: Vec<CpuReport>,
    /// Processes, in the order of first appearance.
    pub processes: Vec<ProcessReport>,
    /// Accesses that did not fit the model.
    pub lost: u64,
    /// Intervals, by number.
    pub intervals: Vec<IntervalReport>,
    /// Modelled latencies, by accessing node and home.
    pub latency_ns: Vec<Vec<u64>>,
    /// What is modelled.
    pub modelled: &'static str,
    /// What is measured.
    pub measured: &'static str,
}

/// A modelled cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelledCache {
    /// Level.
    pub level: u8,
    /// Size.
    pub bytes: u64,
    /// Size of a line.
    pub line: u64,
    /// Ways.
    pub ways: u32,
}

/// What a virtual CPU did. Accesses are main-memory accesses, unless the name says all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CpuReport {
    /// Its node.
    pub node: u16,
    /// All accesses of the program.
    pub accesses_program: u64,
    /// All accesses of processes that are older than the program.
    pub accesses_others: u64,
    /// All accesses of the kernel.
    pub accesses_kernel: u64,
    /// Misses of lines that no cache had.
    pub memory_cold: u64,
    /// Misses of lines that were evicted.
    pub memory_capacity: u64,
    /// Misses of lines that another CPU had written.
    pub memory_coherence: u64,
    /// Upgrades: requests to write a line that is in the cache. They move no data and are no
    /// accesses.
    pub memory_upgrade: u64,
    /// The program's, to this node's memory.
    pub program_local: u64,
    /// The program's, to other nodes' memory.
    pub program_remote: u64,
    /// Those of processes that are older than the program.
    pub others_local: u64,
    /// See `others_local`.
    pub others_remote: u64,
    /// The kernel's.
    pub kernel_local: u64,
    /// See `kernel_local`.
    pub kernel_remote: u64,
    /// Modelled time.
    pub modelled_ps: u64,
    /// Modelled time of the CPU alone.
    pub modelled_alone_ps: u64,
}

/// A process of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// Its number.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// Whether the program started it.
    pub of_the_program: bool,
    /// All accesses.
    pub accesses: u64,
    /// Main-memory accesses to the node of the CPU.
    pub local: u64,
    /// Main-memory accesses to other nodes.
    pub remote: u64,
}

/// The modelled part of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IntervalReport {
    /// The slowest CPU's time, each CPU alone.
    pub slowest_alone_ps: u64,
    /// How long the busiest part of the machine is busy.
    pub busy_ps: u64,
    /// The larger of both.
    pub modelled_ps: u64,
    /// The kind of that part: controller, port, link.
    pub busiest: &'static str,
    /// Its node; of a port, the node that data leaves.
    pub from: Option<u16>,
    /// Its other node; of a port, the node that data enters.
    pub to: Option<u16>,
}

impl About {
    /// Of a run on this kernel.
    pub fn of(run: &LabRun<'_>, linux: &str) -> Self {
        let (found, machine) = (run.found, run.modelled);
        Self {
            schema: SCHEMA,
            basis: "emulated",
            machine: machine.name.clone(),
            linux: linux.into(),
            iterations_told: run.told.iterations.len() as u64,
            caches: caches(machine),
            cpus: cpus(found, machine),
            processes: processes(found),
            lost: found.lost,
            intervals: found.intervals.iter().map(interval).collect(),
            latency_ns: machine
                .node_ids()
                .map(|n| machine.latency.row(n).iter().map(|l| l.0).collect())
                .collect(),
            modelled: "time: one miss at a time, and in each interval at least as long as the busiest \
                       controller, port or link in use needs for what all CPUs move",
            measured: "accesses by page and node",
        }
    }
}

fn caches(machine: &Topology) -> Vec<ModelledCache> {
    let one = |c: &homenode_model::Cache| ModelledCache {
        level: c.level,
        bytes: c.size.0,
        line: c.line.0,
        ways: c.ways,
    };
    machine.caches.iter().map(one).collect()
}

fn cpus(found: &MonitorReport, machine: &Topology) -> Vec<CpuReport> {
    let all = found.cpus.iter().zip(&machine.cpus);
    let one = |(c, node): (&crate::monitor::Cpu, &homenode_model::NodeId)| {
        let [program, others, kernel] =
            [AccessOwner::Program, AccessOwner::Others, AccessOwner::Kernel].map(|w| found.of(c, w));
        let Misses { cold, capacity, coherence, upgrade } = c.misses;
        CpuReport {
            node: node.0,
            accesses_program: program.accesses,
            accesses_others: others.accesses,
            accesses_kernel: kernel.accesses,
            memory_cold: cold,
            memory_capacity: capacity,
            memory_coherence: coherence,
            memory_upgrade: upgrade,
            program_local: program.local,
            program_remote: program.remote,
            others_local: others.local,
            others_remote: others.remote,
            kernel_local: kernel.local,
            kernel_remote: kernel.remote,
            modelled_ps: c.time.0,
            modelled_alone_ps: c.alone.0,
        }
    };
    all.map(one).collect()
}

fn processes(found: &MonitorReport) -> Vec<ProcessReport> {
    let one = |(number, process): (&u16, &crate::monitor::Process)| {
        let of = |c: &crate::monitor::Cpu| c.shares.get(number).copied().unwrap_or_default();
        let sum = |f: fn(CpuShare) -> u64| found.cpus.iter().map(|c| f(of(c))).sum::<u64>();
        ProcessReport {
            process: process.id,
            name: process.name.clone(),
            of_the_program: found.whose(*number) == AccessOwner::Program,
            accesses: sum(|s| s.accesses),
            local: sum(|s| s.local),
            remote: sum(|s| s.remote),
        }
    };
    found.processes.iter().map(one).collect()
}

fn interval(interval: &crate::monitor::ModelledInterval) -> IntervalReport {
    let (busiest, from, to) = match interval.busiest {
        Way::Controller(n) => ("controller", Some(n.0), Some(n.0)),
        Way::Outgoing(n) => ("port", Some(n.0), None),
        Way::Incoming(n) => ("port", None, Some(n.0)),
        Way::Link(a, b) => ("link", Some(a.0), Some(b.0)),
    };
    IntervalReport {
        slowest_alone_ps: interval.alone.0,
        busy_ps: interval.busy.0,
        modelled_ps: interval.alone.max(interval.busy).0,
        busiest,
        from,
        to,
    }
}
