//! The monitor: the settings of QEMU's plug-in, and its results.

use std::fs::File;
use std::path::Path;

use homenode_model::{Bytes, Core, Matrix, MbPerS, MigrationCost, NodeId, Ns, Topology};
pub use homenode_wire::monitor::{
    AccessCounts, AccessOwner, Config, Cpu, CpuShare, KERNEL, KernelLayout, ModelledInterval, MonitorAnswer,
    MonitorCommand, MonitorReport, PageAccesses, PhysicalAddresses, Process,
};

use crate::error::{self, Error, Result};
use crate::machine::VirtualMachine;

/// Guest memory from which on QEMU's 'pc' machine leaves a larger hole under 4 GiB, and the start
/// of that hole.
const LARGE: u64 = 0xe000_0000;
const LARGE_LOW: u64 = 0xc000_0000;

/// Name of a node's memory, followed by the node's number. The plug-in finds the memory by it.
pub const MEMORY: &str = "homenode-node";

/// The first QEMU that gives plug-ins the guest's physical addresses.
const TRUE_ADDRESSES: (u32, u32) = (8, 2);

/// The modelled machine behind `machine`: caches, core, controllers, ports and local latency of
/// `like`. If `like` has the same nodes, its latencies and links hold. Otherwise the local latency
/// times the distances, and its narrowest link.
pub fn modelled(machine: &VirtualMachine, like: &Topology, same_nodes: bool) -> Topology {
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

/// The plug-in's configuration. `disk`: bytes of a disk in memory.
pub fn configuration(
    machine: &Topology,
    qemu: (u32, u32),
    kernel: Option<KernelLayout>,
    disk: Bytes,
    control: i32,
    output: &Path,
) -> Config {
    let memory: u64 = machine.nodes.iter().map(|n| n.memory.0).sum();
    let low = Bytes(if memory >= LARGE { LARGE_LOW } else { LARGE });
    Config {
        // The monitor models one miss at a time and small pages, and only the guest's kernel moves
        // pages.
        machine: Topology {
            name: "lab".into(),
            page_sizes: vec![Bytes::kib(4)],
            core: Core { outstanding: 1, ..machine.core.clone() },
            migration: MigrationCost::default(),
            remote_cacheable: true,
            counts_references: false,
            ..machine.clone()
        },
        addresses: if qemu < TRUE_ADDRESSES {
            PhysicalAddresses::Blocks { low }
        } else {
            PhysicalAddresses::Physical { low }
        },
        disk,
        kernel,
        output: output.to_owned(),
        control,
    }
}

/// Reads the plug-in's output.
///
/// # Errors
/// The file does not exist or makes no sense.
pub fn read(path: &Path) -> Result<MonitorReport> {
    let mut file = File::open(path).map_err(|e| error::of_file("read", path, &e))?;
    homenode_wire::read(&mut file)
        .map_err(|e| Error::failed("the monitor's counts make no sense").tried(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plug_in_reads_what_is_written() {
        let like = homenode_machine::preset("epyc-nps4").unwrap().topology;
        let machine = VirtualMachine::even(4, 2, Bytes::gib(1), 21).unwrap();
        let topology = modelled(&machine, &like, false);
        let low = PhysicalAddresses::Physical { low: Bytes(LARGE_LOW) };
        let layout = KernelLayout { areas: 1, current: 2, direct: 3, process: 4, name: 5 };
        let config = configuration(&topology, (9, 0), Some(layout), Bytes::mib(64), 7, Path::new("/x y"));
        let bytes = homenode_wire::encode(&config).unwrap();
        let config = homenode_monitor::config::parse(&bytes).unwrap();
        assert_eq!((config.control, config.output.as_path(), config.addresses), (7, Path::new("/x y"), low));
        assert_eq!((config.disk, config.kernel), (Bytes::mib(64), Some(layout)));
        assert_eq!(homenode_monitor::memory::NAME, MEMORY);
        assert_eq!(config.machine.caches, topology.caches);
        assert_eq!((config.machine.cpus, config.machine.latency), (topology.cpus, topology.latency));
        assert_eq!((config.machine.nodes, config.machine.link), (topology.nodes, topology.link));
        let old = configuration(&config_machine(), (8, 1), None, Bytes(0), 7, Path::new("x"));
        assert_eq!(old.addresses, PhysicalAddresses::Blocks { low: Bytes(LARGE_LOW) });
    }

    fn config_machine() -> Topology {
        let like = homenode_machine::preset("epyc-nps4").unwrap().topology;
        modelled(&VirtualMachine::even(4, 2, Bytes::gib(1), 21).unwrap(), &like, false)
    }

    #[test]
    fn a_machine_of_other_nodes_has_the_narrowest_link_between_them() {
        let mut like = homenode_machine::preset("epyc-nps4").unwrap().topology;
        like.link = Matrix::from_fn(8, |i, j| MbPerS(if i == j { 0 } else { 100 + (i * j) as u64 }));
        let four = modelled(&VirtualMachine::even(4, 1, Bytes::gib(1), 21).unwrap(), &like, false);
        assert_eq!(four.link.row(NodeId(1)), [100, 0, 100, 100].map(MbPerS));
        assert_eq!(
            (four.nodes[3].bandwidth, four.nodes[3].port),
            (like.nodes[0].bandwidth, like.nodes[0].port)
        );
        let eight = modelled(&VirtualMachine::even(8, 1, Bytes::gib(1), 21).unwrap(), &like, true);
        assert_eq!(eight.link, like.link);
    }

    #[test]
    fn results_are_read_and_damage_is_not() {
        let scratch = homenode_scratch::Scratch::new("lab").unwrap();
        let path = scratch.path().join("counts");
        let error = || read(&path).unwrap_err().to_string();
        assert!(error().contains("counts"), "{}", error());
        let cpu = Cpu { shares: [(1, CpuShare::default())].into(), ..Cpu::default() };
        let found = MonitorReport { cpus: vec![cpu], ..MonitorReport::default() };
        std::fs::write(&path, homenode_wire::encode(&found).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), found);
        std::fs::write(&path, b"homenode counts 3\n").unwrap();
        assert!(error().contains("make no sense"), "{}", error());
    }
}
