//! The monitor: what QEMU's plug-in is told, and what it found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use homenode_model::{Bytes, CacheScope, Matrix, MbPerS, NodeId, Ns, Ps, Topology, Way};

use crate::error::{Error, Result};
use crate::kernel::layout::Layout;
use crate::machine::Machine;

/// Guest memory from which on QEMU's 'pc' machine leaves a larger hole under 4 GiB, and where that begins.
const LARGE: u64 = 0xe000_0000;
const LARGE_LOW: u64 = 0xc000_0000;

/// What the nodes' memory is called, with the node's number behind; the plug-in finds it by this name.
pub const MEMORY: &str = "homenode-node";

/// The first QEMU whose plug-ins are told the guest's physical addresses.
const TRUE_ADDRESSES: (u32, u32) = (8, 2);

/// The machine that is modelled behind `machine`: caches, core, controllers, ports and local latency of `like`. Where `like` has
/// those nodes, its latencies and links hold; otherwise the local latency, multiplied by the distances, and its narrowest link.
pub fn modelled(machine: &Machine, like: &Topology, same_nodes: bool) -> Topology {
    let cpus = machine.nodes.iter().enumerate();
    let cpus = cpus.flat_map(|(i, n)| (0..n.cpus).map(move |_| NodeId(i as u16))).collect();
    let first = like.cpus.first().copied().unwrap_or_default();
    let local = like.latency.at(first, first).0;
    let latency = if same_nodes {
        like.latency.clone()
    } else {
        Matrix::from_fn(machine.nodes.len(), |i, j| Ns(local * u64::from(machine.distances[i][j]) / 10))
    };
    let mut nodes = like.nodes.clone();
    nodes.resize(machine.nodes.len(), like.nodes[0].clone());
    for (node, own) in nodes.iter_mut().zip(&machine.nodes) {
        node.memory = own.memory;
    }
    let pairs = || like.node_ids().flat_map(|a| like.node_ids().map(move |b| (a, b))).filter(|(a, b)| a != b);
    let links = pairs().map(|(a, b)| like.link.at(a, b)).filter(|l| l.0 > 0);
    let narrowest = links.min_by_key(|l| l.0).unwrap_or(MbPerS(0));
    let link = if same_nodes {
        like.link.clone()
    } else {
        Matrix::from_fn(nodes.len(), |i, j| if i == j { MbPerS(0) } else { narrowest })
    };
    Topology { name: format!("lab, caches of {}", like.name), nodes, cpus, latency, link, ..like.clone() }
}

/// The plug-in's configuration. `disk` are the bytes of a disk that is memory.
pub fn configuration(
    machine: &Topology,
    qemu: (u32, u32),
    kernel: Option<Layout>,
    disk: Bytes,
    control: i32,
    output: &Path,
) -> String {
    let mut s = String::from("homenode monitor 4\n");
    let memory: u64 = machine.nodes.iter().map(|n| n.memory.0).sum();
    let low = if memory >= LARGE { LARGE_LOW } else { LARGE };
    let word = if qemu < TRUE_ADDRESSES { "blocks" } else { "addresses" };
    let _ = writeln!(s, "{word} {low}\ndisk {}", disk.0);
    if let Some(Layout { areas, current, direct, process, name }) = kernel {
        let _ = writeln!(s, "kernel {areas} {current} {direct} {process} {name}");
    }
    let _ = writeln!(s, "control {control}\naccess {}", machine.core.access.0);
    for node in &machine.nodes {
        let _ = writeln!(s, "node {} {} {}", node.memory.0, node.bandwidth.0, node.port.0);
    }
    for cpu in &machine.cpus {
        let _ = writeln!(s, "cpu {}", cpu.0);
    }
    for node in machine.node_ids() {
        let row: Vec<String> = machine.latency.row(node).iter().map(|n| n.0.to_string()).collect();
        let links: Vec<String> = machine.link.row(node).iter().map(|l| l.0.to_string()).collect();
        let _ = writeln!(s, "latency {}\nlink {}", row.join(" "), links.join(" "));
    }
    for c in &machine.caches {
        let scope = match c.scope {
            CacheScope::Node => 0,
            CacheScope::Cpu => 1,
            CacheScope::Group(n) => n,
        };
        let _ = writeln!(s, "cache {} {} {} {} {scope} {}", c.level, c.size.0, c.line.0, c.ways, c.hit.0);
    }
    let _ = writeln!(s, "output {}", output.display());
    s
}

/// What a CPU did for a process while the monitor counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// All accesses.
    pub accesses: u64,
    /// Main-memory accesses to this node's memory.
    pub local: u64,
    /// To others'.
    pub remote: u64,
}

/// What a CPU did while the monitor counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Main-memory accesses: cold, capacity, coherence, upgrade.
    pub misses: [u64; 4],
    /// By number of the process.
    pub shares: BTreeMap<u16, Share>,
    /// Modelled time if nobody else were there: caches and latencies, one miss at a time.
    pub alone: Ps,
    /// Modelled time: in each interval at least as long as the busiest part of the machine that the CPU uses is busy.
    pub time: Ps,
}

/// What is modelled of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number in the guest; 0: the kernel does not say.
    pub id: u32,
    /// What it was called at last.
    pub name: String,
}

/// The guest's side as the kernel calls it: 15 letters of its name.
const GUEST_SIDE: &str = "homenode-lab-gu";

/// Whose accesses they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// The program's: it and what it started. Everybody's, where the kernel does not say which process runs.
    Program,
    /// Processes that were there before the program.
    Others,
    /// The kernel's.
    Kernel,
}

/// Main-memory accesses of a process to a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
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
    /// Loads and stores by accessing node.
    pub counts: Vec<[u64; 2]>,
}

/// What the monitor found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// By number; 1 is the first.
    pub processes: BTreeMap<u16, Process>,
    /// By virtual CPU.
    pub cpus: Vec<Cpu>,
    /// By number.
    pub intervals: Vec<Interval>,
    /// By interval, process, virtual page, physical page.
    pub pages: Vec<Page>,
    /// Accesses that did not fit the model.
    pub lost: u64,
}

impl Found {
    /// Whose the accesses of a process are, by its number. The guest's side starts the program, so that what has a smaller
    /// process number than it was there before.
    pub fn whose(&self, process: u16) -> Whose {
        let side = self.processes.values().find(|p| p.name == GUEST_SIDE).map_or(0, |p| p.id);
        match self.processes.get(&process) {
            _ if process == KERNEL => Whose::Kernel,
            Some(p) if p.id > 0 && p.id <= side => Whose::Others,
            _ => Whose::Program,
        }
    }

    /// What a CPU did for them.
    pub fn of(&self, cpu: &Cpu, whose: Whose) -> Share {
        let all = cpu.shares.iter().filter(|(process, _)| self.whose(**process) == whose);
        all.fold(Share::default(), |sum, (_, s)| Share {
            accesses: sum.accesses + s.accesses,
            local: sum.local + s.local,
            remote: sum.remote + s.remote,
        })
    }

    /// Reads what the plug-in wrote.
    ///
    /// # Errors
    /// It is not there, or it makes no sense.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))?;
        Self::parse(&text).ok_or_else(|| Error::failed("the monitor's counts make no sense"))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != "homenode counts 3" {
            return None;
        }
        let mut found = Self::default();
        for line in lines {
            let (word, rest) = line.split_once(' ')?;
            if word == "process" {
                let mut words = rest.splitn(3, ' ');
                let (number, id) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                found.processes.insert(number, Process { id, name: words.next()?.into() });
                continue;
            }
            let n: Vec<u64> = rest.split(' ').map(|n| n.parse().ok()).collect::<Option<_>>()?;
            match (word, &n[..]) {
                ("lost", [n]) => found.lost = *n,
                ("cpu", [_, m0, m1, m2, m3, alone, time]) => found.cpus.push(Cpu {
                    misses: [*m0, *m1, *m2, *m3],
                    shares: BTreeMap::new(),
                    alone: Ps(*alone),
                    time: Ps(*time),
                }),
                ("interval", [_, alone, busy, kind, a, b]) => found.intervals.push(Interval {
                    alone: Ps(*alone),
                    busiest: way(*kind, node(*a)?, node(*b)?)?,
                    busy: Ps(*busy),
                }),
                ("of", [cpu, process, accesses, local, remote]) => {
                    let share = Share { accesses: *accesses, local: *local, remote: *remote };
                    let cpu = found.cpus.get_mut(usize::try_from(*cpu).ok()?)?;
                    cpu.shares.insert(u16::try_from(*process).ok()?, share);
                }
                ("page", [interval, process, page, physical, home, counts @ ..]) => found.pages.push(Page {
                    interval: u32::try_from(*interval).ok()?,
                    process: u16::try_from(*process).ok()?,
                    page: *page,
                    physical: *physical,
                    home: node(*home)?,
                    counts: counts.chunks_exact(2).map(|c| [c[0], c[1]]).collect(),
                }),
                _ => return None,
            }
        }
        Some(found)
    }
}

fn node(number: u64) -> Option<NodeId> {
    u16::try_from(number).ok().map(NodeId)
}

/// The plug-in's numbers.
fn way(kind: u64, a: NodeId, b: NodeId) -> Option<Way> {
    Some(match kind {
        0 => Way::Controller(a),
        1 => Way::Outgoing(a),
        2 => Way::Incoming(a),
        3 => Way::Link(a, b),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_monitor::config::Addresses;

    #[test]
    fn the_plug_in_reads_what_is_written() {
        let like = homenode_machine::preset("epyc-nps4").unwrap().topology;
        let machine = Machine::even(4, 2, Bytes::gib(1), 21).unwrap();
        let topology = modelled(&machine, &like, false);
        let low = Addresses::Physical { low: Bytes(LARGE_LOW) };
        let layout = Layout { areas: 1, current: 2, direct: 3, process: 4, name: 5 };
        let text = configuration(&topology, (9, 0), Some(layout), Bytes::mib(64), 7, Path::new("/x y"));
        let config = homenode_monitor::config::Config::parse(&text).unwrap();
        assert_eq!((config.control, config.output.as_str(), config.addresses), (7, "/x y", low));
        assert_eq!(config.disk, Bytes::mib(64));
        assert_eq!(
            config.kernel.map(|k| [k.areas, k.current, k.direct, k.process, k.name]),
            Some([1, 2, 3, 4, 5])
        );
        assert_eq!(homenode_monitor::memory::NAME, MEMORY);
        assert_eq!(config.machine.caches, topology.caches);
        assert_eq!((config.machine.cpus, config.machine.latency), (topology.cpus, topology.latency));
        assert_eq!((config.machine.nodes, config.machine.link), (topology.nodes, topology.link));
    }

    #[test]
    fn a_machine_of_other_nodes_has_the_narrowest_link_between_them() {
        let mut like = homenode_machine::preset("epyc-nps4").unwrap().topology;
        like.link = Matrix::from_fn(8, |i, j| MbPerS(if i == j { 0 } else { 100 + (i * j) as u64 }));
        let four = modelled(&Machine::even(4, 1, Bytes::gib(1), 21).unwrap(), &like, false);
        assert_eq!(four.link.row(NodeId(1)), [100, 0, 100, 100].map(MbPerS));
        assert_eq!(
            (four.nodes[3].bandwidth, four.nodes[3].port),
            (like.nodes[0].bandwidth, like.nodes[0].port)
        );
        let eight = modelled(&Machine::even(8, 1, Bytes::gib(1), 21).unwrap(), &like, true);
        assert_eq!(eight.link, like.link);
    }

    #[test]
    fn results_are_read_and_damage_is_not() {
        let text = "homenode counts 3\nlost 0\nprocess 1 70 a b\ncpu 0 1 2 3 4 800 900\nof 0 0 5 1 1\nof 0 1 10 6 4\n\
                    interval 0 800 900 3 1 0\npage 0 1 7 9 1 1 2 3 4\n";
        let found = Found::parse(text).unwrap();
        assert_eq!(found.pages[0].counts, [[1, 2], [3, 4]]);
        assert_eq!((found.cpus[0].alone, found.cpus[0].time), (Ps(800), Ps(900)));
        let busiest = Way::Link(NodeId(1), NodeId(0));
        assert_eq!(found.intervals, [Interval { alone: Ps(800), busiest, busy: Ps(900) }]);
        assert_eq!(found.cpus[0].shares[&1], Share { accesses: 10, local: 6, remote: 4 });
        assert_eq!((found.pages[0].home, found.processes[&1].name.as_str()), (NodeId(1), "a b"));
        assert_eq!([0, 1, 2].map(|p| found.whose(p)), [Whose::Kernel, Whose::Program, Whose::Program]);
        let side = format!("process 2 60 {GUEST_SIDE}\nprocess 3 1 init\n");
        let found = Found::parse(&text.replace("cpu 0", &(side + "cpu 0"))).unwrap();
        assert_eq!([1, 2, 3].map(|p| found.whose(p)), [Whose::Program, Whose::Others, Whose::Others]);
        assert_eq!(found.of(&found.cpus[0], Whose::Program).remote, 4);
        assert_eq!(Found::parse("homenode counts 2\n"), None);
        assert_eq!(Found::parse(&text.replace("900", "x")), None);
        assert_eq!(Found::parse(&text.replace("of 0", "of 1")), None);
    }
}
