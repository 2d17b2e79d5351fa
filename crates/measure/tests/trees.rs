//! Recorded machines (`fixtures/sysfs`) through all of the logic: what there is, what is planned,
//! what is said.

use std::path::{Path, PathBuf};

use homenode_measure::{
    CellUnit, CpuNumber, Credibility, Host, MeasurePlan, MeasureRequest, Measurement, MeasurementKind,
    NodeNumber, NodePair, PageSize, Synthetic, Visit, measure, plan,
};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sysfs").join(name)
}

fn host(name: &str) -> Host {
    Host { synthetic: true, ..Host::at(&file(name)).unwrap() }
}

fn all(host: &Host, ask: &MeasureRequest) -> (MeasurePlan, Measurement) {
    let plan = plan(host, ask);
    let m = measure(host, ask, &plan, &mut Synthetic::recorded(host), &|| false, &mut |_, _| {});
    (plan, m)
}

fn said(m: &Measurement) -> String {
    let absent = m.cells.iter().filter_map(|c| match &c.verdict {
        Credibility::Absent { why, remedy } => Some(format!("{why}; {remedy}")),
        _ => None,
    });
    absent.chain(m.notes.iter().cloned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn sizes_beyond_all_memory_are_read() {
    let text = std::fs::read_to_string(file("container.tree")).unwrap();
    let huge = |line: &str| match line.strip_suffix(" kB").and_then(|l| l.rsplit_once(' ')) {
        Some((name, _)) => format!("{name} {} kB\n", u64::MAX),
        None => format!("{line}\n"),
    };
    let path = std::env::temp_dir().join(format!("homenode-measure-huge-{}.tree", std::process::id()));
    std::fs::write(&path, text.lines().map(huge).collect::<String>()).unwrap();
    let read = Host::at(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(read.nodes.iter().any(|n| n.free == u64::MAX), "{:?}", read.nodes);
}

#[test]
fn what_a_terminal_obeys_is_no_part_of_a_host() {
    let text = std::fs::read_to_string(file("container.tree")).unwrap();
    let evil = text.replace("powersave", "pow\u{1b}[31m\u{9b}\u{202e}er");
    assert_ne!(evil, text);
    let path = std::env::temp_dir().join(format!("homenode-measure-evil-{}.tree", std::process::id()));
    std::fs::write(&path, evil).unwrap();
    let read = Host::at(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(read.state.governor.unwrap().contains("pow\u{fffd}[31m\u{fffd}\u{fffd}er"), "it is marked");
}

#[test]
fn the_labs_four_nodes_are_measured_whole() {
    let host = host("lab-4-nodes.tree");
    let cpus: Vec<Vec<u32>> = host.nodes.iter().map(|n| n.cpus.iter().map(|c| c.0).collect()).collect();
    assert_eq!(cpus, [[0, 1], [2, 3], [4, 5], [6, 7]]);
    assert_eq!(host.distance(NodeNumber(0), NodeNumber(3)), Some(21));
    assert!(host.state.virtual_machine && host.kernel.starts_with("6.1"));
    assert_eq!(host.state.thp.as_deref(), Some("always"));
    let small = MeasureRequest { buffer: Some(2 << 20), ..MeasureRequest::all() };
    let (plan, m) = all(&host, &small);
    assert!(m.is_complete(), "{}", said(&m));
    assert_eq!(plan.items.iter().filter(|i| matches!(i, Visit::Latency { .. })).count(), 32);
    let at = |a, b| m.latency(NodePair::new(a, b)).unwrap();
    assert!((at(0, 1) / at(0, 0) - 2.1).abs() < 1e-9, "as the distances have it");
    // By rule a buffer is four times all last-level cache, and such a node has not so much.
    let (_, m) = all(
        &host,
        &MeasureRequest {
            kinds: [MeasurementKind::Latency].into(),
            buffer: Some(1 << 30),
            ..MeasureRequest::all()
        },
    );
    assert!(m.cells.iter().all(|c| c.value.is_none()), "nothing fits");
    assert!(said(&m).contains("1024 MiB on node 0 are asked for and"), "{}", said(&m));
    assert!(said(&m).contains("--buffer"), "{}", said(&m));
}

#[test]
fn a_container_that_allows_a_part_is_measured_in_that_part() {
    let host = host("container.tree");
    let zero = host.node(NodeNumber(0)).unwrap();
    assert_eq!(zero.cpus, [0, 1, 4, 5].map(CpuNumber));
    assert_eq!(zero.cores, [0, 1].map(CpuNumber), "a thread a core");
    assert_eq!((host.with_cpus(), host.with_memory()), (vec![NodeNumber(0)], vec![NodeNumber(0)]));
    // One L3 is in use; the other belongs to CPUs that may not be used.
    assert_eq!(host.last_level_cache, 32 << 20);
    let s = &host.state;
    assert_eq!((s.cgroup_memory, s.cgroup_cpu.as_deref()), (Some(1 << 30), Some("150000 100000")));
    assert_eq!(
        (s.governor.as_deref(), s.smt.as_deref(), s.thp.as_deref()),
        (Some("powersave"), Some("on"), Some("never"))
    );
    assert_eq!((s.isolated.as_deref(), s.numa_balancing.as_deref()), (Some("6"), Some("1")));
    let (_, m) = all(&host, &MeasureRequest::quick());
    assert!(m.is_complete(), "one node is measured: {}", said(&m));
    for word in [
        "off-line CPUs of node 1: 7",
        "CPUs of node 1 outside of this process's cpuset or affinity: 2, 3, 6",
        "the memory of node 1 is outside of this process's cpuset",
        "migration: pages move between two nodes with memory, and there are fewer",
    ] {
        assert!(said(&m).contains(word), "{word}: {}", said(&m));
    }
    // What is asked for by name and may not be used is a cell that says so, and the rest is done.
    let pairs = vec![NodePair::new(0, 0), NodePair::new(1, 0), NodePair::new(0, 1)];
    let (_, m) = all(
        &host,
        &MeasureRequest {
            kinds: [MeasurementKind::Bandwidth].into(),
            pairs,
            threads: Some(1),
            ..MeasureRequest::quick()
        },
    );
    assert!(said(&m).contains("none of the 4 CPUs of node 1 may be used"), "{}", said(&m));
    assert!(said(&m).contains("cpuset.mems of the control group"), "{}", said(&m));
    assert!(!m.is_complete() && m.cells.iter().any(|c| c.value.is_some() && c.unit == CellUnit::MbPerS));
    // And what is true of the real one is said, too.
    let real = Host { synthetic: false, ..host }.remarks().join("\n");
    for word in [
        "governor powersave",
        "SMT is on",
        "NUMA balancing is on (1)",
        "load average was 1.75",
        "cpu.max 150000 100000",
    ] {
        assert!(real.contains(word), "{word}: {real}");
    }
}

#[test]
fn nodes_without_cpus_or_memory_are_no_sources_or_targets() {
    let host = host("memory-only-hmat.tree");
    assert_eq!(
        (host.with_cpus(), host.with_memory()),
        (vec![NodeNumber(0), NodeNumber(1)], vec![NodeNumber(0), NodeNumber(2)])
    );
    let hmat = host.firmware(NodeNumber(0), NodeNumber(2)).unwrap();
    assert_eq!((hmat.read_ns, hmat.read_mb_per_s), (Some(250), Some(50_000)));
    assert_eq!(host.firmware(NodeNumber(1), NodeNumber(2)), None, "HMAT tells of the nearest alone");
    let (plan, m) = all(&host, &MeasureRequest::quick());
    assert!(m.is_complete(), "{}", said(&m));
    let pairs: Vec<NodePair> = plan
        .items
        .iter()
        .filter_map(|i| match i {
            Visit::Latency { pair, chase } if chase.page == PageSize::Huge => Some(*pair),
            _ => None,
        })
        .collect();
    assert_eq!(pairs, [NodePair::new(0, 0), NodePair::new(1, 0), NodePair::new(0, 2), NodePair::new(1, 2)]);
    assert_eq!(m.latency(NodePair::new(0, 2)), Some(250.0));
    // Pages move between the two that have memory; a next toucher needs CPUs and memory.
    let count = |of: fn(&Visit) -> bool| plan.items.iter().filter(|i| of(i)).count();
    assert_eq!(count(|i| matches!(i, Visit::Migration(_))), 4);
    assert_eq!(count(|i| matches!(i, Visit::NextTouch(_))), 4);
    assert!(said(&m).contains("node 1 has no memory: it is no target"), "{}", said(&m));
    assert!(said(&m).contains("node 2 has no CPUs: nothing is measured from it"), "{}", said(&m));
    let ask = MeasureRequest {
        kinds: [MeasurementKind::Latency].into(),
        nodes: vec![NodeNumber(0), NodeNumber(1), NodeNumber(7)],
        ..MeasureRequest::quick()
    };
    let (_, m) = all(&host, &ask);
    assert!(said(&m).contains("node 1 has no memory; nodes with memory: 0, 2"), "{}", said(&m));
    assert!(said(&m).contains("node 7 does not exist"), "{}", said(&m));
    assert!(m.latency(NodePair::new(0, 0)).is_some() && !m.is_complete());
}

#[test]
fn what_is_no_recording_is_refused() {
    for path in [file("README.md"), file("nothing.tree"), file("")] {
        let error = Host::at(&path).unwrap_err().to_string();
        assert!(error.contains("sys/devices/system/cpu/online"), "{error}");
    }
}
