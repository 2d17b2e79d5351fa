//! A host, from the files in which Linux describes it.

use std::collections::BTreeSet;

use super::facts::{Firmware, Host, HostError, HostNode};
use super::state;
use super::tree::{Tree, numbers};
use crate::axes::{CpuNumber, NodeNumber};

/// Where Linux lists its nodes.
const NODES: &str = "sys/devices/system/node";
/// And its CPUs.
const CPUS: &str = "sys/devices/system/cpu";
/// What it says of this process.
const STATUS: &str = "proc/self/status";

/// What an allocation on a node can have.
pub(super) fn free_now(tree: &Tree, node: NodeNumber) -> Option<u64> {
    let own = tree.text(&format!("{NODES}/node{}/meminfo", node.0));
    own.map(|t| available(&t)).or_else(|| Some(kib(&tree.text("proc/meminfo")?, "MemAvailable:")))
}

/// The first of each core's CPUs.
fn cores(tree: &Tree, cpus: &[CpuNumber]) -> Vec<CpuNumber> {
    let siblings = |cpu: CpuNumber| {
        let at = format!("{CPUS}/cpu{}/topology", cpu.0);
        tree.list(&format!("{at}/core_cpus_list"))
            .or_else(|| tree.list(&format!("{at}/thread_siblings_list")))
            .unwrap_or_default()
    };
    let first = |cpu: &CpuNumber| !siblings(*cpu).iter().any(|s| *s < cpu.0 && cpus.contains(&CpuNumber(*s)));
    cpus.iter().copied().filter(first).collect()
}

pub(super) fn host(tree: &Tree) -> Result<Host, HostError> {
    let shown = tree.root.display().to_string();
    let online = tree.list(&format!("{CPUS}/online")).ok_or_else(|| HostError::NotATree {
        path: tree.root.join(CPUS).join("online").display().to_string(),
        said: "it is not there or not readable; a Linux system has it".into(),
    })?;
    let status = tree.text(STATUS).unwrap_or_default();
    let allowed = |field: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
        line.map(|l| numbers(l.trim()))
    };
    let usable =
        |cpu: u32| online.contains(&cpu) && allowed("Cpus_allowed_list").is_none_or(|l| l.contains(&cpu));
    let mems = allowed("Mems_allowed_list");
    let mut nodes = Vec::new();
    let mut hidden = Vec::new();
    for n in tree.list(&format!("{NODES}/online")).unwrap_or_default() {
        let at = format!("{NODES}/node{n}");
        let Ok(number) = u16::try_from(n) else { continue };
        // `cpulist` has on-line CPUs alone; the links beside it are of all that are present.
        let mut all = tree.list(&format!("{at}/cpulist")).unwrap_or_default();
        all.extend(tree.names(&at).iter().filter_map(|name| name.strip_prefix("cpu")?.parse::<u32>().ok()));
        let (cpus, unusable): (Vec<u32>, Vec<u32>) = all.into_iter().partition(|c| usable(*c));
        let meminfo = tree.text(&format!("{at}/meminfo")).unwrap_or_default();
        let cpus: Vec<CpuNumber> = cpus.into_iter().map(CpuNumber).collect();
        nodes.push(HostNode {
            node: number,
            cores: cores(tree, &cpus),
            cpus,
            unusable_cpus: unusable.into_iter().map(CpuNumber).collect(),
            memory: kib(&meminfo, "MemTotal:"),
            free: available(&meminfo),
            allowed: mems.as_ref().is_none_or(|m| m.contains(&n)),
            distances: distances(&tree.text(&format!("{at}/distance")).unwrap_or_default()),
        });
    }
    if nodes.is_empty() {
        // A kernel without NUMA: all is node 0.
        let meminfo = tree.text("proc/meminfo").unwrap_or_default();
        let (cpus, unusable): (Vec<u32>, Vec<u32>) = online.iter().copied().partition(|c| usable(*c));
        let cpus: Vec<CpuNumber> = cpus.into_iter().map(CpuNumber).collect();
        nodes.push(HostNode {
            node: 0,
            cores: cores(tree, &cpus),
            cpus,
            unusable_cpus: unusable.into_iter().map(CpuNumber).collect(),
            memory: kib(&meminfo, "MemTotal:"),
            free: kib(&meminfo, "MemAvailable:"),
            allowed: true,
            distances: vec![10],
        });
        hidden.push("the kernel lists no nodes: all is taken as node 0".into());
    }
    if nodes.iter().all(|n| n.cpus.is_empty()) {
        return Err(HostError::NoCpu(shown));
    }
    hidden.extend(nodes.iter().flat_map(|n| said_of(n, &online)));
    let cpus: BTreeSet<u32> = nodes.iter().flat_map(|n| n.cpus.iter().map(|c| c.0)).collect();
    let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
    Ok(Host {
        cpu_model: cpu_model(&cpuinfo),
        kernel: tree.text("proc/sys/kernel/osrelease").unwrap_or_default(),
        last_level_cache: last_level(tree, &cpus),
        firmware: nodes.iter().flat_map(|n| firmware(tree, n.id())).collect(),
        state: state::read(tree, &cpus, &cpuinfo),
        nodes,
        synthetic: false,
        hidden,
    })
}

/// What of a node cannot be used.
fn said_of(node: &HostNode, online: &BTreeSet<u32>) -> Vec<String> {
    let id = node.id();
    let mut said = Vec::new();
    let (off, forbidden): (Vec<CpuNumber>, Vec<CpuNumber>) =
        node.unusable_cpus.iter().partition(|c| !online.contains(&c.0));
    let list = |cpus: &[CpuNumber]| cpus.iter().map(|c| c.0.to_string()).collect::<Vec<_>>().join(", ");
    if !off.is_empty() {
        said.push(format!("off-line CPUs of {id}: {}", list(&off)));
    }
    if !forbidden.is_empty() {
        said.push(format!("CPUs of {id} outside of this process's cpuset or affinity: {}", list(&forbidden)));
    }
    if node.memory == 0 {
        said.push(format!("{id} has no memory: it is no target"));
    } else if !node.allowed {
        said.push(format!("the memory of {id} is outside of this process's cpuset (Mems_allowed)"));
    }
    if node.cpus.is_empty() && node.unusable_cpus.is_empty() {
        said.push(format!("{id} has no CPUs: nothing is measured from it"));
    }
    said
}

/// A line of a node's or the system's `meminfo`, in bytes.
fn kib(meminfo: &str, field: &str) -> u64 {
    let line = meminfo.lines().find(|l| l.split_whitespace().any(|w| w == field));
    let number = line.and_then(|l| l.split_whitespace().rev().nth(1)?.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

/// What an allocation on a node can have without anybody losing something: free pages, and clean
/// pages of files not used lately.
fn available(meminfo: &str) -> u64 {
    let dirty = kib(meminfo, "Dirty:");
    let clean = kib(meminfo, "Inactive(file):").saturating_sub(dirty);
    kib(meminfo, "MemFree:").saturating_add(clean)
}

fn distances(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|d| d.parse().ok()).collect()
}

fn cpu_model(cpuinfo: &str) -> String {
    let fields = ["model name", "Processor", "CPU implementer"];
    let value = |f: &str| cpuinfo.lines().find_map(|l| l.strip_prefix(f)?.trim_start().strip_prefix(':'));
    fields.iter().find_map(|f| value(f)).map_or_else(String::new, |v| v.trim().to_owned())
}

/// The outermost data caches of the CPUs in use, each once.
fn last_level(tree: &Tree, cpus: &BTreeSet<u32>) -> u64 {
    let mut seen = BTreeSet::new();
    let mut total = 0_u64;
    for cpu in cpus {
        let at = format!("{CPUS}/cpu{cpu}/cache");
        let mut best: Option<(u32, String, u64)> = None;
        for index in tree.names(&at).iter().filter(|n| n.starts_with("index")) {
            let text = |file: &str| tree.text(&format!("{at}/{index}/{file}"));
            let data = text("type").is_none_or(|t| t != "Instruction");
            let level = text("level").and_then(|l| l.parse::<u32>().ok());
            let (Some(level), Some(size), true) = (level, text("size"), data) else { continue };
            if best.as_ref().is_none_or(|(l, ..)| level > *l) {
                let shared = text("shared_cpu_list").unwrap_or_else(|| cpu.to_string());
                best = Some((level, shared, cache_size(&size)));
            }
        }
        if let Some((_, shared, size)) = best
            && seen.insert(shared)
        {
            total = total.saturating_add(size);
        }
    }
    total
}

/// `36608K`
fn cache_size(text: &str) -> u64 {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().unwrap_or(0);
    number.saturating_mul(match &text[digits..] {
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => 1,
    })
}

/// Linux shows what the nearest initiators see (`access0`;
/// Documentation/admin-guide/mm/numaperf.rst).
fn firmware(tree: &Tree, memory: NodeNumber) -> Vec<Firmware> {
    let at = format!("{NODES}/node{}/access0/initiators", memory.0);
    let number = |file: &str| tree.text(&format!("{at}/{file}")).and_then(|t| t.parse::<u64>().ok());
    let (read_ns, read_mb_per_s) = (number("read_latency"), number("read_bandwidth"));
    if read_ns.is_none() && read_mb_per_s.is_none() {
        return Vec::new();
    }
    let initiators = tree.names(&at);
    let nodes = initiators.iter().filter_map(|n| n.strip_prefix("node")?.parse::<u16>().ok());
    nodes.map(|n| Firmware { cpu: NodeNumber(n), memory, read_ns, read_mb_per_s }).collect()
}
