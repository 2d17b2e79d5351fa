//! The virtual machine: nodes, CPUs, memory, distances.

use homenode_model::{Bytes, NodeId, Topology};

use crate::error::{Error, Result};

/// A node of the virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualNode {
    /// Virtual CPUs; may be 0.
    pub cpus: u32,
    /// Memory; may be 0.
    pub memory: Bytes,
}

/// The virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualMachine {
    /// Its nodes.
    pub nodes: Vec<VirtualNode>,
    /// SLIT distances, row by row: 10 on the diagonal, 11 to 254 elsewhere.
    pub distances: Vec<Vec<u8>>,
}

/// Distance of a node to itself (ACPI 6.5, 5.2.17).
const LOCAL: u8 = 10;
/// The largest distance; 255 means unreachable.
const FAR: u8 = 254;
/// Least memory with which a distribution's kernel boots.
const LEAST: Bytes = Bytes::mib(256);
/// Least memory of a node. The kernel leaves smaller nodes out.
const LEAST_NODE: Bytes = Bytes::mib(32);
/// Most virtual CPUs. More make no progress on any host that needs this lab.
pub const MOST_CPUS: u32 = 64;
/// QEMU's limit.
pub const MOST_NODES: usize = 64;

impl VirtualMachine {
    /// `nodes` equal nodes, all equally far from each other.
    ///
    /// # Errors
    /// A distance below 10 or above 254, no node, no CPU, too many.
    pub fn even(nodes: u32, cpus: u32, memory: Bytes, distance: u32) -> Result<Self> {
        let far = match u8::try_from(distance) {
            Ok(d) if d > LOCAL && d <= FAR => d,
            _ => {
                return Err(Error::usage(format!("a distance of {distance} makes no sense")).hint(
                    "10 is the distance of a node to itself; between nodes it is 11 to 254, such as 21",
                ));
            }
        };
        let n = nodes as usize;
        if n == 0 || n > MOST_NODES {
            return Err(Error::usage(format!("cannot make a machine of {nodes} nodes"))
                .tried(format!("QEMU takes 1 to {MOST_NODES} nodes"))
                .hint(format!("--nodes N with N from 1 to {MOST_NODES}")));
        }
        let row = |i| (0..n).map(|j| if i == j { LOCAL } else { far }).collect();
        let distances = (0..n).map(row).collect();
        Self { nodes: vec![VirtualNode { cpus, memory }; n], distances }.checked()
    }

    /// The nodes and latencies of `topology`, with at most `cpus` CPUs and `memory` a node: an
    /// emulator on a small machine cannot offer 128 CPUs.
    ///
    /// # Errors
    /// The rest makes no machine.
    pub fn like(topology: &Topology, cpus: u32, memory: Bytes) -> Result<Self> {
        let node = |id: NodeId| VirtualNode {
            cpus: cpus.min(topology.cpus_of(id).count() as u32),
            memory: memory.min(topology.nodes[id.index()].memory),
        };
        let ids: Vec<NodeId> = topology.node_ids().collect();
        if ids.len() > MOST_NODES {
            return Err(Error::usage(format!("cannot make {} in the lab", topology.name))
                .tried(format!("it has {} nodes, and QEMU takes {MOST_NODES}", ids.len()))
                .hint(format!("name a smaller machine, or --nodes N with N up to {MOST_NODES}")));
        }
        let distances =
            ids.iter().map(|i| ids.iter().map(|j| distance(topology, *i, *j)).collect()).collect();
        Self { nodes: ids.into_iter().map(node).collect(), distances }.checked()
    }

    fn checked(self) -> Result<Self> {
        let cpus = self.cpus();
        if cpus == 0 || cpus > MOST_CPUS {
            return Err(Error::usage(format!("{cpus} CPUs in all: it must be 1 to {MOST_CPUS}"))
                .hint("--cpus is the number a node"));
        }
        if let Some(small) = self.nodes.iter().find(|n| n.memory > Bytes::ZERO && n.memory < LEAST_NODE) {
            return Err(too_small(format!("a node with {} is too small", shown(small.memory))));
        }
        let memory = self.memory();
        if memory < LEAST {
            return Err(too_small(format!("{} of memory in all is too little for a kernel", shown(memory))));
        }
        Ok(self)
    }

    /// CPUs of all nodes.
    pub fn cpus(&self) -> u32 {
        self.nodes.iter().map(|n| n.cpus).fold(0, u32::saturating_add)
    }

    /// Memory of all nodes.
    pub fn memory(&self) -> Bytes {
        self.nodes.iter().map(|n| n.memory).sum()
    }

    /// Checks that this host has the memory.
    ///
    /// # Errors
    /// It has not; the error says how much there is.
    pub fn fits(&self, available: Bytes) -> Result<()> {
        if self.memory() <= available {
            return Ok(());
        }
        let per_node = Bytes((available.0 / self.nodes.len().max(1) as u64) & !0xff_ffff);
        Err(Error::failed(format!("too little memory for {} nodes", self.nodes.len()))
            .tried(format!("{} are asked for, {} are available", shown(self.memory()), shown(available)))
            .hint(format!("--mem {}M, or fewer --nodes", per_node.0 >> 20)))
    }
}

fn too_small(message: String) -> Error {
    Error::usage(message).hint("--mem is the memory a node, at least 32M, and at least 256M in all")
}

/// A latency relative to the local one, in SLIT's tenths.
fn distance(t: &Topology, i: NodeId, j: NodeId) -> u8 {
    if i == j {
        return LOCAL;
    }
    // The rows of nodes without CPUs mean nothing. The other direction replaces them, or the
    // distance of a usual neighbour.
    let has_cpus = |n: NodeId| t.cpus.contains(&n);
    let (from, to) = match (has_cpus(i), has_cpus(j)) {
        (true, _) => (i, j),
        (false, true) => (j, i),
        (false, false) => return 2 * LOCAL,
    };
    let local = t.latency.at(from, from).0.max(1);
    let tenths = t.latency.at(from, to).0.saturating_mul(u64::from(LOCAL)) / local;
    tenths.clamp(u64::from(LOCAL) + 1, u64::from(FAR)) as u8
}

fn shown(bytes: Bytes) -> String {
    format!("{} MiB", bytes.0 >> 20)
}

/// Memory that this host can spare, from `/proc/meminfo`.
pub fn available() -> Bytes {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib =
        text.lines().find_map(|l| l.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse().ok());
    // If nobody can say, QEMU will.
    kib.map_or(Bytes::MAX, Bytes::kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_slits() {
        let m = VirtualMachine::even(3, 1, Bytes::gib(1), 21).unwrap();
        assert_eq!(m.distances, [[10, 21, 21], [21, 10, 21], [21, 21, 10]]);
        for bad in [0, 9, 10, 255, 1000] {
            let e = VirtualMachine::even(2, 1, Bytes::gib(1), bad).unwrap_err();
            assert!(e.message.contains(&bad.to_string()), "{e}");
        }
    }

    #[test]
    fn what_is_too_small_or_too_large_is_refused() {
        assert!(VirtualMachine::even(0, 1, Bytes::gib(1), 20).is_err());
        assert!(VirtualMachine::even(4, 0, Bytes::gib(1), 20).is_err());
        assert!(VirtualMachine::even(4, 17, Bytes::gib(1), 20).is_err());
        assert!(VirtualMachine::even(4, 1, Bytes::mib(8), 20).unwrap_err().message.contains("8 MiB"));
        let e = VirtualMachine::even(4, 1, Bytes::gib(8), 20).unwrap().fits(Bytes::gib(4)).unwrap_err();
        assert_eq!(e.hint.as_deref(), Some("--mem 1024M, or fewer --nodes"));
    }

    #[test]
    fn a_presets_latencies_become_distances() {
        let t = homenode_machine::preset("epyc-nps4").unwrap().topology;
        let m = VirtualMachine::like(&t, 1, Bytes::mib(512)).unwrap();
        assert_eq!((m.nodes.len(), m.cpus()), (8, 8));
        // 95, 110 and 200 ns.
        assert_eq!(m.distances[0], [10, 11, 11, 11, 21, 21, 21, 21]);
        let cxl =
            VirtualMachine::like(&homenode_machine::preset("cxl").unwrap().topology, 1, Bytes::mib(512))
                .unwrap();
        assert!(cxl.nodes.iter().any(|n| n.cpus == 0), "{cxl:?}");
        assert!(cxl.distances.iter().enumerate().all(|(i, r)| r[i] == 10));
    }
}
