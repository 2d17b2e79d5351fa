//! Machines from hwloc: made-up ones, recorded ones, and this one.

use std::path::PathBuf;

use homenode_machine::{Error, Machine, MachineOrigin, host, resolve};
use homenode_model::{Bytes, CacheScope, NodeId, Ns};

fn fixture(name: &str) -> Machine {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hwloc").join(name);
    host::from_xml_file(&path).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_made_up_machine_of_four_nodes() {
    let m = host::from_synthetic("NUMANode:4 L2Cache:2(size=1310720) PU:1").unwrap();
    let t = &m.topology;
    assert_eq!((t.nodes.len(), t.cpus.len()), (4, 8));
    assert_eq!(t.cpus, [0, 0, 1, 1, 2, 2, 3, 3].map(NodeId));
    assert_eq!(t.latency.at(NodeId(0), NodeId(3)), Ns(180));
    assert!(m.source("latency").starts_with("assumed"));
    assert_eq!(m.source("nodes.3.memory"), "hwloc");
}

#[test]
fn a_memory_only_node_keeps_its_distances() {
    let m = fixture("memory-only-node.xml");
    let t = &m.topology;
    assert_eq!(t.name, "memory-only-node");
    assert_eq!(t.nodes_with_cpus(), [NodeId(0), NodeId(1)]);
    assert_eq!(t.nodes[2].memory, Bytes::gib(64));
    assert_eq!(t.latency.row(NodeId(0)), [90, 189, 216].map(Ns));
    assert_eq!(t.latency.row(NodeId(1)), [189, 90, 306].map(Ns));
    assert!(m.source("latency").contains("SLIT"));
    assert_eq!(t.caches.len(), 2);
    assert_eq!(
        (t.caches[0].size, t.caches[0].ways, t.caches[0].scope),
        (Bytes::kib(512), 8, CacheScope::Cpu)
    );
    assert_eq!(
        (t.caches[1].size, t.caches[1].ways, t.caches[1].scope),
        (Bytes::mib(30), 15, CacheScope::Node)
    );
    assert!(m.source("caches.1.ways").contains("20 changed"));
}

#[test]
fn off_line_cpus_are_left_out_and_the_kernels_numbers_kept() {
    let m = fixture("offline-cpus.xml");
    let t = &m.topology;
    assert_eq!(
        t.nodes.iter().enumerate().map(|(n, _)| t.cpus_of(NodeId(n as u16)).count()).collect::<Vec<_>>(),
        [5, 8, 8, 8]
    );
    let os = m.os.as_ref().unwrap();
    assert_eq!(os.cpus[..6], [2, 3, 4, 6, 7, 8]);
    assert_eq!(os.nodes, [0, 1, 2, 3]);
    assert_eq!(t.caches[0].scope, CacheScope::Group(2));
    assert!(m.source("caches.0.shared_by").contains("most common"));
}

#[test]
fn what_the_process_may_not_use_is_left_out() {
    let m = fixture("cpuset-and-shared-l3.xml");
    let t = &m.topology;
    // Node 1's CPUs may be used and its memory not; socket 1 neither.
    assert_eq!(t.nodes.iter().map(|n| n.memory).collect::<Vec<_>>(), [Bytes::gib(32), Bytes::ZERO]);
    assert_eq!(t.cpus.len(), 16);
    assert_eq!(t.nodes_with_memory(), [NodeId(0)]);
    // One L3 of 60 MiB over two nodes is two of 30.
    assert_eq!((t.caches[1].size, t.caches[1].scope), (Bytes::mib(30), CacheScope::Node));
    assert!(m.source("caches.1.size").contains("2 equal shares"));
}

#[test]
fn machines_of_hwloc_survive_writing() {
    for m in
        [fixture("memory-only-node.xml"), fixture("offline-cpus.xml"), fixture("cpuset-and-shared-l3.xml")]
    {
        let again = Machine::from_toml(&m.to_toml(), m.origin.clone()).unwrap();
        assert_eq!(again, m);
    }
}

#[test]
fn what_hwloc_refuses_is_an_error_that_says_what_was_tried() {
    let e = host::from_synthetic("Nonsense:4").unwrap_err();
    assert!(matches!(&e, Error::Hwloc { .. }));
    assert!(e.to_string().contains("\"Nonsense:4\""), "{e}");
    assert!(matches!(resolve("no-such.xml"), Err(Error::Read { .. })));
}

#[test]
fn this_machine_checks_and_every_number_has_a_source() {
    let m = resolve("this").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(m.origin, MachineOrigin::Host);
    m.topology.check().unwrap();
    assert!(m.values().iter().all(|v| m.sources.values().any(|s| *s == v.source)));
    let allowed = std::thread::available_parallelism().unwrap().get();
    // A CPU quota may make the number of threads smaller than the number of CPUs.
    assert!(m.topology.cpus.len() >= allowed, "{} CPUs for {allowed} threads", m.topology.cpus.len());
}

#[test]
fn firmware_that_states_latency_and_bandwidth_is_believed() {
    let m = fixture("hmat.xml");
    let t = &m.topology;
    // Stated: each socket's own memory, and the expander from socket 0. The rest is scaled by
    // distance.
    assert_eq!(t.latency.row(NodeId(0)), [110, 231, 250].map(Ns));
    assert_eq!(t.latency.row(NodeId(1)), [231, 110, 374].map(Ns));
    assert!(m.source("latency").contains("3 of 9 cells from firmware"), "{}", m.source("latency"));
    // 200 000 MiB/s.
    assert_eq!(t.nodes[0].bandwidth, homenode_model::MbPerS(209_715));
    assert_eq!(t.nodes[2].bandwidth, homenode_model::MbPerS(31_457));
    assert!(m.source("nodes.2.bandwidth").contains("HMAT"));
    assert!(m.source("nodes.2.port").starts_with("assumed"));
}
