//! Every preset is whole, and a change of one shows in this table.

use homenode_machine::{ASSUMED, Machine, MachineOrigin, list, preset};
use homenode_model::{CacheScope, CpuId, NodeId, Ns};

#[test]
fn every_preset_reads_checks_and_names_the_source_of_every_number() {
    assert_eq!(list().len(), 9);
    for info in list() {
        // `preset` hides the error of a preset that does not read; this does not.
        let path = format!("{}/presets/{}.toml", env!("CARGO_MANIFEST_DIR"), info.name);
        let text = std::fs::read_to_string(&path).unwrap();
        let m = Machine::from_toml(&text, MachineOrigin::File(path)).unwrap_or_else(|e| panic!("{e}"));
        m.topology.check().unwrap();
        assert_eq!(m.topology.name, info.name);
        assert!(!info.about.is_empty());
        for v in m.values() {
            assert!(!v.source.is_empty(), "{}: {} has no source", info.name, v.path);
        }
        // Not the fallback for absent sources: each one is written in the file.
        let written = m.values().iter().filter(|v| m.sources.values().any(|s| *s == v.source)).count();
        assert_eq!(written, m.values().len(), "{}", info.name);
    }
}

#[test]
fn caches_can_be_modelled_exactly_behind_the_recorders_filter() {
    for info in list() {
        let machine = preset(info.name).unwrap().topology;
        // A machine that needs hits refuses recordings with a filter.
        for c in machine.caches.iter().filter(|_| !machine.needs_hits()) {
            assert!(c.sets() >= 1024 && c.line.0 >= 64, "{}: L{} has {} sets", info.name, c.level, c.sets());
        }
    }
}

#[test]
fn table_of_all_presets() {
    let mut table = String::new();
    for info in list() {
        let m = preset(info.name).unwrap();
        let caches: Vec<String> = m
            .topology
            .caches
            .iter()
            .map(|c| {
                let scope = match c.scope {
                    CacheScope::Cpu => "cpu".into(),
                    CacheScope::Node => "node".into(),
                    CacheScope::Group(n) => format!("{n} cpus"),
                };
                format!("L{} {}K/{}w/{} {scope}", c.level, c.size.0 >> 10, c.ways, c.line.0)
            })
            .collect();
        let find = |path: &str| m.values().into_iter().find(|v| v.path == path).unwrap().text;
        table += &format!(
            "{} | {}n {}c | {} | {} | {} | {} + {}/KiB\n",
            info.name,
            info.nodes,
            info.cpus,
            find("latency"),
            find("link"),
            caches.join(", "),
            find("migration.fixed"),
            find("migration.per_kib"),
        );
    }
    let expected = "\
sf15k | 4n 16c | 216 ns local, 432 ns remote | 2.4 GB/s | L2 8192K/2w/64 cpu | 41 us + 2900 ns/KiB
wildfire | 2n 32c | 330 ns local, 1800 ns remote | 800 MB/s | L2 4096K/1w/64 cpu | 90 us + 1280 ns/KiB
origin2000 | 64n 128c | 315 ns local, 415 ns to 915 ns remote | 800 MB/s | L2 4096K/2w/128 cpu | 1 ms + 0 ns/KiB
origin3000 | 16n 64c | 180 ns local, 270 ns to 360 ns remote | 1.6 GB/s | L2 8192K/2w/128 cpu | 417 us + 0 ns/KiB
smile | 4n 4c | 150 ns local, 1500 ns remote | 80 MB/s | L1 16K/4w/64 cpu | 50 us + 12800 ns/KiB
2s-xeon | 2n 64c | 85 ns local, 145 ns remote | 67.2 GB/s | L2 1280K/20w/64 cpu, L3 49152K/12w/64 node | 800 ns + 93 ns/KiB
epyc-nps4 | 8n 128c | 95 ns local, 110 ns to 200 ns remote | 50 GB/s | L2 512K/8w/64 cpu, L3 32768K/16w/64 8 cpus | 800 ns + 93 ns/KiB
spr-snc4 | 8n 112c | 105 ns local, 120 ns to 210 ns remote | 60 GB/s | L2 2048K/16w/64 cpu, L3 26624K/13w/64 node | 800 ns + 93 ns/KiB
cxl | 3n 64c | 110 ns to 250 ns local, 190 ns to 370 ns remote | 20 GB/s to 72 GB/s | L2 2048K/16w/64 cpu, L3 61440K/15w/64 node | 800 ns + 93 ns/KiB
";
    assert_eq!(table, expected, "\n{table}");
}

#[test]
fn an_origin2000_counts_hops_and_an_origin3000_bricks() {
    let o = preset("origin2000").unwrap().topology;
    let at = |a, b| o.latency.at(NodeId(a), NodeId(b));
    assert_eq!([at(0, 0), at(0, 1), at(0, 2), at(0, 7), at(0, 63)], [315, 415, 515, 615, 915].map(Ns));
    assert_eq!(o.node_of(CpuId(127)), NodeId(63));
    let o = preset("origin3000").unwrap().topology;
    let at = |a, b| o.latency.at(NodeId(a), NodeId(b));
    // Robertson, Fig. 2: memory on brick 2, near from 0, 1, 3, far from all others.
    assert_eq!([at(2, 2), at(0, 2), at(3, 2), at(4, 2), at(15, 2)], [180, 270, 270, 360, 360].map(Ns));
}

#[test]
fn lofs_migration_constants_lie_where_table_3_puts_them() {
    let m = preset("sf15k").unwrap().topology.migration;
    // (megabytes of data, seconds with 8 KiB pages, with 512 KiB pages), 12 threads. Three quarters
    // of the data move.
    let mut error = 0.0f64;
    for (mb, small, large) in
        [(165.0, 0.77, 0.16), (500.0, 2.52, 1.20), (500.0, 1.94, 0.60), (500.0, 2.71, 1.10)]
    {
        let seconds =
            |page: u64| 0.75 * mb * 1e6 / page as f64 * m.of(homenode_model::Bytes(page), 11).0 as f64 * 1e-9;
        for (ours, theirs) in [(seconds(8 << 10), small), (seconds(512 << 10), large)] {
            error = error.max((ours / theirs - 1.0f64).abs());
        }
    }
    // One pair of constants, NAS-MG's, for four programs: CG's with large pages are the farthest
    // away.
    assert!(error < 1.3, "off by {error}");
}

#[test]
fn a_memory_only_node_is_a_home_and_never_touches() {
    let t = preset("cxl").unwrap().topology;
    assert_eq!(t.nodes_with_cpus(), [NodeId(0), NodeId(1)]);
    assert_eq!(t.nearest_memory(NodeId(1)), [NodeId(1), NodeId(0), NodeId(2)]);
}

#[test]
fn the_word_assumed_is_what_an_absent_source_is() {
    let mut m = preset("sf15k").unwrap();
    m.sources.clear();
    assert!(m.values().iter().all(|v| v.source == ASSUMED));
}
