//! The nodes that this process may use, as the kernel lists them. Node numbers are the kernel's,
//! because system calls take these. The launcher passes [`Nodes::machine`] to the library in the
//! program ([`crate::driver::LiveMachine`]).

use std::ffi::CStr;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use homenode_model::{Bytes, NodeId};
use homenode_sys::affinity::{self, CpuSet};
use homenode_sys::file::File;
use homenode_wire::settings;

/// Where Linux lists its nodes, a folder each.
const NODES: &str = "/sys/devices/system/node";
/// Where Linux says which CPUs and nodes a process may use.
const STATUS: &str = "/proc/self/status";
/// Distance of two different nodes if firmware does not state it, as in Linux (`REMOTE_DISTANCE`).
const REMOTE: u64 = 20;
const LOCAL: u64 = 10;

/// A folder for each thread of this process.
const TASKS: &CStr = c"/proc/self/task";
/// The line of a status with the CPUs that a thread may run on.
const ALLOWED: &str = "Cpus_allowed_list";
/// CPUs that this process may use, as it was started.
static REMEMBERED: Mutex<CpuSet> = Mutex::new(CpuSet::NONE);

/// The numbers of a line of a status; `None`: it has no such line.
fn allowed(status: &str, field: &str) -> Option<Vec<u32>> {
    status.lines().find_map(|line| line.strip_prefix(field)).map(numbers_of)
}

/// The numbers behind the name of a status line.
fn numbers_of(rest: &str) -> Vec<u32> {
    numbers(rest.trim_start_matches(':').trim())
}

/// Nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// By the kernel's numbers. Nodes that do not exist or are not allowed are empty.
    nodes: Vec<Node>,
    /// What is hidden from this process, one sentence each.
    pub hidden: Vec<String>,
    /// Whether the nodes are pretended.
    pub pretended: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    cpus: Vec<u32>,
    memory: Bytes,
    free: Bytes,
    distances: Vec<u64>,
}

impl Nodes {
    /// The nodes of this machine.
    pub fn here() -> Self {
        Self::at(Path::new(NODES), &fs::read_to_string(STATUS).unwrap_or_default())
    }

    /// The nodes in `folder`, for a process whose `/proc/PID/status` is `status`.
    pub fn at(folder: &Path, status: &str) -> Self {
        let cpus = allowed(status, ALLOWED).map_or(CpuSet::ALL, CpuSet::of);
        Self::with_cpus(folder, status, &cpus)
    }

    /// The same for these CPUs.
    fn with_cpus(folder: &Path, status: &str, cpus: &CpuSet) -> Self {
        let mems = allowed(status, "Mems_allowed_list");
        let online = read(folder, "online").map_or_else(|| vec![0], |t| numbers(&t));
        let mut hidden = Vec::new();
        let mut nodes = vec![Node::default(); online.iter().max().map_or(1, |n| *n as usize + 1)];
        for n in &online {
            let at = folder.join(format!("node{n}"));
            let node = &mut nodes[*n as usize];
            let all = read(&at, "cpulist").map_or_else(Vec::new, |t| numbers(&t));
            node.cpus = all.iter().copied().filter(|cpu| cpus.has(*cpu)).collect();
            if mems.as_ref().is_none_or(|l| l.contains(n)) {
                let meminfo = read(&at, "meminfo").unwrap_or_default();
                (node.memory, node.free) = (amount(&meminfo, "MemTotal:"), amount(&meminfo, "MemFree:"));
            } else {
                hidden.push(format!(
                    "node {n} is hidden by the process's cpuset (Mems_allowed): no page moves there"
                ));
            }
            if node.cpus.is_empty() && !all.is_empty() {
                hidden.push(format!("the CPUs of node {n} are hidden by the process's cpuset or affinity"));
            }
            node.distances = read(&at, "distance")
                .map_or_else(Vec::new, |t| t.split_whitespace().filter_map(|d| d.parse().ok()).collect());
        }
        // The kernel's list of distances leaves out nodes that do not exist.
        let count = nodes.len();
        for (n, node) in nodes.iter_mut().enumerate() {
            let mut row: Vec<u64> = (0..count).map(|m| if m == n { LOCAL } else { REMOTE }).collect();
            for (m, d) in online.iter().zip(&node.distances) {
                row[*m as usize] = *d;
            }
            node.distances = row;
        }
        Self { nodes, hidden, pretended: false }
    }

    /// Nodes that have memory which this process may use, and CPUs, whether or not the process's
    /// first thread may run on them: `OMP_PROC_BIND` binds that thread to one CPU. If no node has
    /// both, those with memory.
    pub fn for_arrays() -> Vec<NodeId> {
        Self::for_arrays_at(Path::new(NODES), &fs::read_to_string(STATUS).unwrap_or_default())
    }

    /// The nodes with the CPUs that any thread of this process may run on, or that the process
    /// could use when [`Nodes::remember`] was called: programs bind their first thread.
    pub fn of_process() -> Self {
        let own = fs::read_to_string(STATUS).unwrap_or_default();
        // Nothing of this takes the program's heap, which may lie beside the array to be placed.
        let mut cpus = *REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut add = |thread| affinity::of_thread(thread).iter().for_each(|set| cpus.add(set));
        add(0);
        if let Ok(tasks) = File::folder(TASKS) {
            let _ = tasks.entries(|task| {
                task.to_str().ok().and_then(|t| t.parse().ok()).into_iter().for_each(&mut add);
                true
            });
        }
        Self::with_cpus(Path::new(NODES), &own, &cpus)
    }

    /// CPUs that this process may use, whatever its threads are bound to later.
    pub fn remember(cpus: impl IntoIterator<Item = u32>) {
        REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner).add(&CpuSet::of(cpus));
    }

    /// As [`Nodes::here`], with the CPUs that the process's first thread may not run on.
    pub fn unbound() -> Self {
        Self::unbound_at(Path::new(NODES), &fs::read_to_string(STATUS).unwrap_or_default())
    }

    fn unbound_at(folder: &Path, status: &str) -> Self {
        let unbound: Vec<&str> = status.lines().filter(|l| !l.starts_with(ALLOWED)).collect();
        Self::at(folder, &unbound.join("\n"))
    }

    fn for_arrays_at(folder: &Path, status: &str) -> Vec<NodeId> {
        let all = Self::unbound_at(folder, status);
        let mut nodes = all.usable();
        nodes.retain(|n| all.memory(*n) > Bytes::ZERO);
        if nodes.iter().any(|n| !all.cpus(*n).is_empty()) {
            nodes.retain(|n| !all.cpus(*n).is_empty());
        }
        nodes
    }

    /// Deals this machine's CPUs into `n` nodes, in contiguous groups. With fewer CPUs than nodes,
    /// the last nodes have none.
    #[must_use]
    pub fn pretend(&self, n: u16) -> Self {
        let cpus: Vec<u32> = self.nodes.iter().flat_map(|node| node.cpus.iter().copied()).collect();
        let count = usize::from(n);
        let share =
            |f: fn(&Node) -> Bytes| Bytes(self.nodes.iter().map(|n| f(n).0).sum::<u64>() / u64::from(n));
        let deal = |i: usize| Node {
            cpus: cpus[i * cpus.len() / count..(i + 1) * cpus.len() / count].to_vec(),
            memory: share(|n| n.memory),
            free: share(|n| n.free),
            distances: (0..count).map(|m| if m == i { LOCAL } else { REMOTE }).collect(),
        };
        Self { nodes: (0..count).map(deal).collect(), hidden: Vec::new(), pretended: true }
    }

    /// Number of nodes that can hold pages.
    pub fn with_memory(&self) -> usize {
        self.nodes.iter().filter(|n| n.memory > Bytes::ZERO).count()
    }

    /// Nodes with memory or CPUs that this process may use, ascending.
    pub fn usable(&self) -> Vec<NodeId> {
        let some = |n: &Node| n.memory > Bytes::ZERO || !n.cpus.is_empty();
        (0u16..).zip(&self.nodes).filter(|(_, n)| some(n)).map(|(i, _)| NodeId(i)).collect()
    }

    /// CPUs of a node that this process may use; none for a node that does not exist.
    pub fn cpus(&self, node: NodeId) -> &[u32] {
        self.nodes.get(node.index()).map_or(&[], |n| &n.cpus)
    }

    /// The node of each CPU by its number. A CPU without a node, or not allowed, counts as the
    /// first node's.
    pub fn node_by_cpu(&self) -> Vec<u16> {
        let mut all = Vec::new();
        for (n, node) in (0u16..).zip(&self.nodes) {
            for cpu in &node.cpus {
                let cpu = *cpu as usize;
                if all.len() <= cpu {
                    all.resize(cpu + 1, 0);
                }
                all[cpu] = n;
            }
        }
        all
    }

    /// Memory of a node; none if it does not exist or is not allowed.
    pub fn memory(&self, node: NodeId) -> Bytes {
        self.nodes.get(node.index()).map_or(Bytes::ZERO, |n| n.memory)
    }

    /// Free memory of a node.
    pub fn free(&self, node: NodeId) -> Bytes {
        self.nodes.get(node.index()).map_or(Bytes::ZERO, |n| n.free)
    }

    /// The kernel's distance: 10 is local.
    pub fn distance(&self, from: NodeId, to: NodeId) -> Option<u64> {
        self.nodes.get(from.index())?.distances.get(to.index()).copied()
    }

    /// Whether node `n` can hold pages.
    pub fn has_memory(&self, n: u16) -> bool {
        self.nodes.get(usize::from(n)).is_some_and(|n| n.memory > Bytes::ZERO)
    }

    /// The form for the library in the program.
    pub fn machine(&self) -> settings::MachineNodes {
        let node = |n: &Node| settings::UsableNode {
            cpus: n.cpus.clone(),
            memory: n.memory,
            distances: n.distances.clone(),
        };
        settings::MachineNodes { nodes: self.nodes.iter().map(node).collect() }
    }

    /// A value of `OMP_PLACES` with each CPU as a place, node by node.
    pub fn places(&self) -> String {
        let cpus = self.nodes.iter().flat_map(|n| &n.cpus);
        cpus.map(|c| format!("{{{c}}}")).collect::<Vec<_>>().join(",")
    }
}

fn read(folder: &Path, file: &str) -> Option<String> {
    fs::read_to_string(folder.join(file)).ok()
}

/// Parses a list of the kernel's, such as `0-3,8`.
pub fn numbers(list: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for range in list.trim().split(',').filter(|r| !r.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            all.extend(first..=last.min(first.saturating_add(1 << 16)));
        }
    }
    all
}

/// The amount on a line of a node's `meminfo`: `Node 0 MemTotal: 32 kB`.
fn amount(meminfo: &str, field: &str) -> Bytes {
    let line = meminfo.lines().find(|l| l.contains(field));
    let kib = line.and_then(|l| l.split_whitespace().rev().nth(1)).and_then(|n| n.parse::<u64>().ok());
    Bytes(kib.unwrap_or(0).saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, nodes: &[(u32, &str, u64, &str)]) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("homenode-nodes-{name}-{}", std::process::id()));
        for (n, cpus, mib, distance) in nodes {
            let at = dir.join(format!("node{n}"));
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("cpulist"), format!("{cpus}\n")).unwrap();
            fs::write(at.join("meminfo"), format!("Node {n} MemTotal: {} kB\n", mib * 1024)).unwrap();
            fs::write(at.join("distance"), format!("{distance}\n")).unwrap();
        }
        let online: Vec<_> = nodes.iter().map(|n| n.0.to_string()).collect();
        fs::write(dir.join("online"), online.join(",")).unwrap();
        dir
    }

    #[test]
    fn nodes_keep_the_kernels_numbers() {
        let dir = machine("gaps", &[(0, "0-1", 100, "10 21"), (2, "2-3", 200, "21 10")]);
        let nodes = Nodes::at(&dir, "");
        let told = nodes.machine();
        let node = |cpus: &[u32], mib, distances: &[u64]| settings::UsableNode {
            cpus: cpus.to_vec(),
            memory: Bytes::mib(mib),
            distances: distances.to_vec(),
        };
        let want = [
            node(&[0, 1], 100, &[10, 20, 21]),
            node(&[], 0, &[20, 10, 20]),
            node(&[2, 3], 200, &[21, 20, 10]),
        ];
        assert_eq!(told.nodes, want);
        assert_eq!(nodes.with_memory(), 2);
        assert!(crate::driver::LiveMachine::of(&told).is_some());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_a_cpuset_hides_is_told() {
        let dir = machine("cpuset", &[(0, "0-1", 100, "10 21"), (1, "2-3", 200, "21 10")]);
        let nodes = Nodes::at(&dir, "Cpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n");
        assert_eq!((nodes.with_memory(), nodes.hidden.len()), (1, 2));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn cpus_are_the_processs_and_not_its_first_threads() {
        let dir = machine("threads", &[(0, "0-1", 100, "10 21"), (1, "2-3", 200, "21 10")]);
        let status = "Cpus_allowed_list:\t0\nMems_allowed_list:\t0-1\n";
        let of = |cpus: &[u32]| {
            let nodes = Nodes::with_cpus(&dir, status, &CpuSet::of(cpus.iter().copied()));
            [0, 1].map(|n| nodes.cpus(NodeId(n)).to_vec())
        };
        assert_eq!(of(&[0]), [vec![0], vec![]]);
        assert_eq!(of(&[0, 1, 3]), [vec![0, 1], vec![3]]);
        // Another thread's CPUs count although this one is bound.
        let cpus = || -> Vec<u32> { Nodes::of_process().nodes.into_iter().flat_map(|n| n.cpus).collect() };
        let (before, all) = (affinity::get().unwrap(), cpus());
        let other = std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(1)));
        affinity::set(&CpuSet::of(before.iter().take(1))).unwrap();
        assert_eq!(cpus(), all);
        affinity::set(&before).unwrap();
        other.join().unwrap();
        assert!(Nodes::of_process().with_memory() > 0);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn arrays_go_to_nodes_whose_cpus_the_first_thread_leaves_alone() {
        let three = [(0, "0-1", 100, "10 21 21"), (1, "2-3", 200, "21 10 21"), (2, "", 50, "21 21 10")];
        let dir = machine("arrays", &three);
        let nodes = |status| Nodes::for_arrays_at(&dir, status).iter().map(|n| n.0).collect::<Vec<_>>();
        // Bound to one CPU, as by OMP_PROC_BIND; node 2 is memory alone.
        assert_eq!(nodes("Cpus_allowed_list:\t0\nMems_allowed_list:\t0-2\n"), [0, 1]);
        assert_eq!(nodes("Cpus_allowed_list:\t0-3\nMems_allowed_list:\t1\n"), [1]);
        assert_eq!(nodes("Cpus_allowed_list:\t0-3\nMems_allowed_list:\t2\n"), [2]);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn cpus_are_dealt() {
        let dir = machine("one", &[(0, "0-3", 100, "10")]);
        let nodes = Nodes::at(&dir, "").pretend(2);
        assert_eq!(nodes.machine(), settings::MachineNodes::even(2, 2, Bytes::mib(50), 20));
        assert_eq!(nodes.places(), "{0},{1},{2},{3}");
        fs::remove_dir_all(dir).unwrap();
    }
}
