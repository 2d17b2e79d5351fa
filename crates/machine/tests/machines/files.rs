//! Machine files: what is written reads back, what is wrong is said where it is wrong, nothing
//! panics.

use std::collections::BTreeMap;

use homenode_machine::{Error, Machine, MachineOrigin, OsNumbers, list, preset};
use homenode_model::{
    Bytes, Cache, CacheScope, Core, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology, Writes,
};
use proptest::prelude::*;

const TWIN: &str = r#"name = "twin"
[[nodes]]
count = 2
cpus = 2
memory = "1 GiB"
[latency]
levels = [90, "140 ns"]
[core]
access = "0.5 ns"
outstanding = 10
[migration]
fixed = "2 us"
per_kib = 93
"#;

fn parse(text: &str) -> Result<Machine, Error> {
    Machine::from_toml(text, MachineOrigin::File("m.toml".into()))
}

/// The message for `TWIN` with `from` replaced.
fn complaint(from: &str, to: &str) -> String {
    assert!(TWIN.contains(from), "{from}");
    parse(&TWIN.replacen(from, to, 1)).expect_err(to).to_string()
}

#[test]
fn the_smallest_file_has_defaults() {
    let m = parse(TWIN).unwrap();
    assert_eq!(m.topology.cpus, [0, 0, 1, 1].map(NodeId));
    assert_eq!(m.topology.latency.at(NodeId(0), NodeId(1)), Ns(140));
    assert_eq!(m.topology.page_sizes, [Bytes::kib(4)]);
    assert_eq!(m.topology.link.at(NodeId(0), NodeId(1)), MbPerS(0));
    assert!(m.topology.caches.is_empty() && m.topology.remote_cacheable && m.os.is_none());
    assert_eq!(m.source("latency"), "assumed");
}

#[test]
fn sources_stand_beside_numbers_and_a_default_fills_the_rest() {
    let text = TWIN
        .replace("memory = \"1 GiB\"", "memory = { value = \"1 GiB\", source = \"dmidecode\" }")
        .replace("name =", "source = \"guessed by Ann\"\nname =")
        .replace("[core]", "source = \"measured\"\n[core]");
    let m = parse(&text).unwrap();
    assert_eq!(m.source("nodes.0.memory"), "dmidecode");
    assert_eq!(m.source("nodes.1.memory"), "dmidecode");
    assert_eq!(m.source("nodes.1.port"), "guessed by Ann");
    assert_eq!(m.source("latency"), "measured");
    assert_eq!(m.source("core.access"), "guessed by Ann");
    let memory = m.values().into_iter().find(|v| v.path == "nodes.0-1.memory").unwrap();
    assert_eq!((memory.text.as_str(), memory.source.as_str()), ("1 GiB", "dmidecode"));
}

#[test]
fn what_is_wrong_is_said_where_it_is_wrong() {
    for (from, to, place, says) in [
        ("[latency]", "[latnecy]", "m.toml:6:2:", "did you mean `latency`?"),
        ("cpus = 2", "cpu = 2", "m.toml:4:1:", "did you mean `cpus`?"),
        ("\"1 GiB\"", "\"1 GB\"", "m.toml:5:10:", "write GiB"),
        ("\"1 GiB\"", "true", "m.toml:5:10:", "expected a size such as \"8 MiB\""),
        ("cpus = 2", "cpus = -2", "m.toml:4:8:", "expected a whole number"),
        ("cpus = 2", "cpus = 40000", "m.toml:2:1:", "more than 65536 CPUs"),
        ("count = 2", "count = 2000", "m.toml:3:9:", "from 0 to 1024"),
        ("count = 2", "count = 0", "m.toml:3:9:", "from 1 to 1024"),
        ("\"140 ns\"", "\"140 sn\"", "m.toml:7:15:", "did you mean `ns`?"),
        ("[90, \"140 ns\"]", "[90]", "m.toml:7:10:", "need 2"),
        ("levels = [90, \"140 ns\"]", "value = [[1, 2]]", "m.toml:7:9:", "1 rows for 2 nodes"),
        ("levels = [90, \"140 ns\"]", "value = [[1, 2], [3]]", "m.toml:7:18:", "1 columns for 2 nodes"),
        ("levels =", "shape = \"ring\"\nlevels =", "m.toml:6:1:", "hypercube"),
        ("outstanding = 10", "", "m.toml:8:1:", "[core] lacks `outstanding`"),
        ("name = \"twin\"", "name = \"a\\u001b[2J\"", "m.toml:1:8:", "control characters"),
        ("name = \"twin\"", "name = twin", "m.toml:1:8:", "not TOML"),
        ("name =", "format = 2\nname =", "m.toml:1:10:", "reads version 1"),
        ("name =", "cpu_nodes = [0, 1, 1, 1]\nname =", "m.toml:1:13:", "whose [[nodes]] says `cpus = 2`"),
        ("name =", "page_sizes = [8192, 4096]\nname =", "m.toml:1:14:", "from the smallest to the largest"),
        ("name =", "os = { cpus = [1], nodes = [0, 1] }\nname =", "m.toml:1:15:", "expected 4"),
    ] {
        let e = complaint(from, to);
        assert!(e.starts_with(place) && e.contains(says), "{to}: {e}\nis not {place} … {says}");
    }
}

#[test]
fn what_does_not_fit_together_names_the_machine() {
    let e = complaint("memory = \"1 GiB\"", "memory = 0");
    assert!(e.contains("file m.toml does not fit together: the machine has no memory"), "{e}");
    let cache = "[[caches]]\nlevel = 2\nsize = \"3 MiB\"\nways = 4\n[core]";
    let e = complaint("[core]", cache);
    assert!(e.contains("power of two of sets"), "{e}");
}

#[test]
fn hostile_files_are_refused_quickly() {
    let deep = format!("name = {}", "[".repeat(100_000));
    assert!(matches!(parse(&deep), Err(Error::File { .. })));
    let many = format!("name = \"x\"\n{}", "[[nodes]]\ncpus=0\nmemory=1\n".repeat(5000));
    assert!(parse(&many).unwrap_err().to_string().contains("at most 1024"));
    let long = TWIN.replace("twin", &"x".repeat(1 << 20));
    assert!(parse(&long).unwrap_err().to_string().len() < 300);
}

#[test]
fn a_file_that_is_not_text_or_too_large_is_refused() {
    let dir = std::env::temp_dir().join(format!("homenode-machine-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("m.toml");
    std::fs::write(&path, b"name = \"\xff\"").unwrap();
    let e = Machine::load(&path).unwrap_err().to_string();
    assert!(e.contains("m.toml:1:9: not UTF-8"), "{e}");
    std::fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    assert!(matches!(Machine::load(&path), Err(Error::TooLarge { .. })));
    std::fs::write(&path, TWIN).unwrap();
    assert_eq!(homenode_machine::resolve(path.to_str().unwrap()).unwrap().topology.name, "twin");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn presets_survive_writing() {
    for info in list() {
        let m = preset(info.name).unwrap();
        let again = Machine::from_toml(&m.to_toml(), m.origin.clone()).unwrap();
        assert_eq!(again, m);
    }
}

/// Sources as a file can hold them: any printable text.
fn source() -> impl Strategy<Value = Option<String>> {
    prop::option::of("[^\\p{Cc}]{0,12}")
}

prop_compose! {
    fn cache()(line in 5u32..9, ways in 1u32..33, sets in 0u32..20, scope in 0u32..5, hit: u32)
        -> (Bytes, Bytes, u32, CacheScope, Ns) {
        let scope = match scope { 0 => CacheScope::Cpu, 1 => CacheScope::Node, n => CacheScope::Group(n) };
        (Bytes(u64::from(ways) << (line + sets)), Bytes(1 << line), ways, scope, Ns(u64::from(hit)))
    }
}

prop_compose! {
    fn machine()(
        n in 1usize..6,
    )(
        nodes in prop::collection::vec((0u64..4, any::<u64>(), 0u64..5000), n),
        cpus in prop::collection::vec(0..n as u16, 1..20),
        flat in any::<bool>(),
        cells in prop::collection::vec(any::<u64>(), 2 * n * n),
        caches in prop::collection::vec(cache(), 0..4),
        pages in prop::collection::btree_set(12u32..40, 1..5),
        numbers in any::<[u64; 5]>(),
        flags in any::<[bool; 3]>(),
        sources in prop::collection::vec(source(), 83),
        name in "[^\\p{Cc}]{0,20}",
        about in "[^\\p{Cc}]{0,20}",
        fitted in prop::collection::btree_map("[a-z-]{1,9}", 0u8..101, 0..3),
        n in Just(n),
    ) -> Machine {
        let cell = |half: usize, r: usize, c: usize| match flat {
            true => cells[half * n * n + usize::from(r != c)],
            false => cells[half * n * n + r * n + c],
        };
        let topology = Topology {
            name,
            nodes: nodes.iter().enumerate().map(|(i, (m, b, p))| Node {
                // Node 0 has memory: a machine needs some.
                memory: Bytes::gib(*m + u64::from(i == 0)), bandwidth: MbPerS(*b), port: MbPerS(*p),
            }).collect(),
            latency: Matrix::from_fn(n, |r, c| Ns(cell(0, r, c))),
            link: Matrix::from_fn(n, |r, c| MbPerS(if flat && r == c { 0 } else { cell(1, r, c) })),
            caches: caches.into_iter().enumerate().map(|(i, (size, line, ways, scope, hit))| Cache {
                level: i as u8 + 1, size, line, ways, scope, writes: Writes::Back, hit,
            }).collect(),
            page_sizes: pages.into_iter().map(|p| Bytes(1 << p)).collect(),
            core: Core { access: Ps(numbers[0]), outstanding: (numbers[1] as u32).max(1) },
            migration: MigrationCost {
                fixed: Ns(numbers[2]), per_kib: Ns(numbers[3]), shootdown: Ns(numbers[4]), serialised: flags[0], stops: flags[0] && flags[1],
            },
            remote_cacheable: flags[1],
        counts_references: flags[2],
            cpus: cpus.iter().copied().map(NodeId).collect(),
        };
        let os = flags[2].then(|| OsNumbers { cpus: (0..cpus.len() as u32).collect(), nodes: (10..10 + n as u32).collect() });
        let fitted = fitted
            .into_iter()
            .map(|(program, coverage)| {
                let access = (coverage % 2 == 0).then_some(Ps(numbers[0]));
                homenode_machine::Fitted { program, coverage, access }
            })
            .collect();
        let bus = flags[0].then(|| homenode_machine::Bus { bandwidth: MbPerS(numbers[0].max(1)), cpus: (numbers[1] as u32 % 65_536).max(1) });
        let window = flags[1].then(|| (numbers[2] as u32).max(1));
        let mut m = Machine { topology, about, sources: BTreeMap::new(), fitted, bus, window, os, origin: MachineOrigin::File("m.toml".into()) };
        // Sources on a random subset of the paths that this machine has, nodes one by one.
        let mut paths: Vec<String> = m.values().into_iter().map(|v| v.path).filter(|p| !p.starts_with("nodes.")).collect();
        for i in 0..n {
            paths.extend(["count", "cpus", "memory", "bandwidth", "port"].map(|k| format!("nodes.{i}.{k}")));
        }
        m.sources = paths.into_iter().zip(sources).filter_map(|(p, s)| Some((p, s?))).collect();
        m
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(m in machine()) {
        let text = m.to_toml();
        let again = Machine::from_toml(&text, m.origin.clone());
        prop_assert!(again.is_ok(), "{}\n{text}", again.unwrap_err());
        prop_assert_eq!(again.unwrap(), m);
    }

    /// Whatever is done to a right file, the answer is a machine that checks or an error.
    #[test]
    fn no_mutation_of_a_file_panics(
        which in 0usize..10,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..30, "\\PC{0,3}|[0-9\\[\\]{}=\"., \n-]{0,6}"), 1..6),
    ) {
        let mut text: Vec<char> = match list().get(which) {
            Some(info) => preset(info.name).unwrap().to_toml().chars().collect(),
            None => TWIN.chars().collect(),
        };
        for (at, cut, insert) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + cut).min(text.len());
            text.splice(at..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        match parse(&text) {
            Ok(m) => prop_assert!(m.check().is_ok()),
            Err(e) => prop_assert!(!e.to_string().is_empty()),
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = parse(&text);
    }
}
