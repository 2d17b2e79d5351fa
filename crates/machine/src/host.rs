//! Machines out of hwloc: this one, or one that hwloc recorded somewhere else.
//!
//! hwloc knows what there is (nodes, CPUs, caches, sizes, distances, and what firmware says of
//! memory), reads it from every kind of system, and says the same of a recorded topology, so tests
//! run on machines that nobody here has. It does not know how long most things take: what no
//! firmware states is marked *assumed* in [`Machine::sources`], and a measurement replaces it.
//!
//! The crate `hwlocality` binds it; nothing of it shows outside this module. XML is parsed by
//! hwloc, in C: read recorded topologies of people you trust. What travels inside recordings of
//! strangers is a machine file ([`Machine::from_toml`]).

use std::collections::BTreeMap;
use std::path::Path;

use homenode_model::{
    Bytes, Cache, CacheScope, Core, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology, Writes,
};
use hwlocality::memory::attribute::{Initiator, MemoryAttribute};
use hwlocality::object::TopologyObject;
use hwlocality::object::attributes::{CacheAssociativity, ObjectAttributes};
use hwlocality::object::distance::DistancesKind;
use hwlocality::object::types::ObjectType;
use hwlocality::topology::builder::{BuildFlags, TopologyBuilder};

use crate::{ASSUMED, Error, MAX_CPUS, MAX_FILE, MAX_NODES, Machine, MachineOrigin, OsNumbers, fit_cache};

/// Load-to-use latency of local memory where nobody measured: today's servers lie between 80 and
/// 120 ns.
const LOCAL: u64 = 90;
/// What the SLIT calls a local access.
const SLIT_LOCAL: u64 = 10;
/// What Linux puts in for two different nodes where firmware has no SLIT (`REMOTE_DISTANCE`).
const SLIT_REMOTE: u64 = 20;
/// Where Linux lists its huge page sizes, a folder each.
const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";
/// Size of a transparent huge page.
const THP: &str = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";

/// The machine that this process runs on, as far as the process may use it: CPUs and nodes outside
/// its cpuset are left out.
///
/// # Errors
/// [`Error::Hwloc`] when hwloc cannot tell, [`Error::Topology`] when what it tells is no machine.
pub fn this() -> Result<Machine, Error> {
    let tried = "asking hwloc about this machine";
    let topology = build(tried, Ok::<_, std::convert::Infallible>)?;
    let mut machine = read(&topology, "this machine", MachineOrigin::Host)?;
    let found = page_sizes(Path::new(HUGE_PAGES), Path::new(THP));
    let sizes = &mut machine.topology.page_sizes;
    sizes.extend(found);
    sizes.sort();
    sizes.dedup();
    machine.sources.insert("page_sizes".into(), format!("hwloc, {HUGE_PAGES}, {THP}"));
    machine.check()?;
    Ok(machine)
}

/// A topology that `lstopo FILE.xml` wrote on some machine.
///
/// # Errors
/// [`Error::Read`], [`Error::TooLarge`], and those of [`this`].
pub fn from_xml_file(path: &Path) -> Result<Machine, Error> {
    // Read here and not by hwloc, which says no more than "invalid" of a file that is not there.
    let meta = std::fs::metadata(path).map_err(|source| Error::Read { path: path.into(), source })?;
    if meta.len() > MAX_FILE {
        return Err(Error::TooLarge { path: path.into(), limit: MAX_FILE });
    }
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
    let shown = path.display().to_string();
    let topology = build(&format!("reading {shown} as an hwloc topology"), |b| b.from_xml(&text))?;
    let name = path.file_stem().map_or_else(|| shown.clone(), |s| s.to_string_lossy().into_owned());
    read(&topology, &name, MachineOrigin::Hwloc(shown))
}

/// A made-up topology in hwloc's synthetic notation, such as `NUMANode:4 Core:2 PU:1`.
///
/// # Errors
/// Those of [`this`].
pub fn from_synthetic(description: &str) -> Result<Machine, Error> {
    let tried = format!("reading {:?} as hwloc's synthetic notation", crate::quantity::shorten(description));
    let topology = build(&tried, |b| b.from_synthetic(description))?;
    read(&topology, "synthetic", MachineOrigin::Hwloc(crate::quantity::shorten(description)))
}

/// hwloc's XML: of this machine, of a recorded topology (a file whose name ends in `.xml`), or of a
/// description in hwloc's notation.
///
/// # Errors
/// [`Error::Hwloc`] when hwloc does not understand it or cannot write it; presets and machine files
/// have no hwloc topology.
pub fn xml(from: Option<&str>) -> Result<String, Error> {
    let tried = "having hwloc write XML";
    let topology = match from {
        None => build(tried, Ok::<_, std::convert::Infallible>)?,
        Some(path) if path.ends_with(".xml") => {
            let text =
                std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
            build(tried, |b| b.from_xml(&text))?
        }
        Some(text) => build(tried, |b| b.from_synthetic(text))?,
    };
    let written = topology.export_xml(hwlocality::topology::export::xml::XMLExportFlags::empty());
    let xml = written.map_err(|e| Error::Hwloc { tried: tried.into(), said: e.to_string() })?;
    Ok(xml.as_str().to_owned())
}

fn build<E: std::fmt::Display>(
    tried: &str,
    with: impl FnOnce(TopologyBuilder) -> Result<TopologyBuilder, E>,
) -> Result<hwlocality::Topology, Error> {
    let error = |said: String| Error::Hwloc { tried: tried.into(), said };
    // Disallowed objects are kept: a CPU whose node's memory is outside the cpuset still needs its
    // node. `read` leaves out the disallowed CPUs and memory itself.
    let builder = hwlocality::Topology::builder()
        .with_flags(BuildFlags::INCLUDE_DISALLOWED)
        .map_err(|e| error(e.to_string()))?;
    with(builder).map_err(|e| error(e.to_string()))?.build().map_err(|e| error(e.to_string()))
}

/// A NUMA node of hwloc that has something to offer.
struct Found<'h> {
    object: &'h TopologyObject,
    os: u32,
    memory: u64,
    /// The kernel's numbers of its CPUs, in hwloc's order, which keeps neighbours in caches
    /// together.
    cpus: Vec<u32>,
}

fn read(hw: &hwlocality::Topology, name: &str, origin: MachineOrigin) -> Result<Machine, Error> {
    let mut sources = BTreeMap::new();
    let nodes = nodes(hw);
    let bound = |what: &str, n: usize, most: usize| Error::Bound {
        origin: origin.to_string(),
        problem: format!("{n} {what}, at most {most}"),
    };
    let cpus: usize = nodes.iter().map(|n| n.cpus.len()).sum();
    if nodes.len() > MAX_NODES {
        return Err(bound("nodes", nodes.len(), MAX_NODES));
    }
    if cpus > MAX_CPUS {
        return Err(bound("CPUs", cpus, MAX_CPUS));
    }
    let mut described = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let mut say = |key: &str, text: String| sources.insert(format!("nodes.{i}.{key}"), text);
        for key in ["count", "cpus", "memory"] {
            say(key, "hwloc".into());
        }
        let unknown = format!("{ASSUMED}: not known to hwloc, so not limited; see `measure`");
        let bandwidth = bandwidth(hw, &nodes, node);
        let peak = "firmware (HMAT) through hwloc, a peak";
        say("bandwidth", if bandwidth.is_some() { peak.into() } else { unknown.clone() });
        say("port", unknown);
        described.push(Node {
            memory: Bytes(node.memory),
            bandwidth: bandwidth.unwrap_or(MbPerS(0)),
            port: MbPerS(0),
        });
    }
    let topology = Topology {
        name: name.into(),
        nodes: described,
        cpus: nodes
            .iter()
            .enumerate()
            .flat_map(|(i, n)| n.cpus.iter().map(move |_| NodeId(i as u16)))
            .collect(),
        latency: latency(hw, &nodes, &mut sources),
        link: Matrix::from_fn(nodes.len(), |_, _| MbPerS(0)),
        caches: caches(hw, &nodes, &mut sources),
        page_sizes: hwloc_page_sizes(hw, &mut sources),
        core: Core { access: Ps(500), outstanding: 12 },
        // From reported rates: FACTS, Migration. 93 ns a KiB is 11 GB/s; 800 ns more a page make
        // 3.4 GB/s with 4 KiB pages.
        migration: MigrationCost {
            fixed: Ns(800),
            per_kib: Ns(93),
            shootdown: Ns(100),
            serialised: false,
            stops: false,
        },
        remote_cacheable: true,
        counts_references: false,
    };
    assume(&mut sources);
    let os = OsNumbers {
        cpus: nodes.iter().flat_map(|n| n.cpus.iter().copied()).collect(),
        nodes: nodes.iter().map(|n| n.os).collect(),
    };
    let machine = Machine {
        topology,
        about: String::new(),
        sources,
        fitted: Vec::new(),
        bus: None,
        window: None,
        os: Some(os),
        origin,
    };
    machine.check()?;
    Ok(machine)
}

/// Says of what hwloc does not tell why it was assumed.
fn assume(sources: &mut BTreeMap<String, String>) {
    for (path, why) in [
        ("link", "not known to hwloc, so not limited; see `measure`"),
        ("remote_cacheable", "cache-coherent, as every machine that boots one Linux"),
        ("core.access", "one to two cycles at 3 GHz with overlap"),
        ("core.outstanding", "line-fill buffers of a core of today"),
        ("migration.fixed", "reported move_pages rates on a 2-socket Zen 3"),
        ("migration.per_kib", "reported move_pages rates on a 2-socket Zen 3"),
        ("migration.shootdown", "an interrupt of microseconds, shared by a batch of pages"),
        ("migration.serialised", "disjoint ranges move in parallel"),
    ] {
        sources.insert(path.into(), format!("{ASSUMED}: {why}"));
    }
}

/// Nodes with memory or CPUs that may be used, by the kernel's number, each CPU on one of them.
fn nodes(hw: &hwlocality::Topology) -> Vec<Found<'_>> {
    let (allowed_cpus, allowed_nodes) = (hw.allowed_cpuset(), hw.allowed_nodeset());
    let number = |os: Option<usize>| os.and_then(|n| u32::try_from(n).ok());
    let mut found: Vec<(Found<'_>, Option<hwlocality::cpu::cpuset::CpuSet>, usize)> = hw
        .objects_with_type(ObjectType::NUMANode)
        .filter_map(|node| {
            let os = number(node.os_index())?;
            let memory = match node.attributes() {
                Some(ObjectAttributes::NUMANode(a)) if allowed_nodes.is_set(os as usize) => {
                    a.local_memory().map_or(0, |m| m.get())
                }
                _ => 0,
            };
            let cpuset = node.cpuset().map(|c| c.clone_target());
            let weight = cpuset.as_ref().and_then(|c| c.weight()).unwrap_or(usize::MAX);
            Some((Found { object: node, os, memory, cpus: Vec::new() }, cpuset, weight))
        })
        .collect();
    found.sort_by_key(|(f, ..)| f.os);
    for pu in hw.objects_with_type(ObjectType::PU) {
        let Some(os) = number(pu.os_index()).filter(|os| allowed_cpus.is_set(*os as usize)) else {
            continue;
        };
        // hwloc says which CPUs are *near* a memory: DRAM, HBM and CXL nodes may all name this CPU.
        // It belongs to the one that names the fewest CPUs, and of equals to the first, because
        // kernels number the nodes that own CPUs first.
        let near = found
            .iter_mut()
            .filter(|(_, set, _)| set.as_ref().is_some_and(|s| s.is_set(os as usize)))
            .min_by_key(|(f, _, weight)| (*weight, f.os));
        if let Some((node, ..)) = near {
            node.cpus.push(os);
        } else if let Some((first, ..)) = found.first_mut() {
            // No node near: its own has no memory and is not listed. It must be somewhere.
            first.cpus.push(os);
        }
    }
    found.into_iter().map(|(f, ..)| f).filter(|f| f.memory > 0 || !f.cpus.is_empty()).collect()
}

/// The firmware's latencies (HMAT) where hwloc has them, elsewhere the kernel's relative distances
/// times the local latency.
fn latency(
    hw: &hwlocality::Topology,
    nodes: &[Found<'_>],
    sources: &mut BTreeMap<String, String>,
) -> Matrix<Ns> {
    let n = nodes.len();
    let fallback = |a: usize, b: usize| if a == b { SLIT_LOCAL } else { SLIT_REMOTE };
    let slit = slit(hw, nodes);
    let known = |a: usize, b: usize| {
        let attributes = [MemoryAttribute::latency(hw), MemoryAttribute::read_latency(hw)];
        attributes.iter().find_map(|l| attribute(l, &nodes[a], &nodes[b]))
    };
    let local: Vec<Option<u64>> = (0..n).map(|a| known(a, a)).collect();
    let mut from_firmware = 0;
    let matrix = Matrix::from_fn(n, |a, b| {
        let given = if a == b { local[a] } else { known(a, b) };
        from_firmware += usize::from(given.is_some());
        let d = slit.as_ref().map_or_else(|| fallback(a, b), |s| s[a * n + b]);
        let scaled = local[a].unwrap_or(LOCAL).saturating_mul(d) / SLIT_LOCAL;
        Ns(given.unwrap_or(scaled))
    });
    let scale = if local.iter().any(Option::is_some) {
        "the firmware's local latency".into()
    } else {
        format!("{LOCAL} ns {ASSUMED}")
    };
    let source = match (&slit, n) {
        _ if from_firmware == n * n => "firmware (HMAT) through hwloc".into(),
        (_, 1) => format!("{ASSUMED}: {LOCAL} ns; see `measure`"),
        (Some(_), _) => format!("distances from hwloc (SLIT), 10 = {scale}"),
        (None, _) => format!("{ASSUMED}: no distances known, remote twice local; local = {scale}"),
    };
    let source = match from_firmware {
        0 => format!("{}; see `measure`", source.trim_end_matches("; see `measure`")),
        k if k == n * n => source,
        k => format!("{source}; {k} of {} cells from firmware (HMAT)", n * n),
    };
    sources.insert("latency".into(), source);
    matrix
}

/// What firmware says of memory on `to` as CPUs on `from` see it. Linux passes on only the pairs
/// where `from` is nearest.
fn attribute(what: &MemoryAttribute<'_>, from: &Found<'_>, to: &Found<'_>) -> Option<u64> {
    let mut cpu = hwlocality::cpu::cpuset::CpuSet::new();
    cpu.set(*from.cpus.first()? as usize);
    let value = what.value(Some(Initiator::from(&cpu)), to.object).ok()??;
    // Zero is firmware that does not know.
    (value > 0).then_some(value)
}

/// The best bandwidth that firmware says any node's CPUs get out of `node`, and where it is from.
fn bandwidth(hw: &hwlocality::Topology, nodes: &[Found<'_>], node: &Found<'_>) -> Option<MbPerS> {
    let attributes = [MemoryAttribute::bandwidth(hw), MemoryAttribute::read_bandwidth(hw)];
    let mib =
        attributes.iter().find_map(|b| nodes.iter().filter_map(|from| attribute(b, from, node)).max())?;
    // hwloc counts MiB/s.
    Some(MbPerS((u128::from(mib) * (1 << 20) / 1_000_000).try_into().unwrap_or(u64::MAX)))
}

/// Distances between `nodes`, row-major, when hwloc has them for all.
fn slit(hw: &hwlocality::Topology, nodes: &[Found<'_>]) -> Option<Vec<u64>> {
    let all = hw.distances(Some(DistancesKind::MEANS_LATENCY)).ok()?;
    all.iter().find_map(|distances| {
        let objects: Vec<_> = distances.objects().collect();
        if objects.iter().any(|o| o.is_none_or(|o| o.object_type() != ObjectType::NUMANode)) {
            return None;
        }
        let place = |os: u32| objects.iter().position(|o| o.and_then(|o| o.os_index()) == Some(os as usize));
        let places: Vec<usize> = nodes.iter().map(|n| place(n.os)).collect::<Option<_>>()?;
        let values = distances.distances();
        let cell = |a: &usize, b: &usize| values.get(a * objects.len() + b).copied();
        let cells: Option<Vec<u64>> =
            places.iter().flat_map(|a| places.iter().map(move |b| cell(a, b))).collect();
        // A local distance of 0 or a remote one below local is firmware's nonsense.
        cells.filter(|c| c.iter().all(|d| (SLIT_LOCAL..=254).contains(d)))
    })
}

/// A cache as hwloc describes it.
struct FoundCache {
    /// The node of each CPU that uses it, ascending.
    users: Vec<usize>,
    size: u64,
    line: Option<u64>,
    ways: Option<u32>,
}

/// Caches of level 2 and up, as the simulator wants them: one description a level, sets a power of
/// two.
fn caches(
    hw: &hwlocality::Topology,
    nodes: &[Found<'_>],
    sources: &mut BTreeMap<String, String>,
) -> Vec<Cache> {
    let node_of: BTreeMap<usize, usize> =
        nodes.iter().enumerate().flat_map(|(i, n)| n.cpus.iter().map(move |c| (*c as usize, i))).collect();
    let kinds = [
        (2, ObjectType::L2Cache, Ns(4)),
        (3, ObjectType::L3Cache, Ns(20)),
        (4, ObjectType::L4Cache, Ns(20)),
        (5, ObjectType::L5Cache, Ns(20)),
    ];
    let mut out = Vec::new();
    for (level, kind, hit) in kinds {
        let all = found_caches(hw, kind, &node_of);
        let Some(cache) = most_common(&all) else {
            continue;
        };
        let spanned = 1 + cache.users.windows(2).filter(|w| w[0] != w[1]).count() as u64;
        let scope = match cache.users.len() {
            1 => CacheScope::Cpu,
            n if spanned > 1 || n == nodes[cache.users[0]].cpus.len() => CacheScope::Node,
            n => CacheScope::Group(n as u32),
        };
        let (line, share, ways) =
            (cache.line.unwrap_or(64), Bytes(cache.size / spanned), cache.ways.unwrap_or(16));
        let Some((size, fitted)) = fit_cache(share, Bytes(line), ways) else {
            continue;
        };

        let path = format!("caches.{}", out.len());
        let mut say = |key: &str, text: String| sources.insert(format!("{path}.{key}"), text);
        let known = |known: bool| {
            if known { "hwloc".into() } else { format!("{ASSUMED}: hwloc does not say") }
        };
        let mut size_source = known(true);
        if spanned > 1 {
            size_source += &format!(", one of {spanned} equal shares: the cache spans that many nodes");
        }
        if size != share {
            size_source += &format!(", {share} rounded so that sets are a power of two");
        }
        let mut ways_source = known(cache.ways.is_some());
        if fitted != ways {
            ways_source += &format!(", {ways} changed so that sets are a power of two");
        }
        let mut scope_source = known(true);
        if all.iter().any(|c| c.users.len() != cache.users.len() || c.size != cache.size) {
            scope_source += ", the most common: caches of this level differ";
        }
        say("size", size_source);
        say("line", known(cache.line.is_some()));
        say("ways", ways_source);
        say("shared_by", scope_source);
        say("hit", format!("{ASSUMED}: typical of level {level}"));
        out.push(Cache { level, size, line: Bytes(line), ways: fitted, scope, writes: Writes::Back, hit });
    }
    out
}

/// The caches of one kind that CPUs in `node_of` use.
fn found_caches(
    hw: &hwlocality::Topology,
    kind: ObjectType,
    node_of: &BTreeMap<usize, usize>,
) -> Vec<FoundCache> {
    hw.objects_with_type(kind)
        .filter_map(|object| {
            let Some(ObjectAttributes::Cache(a)) = object.attributes() else {
                return None;
            };
            let set = object.cpuset()?;
            // A set may be infinite on paper.
            let cpus = set.iter_set().take(MAX_CPUS).map(usize::from);
            let mut users: Vec<usize> = cpus.filter_map(|cpu| node_of.get(&cpu).copied()).collect();
            users.sort_unstable();
            let ways = match a.associativity() {
                CacheAssociativity::Ways(w) => u32::try_from(w.get()).ok(),
                CacheAssociativity::Full | CacheAssociativity::Unknown => None,
            };
            let line = a.line_size().map(|l| l.get() as u64);
            let size = a.size()?.get();
            (!users.is_empty()).then_some(FoundCache { users, size, line, ways })
        })
        .collect()
}

/// The cache that occurs most often by number of users and size (hybrid CPUs have several kinds;
/// off-line CPUs leave some caches with fewer users); of equals the first.
fn most_common(all: &[FoundCache]) -> Option<&FoundCache> {
    let mut counts: BTreeMap<(usize, u64), (usize, usize)> = BTreeMap::new();
    for (i, c) in all.iter().enumerate() {
        counts.entry((c.users.len(), c.size)).or_insert((0, i)).0 += 1;
    }
    let (_, first) = counts.values().max_by_key(|(count, first)| (*count, std::cmp::Reverse(*first)))?;
    all.get(*first)
}

fn hwloc_page_sizes(hw: &hwlocality::Topology, sources: &mut BTreeMap<String, String>) -> Vec<Bytes> {
    let mut sizes: Vec<Bytes> = hw
        .objects_with_type(ObjectType::NUMANode)
        .filter_map(|n| match n.attributes() {
            Some(ObjectAttributes::NUMANode(a)) => Some(a.page_types().iter().map(|p| Bytes(p.size().get()))),
            _ => None,
        })
        .flatten()
        .filter(|s| s.0.is_power_of_two() && s.0 >= 4096)
        .collect();
    sizes.sort();
    sizes.dedup();
    if sizes.is_empty() {
        sources.insert("page_sizes".into(), format!("{ASSUMED}: hwloc does not say"));
        return vec![Bytes::kib(4)];
    }
    sources.insert("page_sizes".into(), "hwloc".into());
    sizes
}

/// Huge page sizes: names such as `hugepages-2048kB` in `huge_pages`, and the number in `thp`.
/// Empty where there are none.
fn page_sizes(huge_pages: &Path, thp: &Path) -> Vec<Bytes> {
    let names = std::fs::read_dir(huge_pages).into_iter().flatten().flatten().map(|e| e.file_name());
    let mut sizes: Vec<Bytes> = names
        .filter_map(|name| {
            let kib: u64 = name.to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            kib.checked_mul(1024).map(Bytes)
        })
        .collect();
    if let Ok(text) = std::fs::read_to_string(thp) {
        sizes.extend(text.trim().parse().ok().map(Bytes));
    }
    sizes.retain(|s| s.0.is_power_of_two() && s.0 >= 4096);
    sizes.sort();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes_come_from_folder_names_and_nonsense_is_skipped() {
        let root = std::env::temp_dir().join(format!("homenode-pages-{}", std::process::id()));
        for name in ["hugepages-2048kB", "hugepages-1048576kB", "hugepages-3kB", "hugepages-xkB", "other"] {
            std::fs::create_dir_all(root.join("huge").join(name)).unwrap();
        }
        std::fs::write(root.join("thp"), "2097152\n").unwrap();
        let sizes = page_sizes(&root.join("huge"), &root.join("thp"));
        assert_eq!(sizes, [Bytes::mib(2), Bytes::gib(1)]);
        assert!(page_sizes(&root.join("absent"), &root.join("absent")).is_empty());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
