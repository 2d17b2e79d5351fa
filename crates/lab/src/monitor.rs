//! The monitor: what QEMU's plug-in is told, and what it found.

use std::fmt::Write as _;
use std::path::Path;

use homenode_model::{CacheScope, Matrix, NodeId, Ns, Topology};

use crate::error::{Error, Result};
use crate::machine::Machine;

/// Guest memory from which on QEMU's 'pc' machine leaves a larger hole under 4 GiB, and where that begins.
const LARGE: u64 = 0xe000_0000;
const LARGE_LOW: u64 = 0xc000_0000;

/// The first QEMU whose plug-ins are told the guest's physical addresses.
const TRUE_ADDRESSES: (u32, u32) = (8, 2);

/// The machine that is modelled behind `machine`: caches, core and local latency of `like`. Where `like` has those nodes,
/// its latencies hold; otherwise the local one, multiplied by the distances.
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
    let link = Matrix::from_fn(nodes.len(), |_, _| homenode_model::MbPerS(0));
    Topology { name: format!("lab, caches of {}", like.name), nodes, cpus, latency, link, ..like.clone() }
}

/// The plug-in's configuration.
pub fn configuration(machine: &Topology, qemu: (u32, u32), control: i32, output: &Path) -> String {
    let mut s = String::from("homenode monitor 1\n");
    let memory: u64 = machine.nodes.iter().map(|n| n.memory.0).sum();
    let low = match memory {
        // The plug-in's word for "places in QEMU's blocks".
        _ if qemu < TRUE_ADDRESSES => 0,
        LARGE.. => LARGE_LOW,
        _ => LARGE,
    };
    let _ = writeln!(s, "addresses {low}");
    let _ = writeln!(s, "control {control}\naccess {}", machine.core.access.0);
    for node in &machine.nodes {
        let _ = writeln!(s, "node {}", node.memory.0);
    }
    for cpu in &machine.cpus {
        let _ = writeln!(s, "cpu {}", cpu.0);
    }
    for node in machine.node_ids() {
        let row: Vec<String> = machine.latency.row(node).iter().map(|n| n.0.to_string()).collect();
        let _ = writeln!(s, "latency {}", row.join(" "));
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

/// What a CPU did while the monitor counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// All accesses: the program's side, the kernel's.
    pub accesses: [u64; 2],
    /// Main-memory accesses: cold, capacity, coherence, upgrade.
    pub misses: [u64; 4],
    /// The program's side: to this node's memory, to others'.
    pub user: [u64; 2],
    /// The kernel's side.
    pub kernel: [u64; 2],
    /// Modelled time.
    pub time: homenode_model::Ps,
}

/// Main-memory accesses of the program's side to a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Counted from 0; a mark of the program begins the next.
    pub interval: u32,
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
    /// By virtual CPU.
    pub cpus: Vec<Cpu>,
    /// By interval, virtual page, physical page.
    pub pages: Vec<Page>,
    /// Accesses that did not fit the model.
    pub lost: u64,
}

impl Found {
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
        if lines.next()? != "homenode counts 1" {
            return None;
        }
        let mut found = Self::default();
        for line in lines {
            let (word, rest) = line.split_once(' ')?;
            let n: Vec<u64> = rest.split(' ').map(|n| n.parse().ok()).collect::<Option<_>>()?;
            match (word, &n[..]) {
                ("lost", [n]) => found.lost = *n,
                ("cpu", [_, user, kernel, m0, m1, m2, m3, lu, ru, lk, rk, time]) => found.cpus.push(Cpu {
                    accesses: [*user, *kernel],
                    misses: [*m0, *m1, *m2, *m3],
                    user: [*lu, *ru],
                    kernel: [*lk, *rk],
                    time: homenode_model::Ps(*time),
                }),
                ("page", [interval, page, physical, home, counts @ ..]) => found.pages.push(Page {
                    interval: u32::try_from(*interval).ok()?,
                    page: *page,
                    physical: *physical,
                    home: NodeId(u16::try_from(*home).ok()?),
                    counts: counts.chunks_exact(2).map(|c| [c[0], c[1]]).collect(),
                }),
                _ => return None,
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::Bytes;
    use homenode_monitor::config::Addresses;

    #[test]
    fn the_plug_in_reads_what_is_written() {
        let like = homenode_machine::preset("epyc-nps4").unwrap().topology;
        let machine = Machine::even(4, 2, Bytes::gib(1), 21).unwrap();
        let topology = modelled(&machine, &like, false);
        let low = Addresses::Physical { low: Bytes(LARGE_LOW) };
        let text = configuration(&topology, (9, 0), 7, Path::new("/x y"));
        let config = homenode_monitor::config::Config::parse(&text).unwrap();
        assert_eq!((config.control, config.output.as_str(), config.addresses), (7, "/x y", low));
        assert_eq!(config.machine.caches, topology.caches);
        assert_eq!((config.machine.cpus, config.machine.latency), (topology.cpus, topology.latency));
    }

    #[test]
    fn results_are_read_and_damage_is_not() {
        let text = "homenode counts 1\nlost 0\ncpu 0 10 5 1 2 3 4 6 4 1 1 900\npage 0 7 9 1 1 2 3 4\n";
        let found = Found::parse(text).unwrap();
        assert_eq!(found.pages[0].counts, [[1, 2], [3, 4]]);
        assert_eq!((found.cpus[0].user, found.pages[0].home), ([6, 4], NodeId(1)));
        assert_eq!(Found::parse("homenode counts 2\n"), None);
        assert_eq!(Found::parse(&text.replace("900", "x")), None);
    }
}
