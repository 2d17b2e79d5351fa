//! Settings that change what is measured.

use std::collections::BTreeSet;

use super::facts::{Host, HostState};
use super::tree::Tree;

pub(super) fn read(tree: &Tree, cpus: &BTreeSet<u32>, cpuinfo: &str) -> HostState {
    let governors: BTreeSet<String> = cpus
        .iter()
        .filter_map(|c| tree.text(&format!("sys/devices/system/cpu/cpu{c}/cpufreq/scaling_governor")))
        .collect();
    let some = |text: Option<String>| text.filter(|t| !t.is_empty());
    HostState {
        governor: some(Some(governors.into_iter().collect::<Vec<_>>().join(", "))),
        smt: some(tree.text("sys/devices/system/cpu/smt/control")),
        thp: tree.text("sys/kernel/mm/transparent_hugepage/enabled").and_then(|t| chosen(&t)),
        numa_balancing: some(tree.text("proc/sys/kernel/numa_balancing")),
        isolated: some(tree.text("sys/devices/system/cpu/isolated")),
        cgroup_memory: cgroup(tree, "memory.max").and_then(|t| t.parse().ok()),
        cgroup_cpu: cgroup(tree, "cpu.max").filter(|t| !t.starts_with("max")),
        load: tree.text("proc/loadavg").and_then(|t| t.split_whitespace().next().map(str::to_owned)),
        virtual_machine: cpuinfo
            .lines()
            .any(|l| l.starts_with("flags") && l.split_whitespace().any(|w| w == "hypervisor")),
    }
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

/// What the control groups leave, in bytes; `None`: they do not limit memory.
pub(super) fn cgroup_room(tree: &Tree) -> Option<u64> {
    let number = |at: &str, file: &str| tree.text(&format!("{at}/{file}"))?.parse::<u64>().ok();
    let room = |at: &String| Some(number(at, "memory.max")?.saturating_sub(number(at, "memory.current")?));
    groups(tree).iter().filter_map(room).min()
}

/// The folders of this process's control group (version 2) and those above it. In a container its
/// own group is the root of what it sees.
fn groups(tree: &Tree) -> Vec<String> {
    let own = tree.text("proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|l| l.strip_prefix("0::")).unwrap_or("/");
    let mut at = String::from("sys/fs/cgroup");
    let mut all = vec![at.clone()];
    for part in path.split('/').filter(|p| !p.is_empty() && *p != "..") {
        at = format!("{at}/{part}");
        all.push(at.clone());
    }
    all
}

/// The tightest setting of a kind, by its first number.
fn cgroup(tree: &Tree, file: &str) -> Option<String> {
    let texts = groups(tree).into_iter().filter_map(|at| tree.text(&format!("{at}/{file}")));
    let numbered = texts.filter_map(|t| Some((t.split_whitespace().next()?.parse::<u64>().ok()?, t)));
    numbered.min().map(|(_, text)| text)
}

pub(super) fn remarks(host: &Host) -> Vec<String> {
    let s = &host.state;
    let mut said = host.hidden.clone();
    if host.synthetic {
        said.insert(
            0,
            "this machine is described or recorded, and not here: values are computed, not measured".into(),
        );
        return said;
    }
    if let Some(governor) = s.governor.as_deref().filter(|g| *g != "performance") {
        said.push(format!(
            "frequency governor {governor}: values vary with the clock; 'cpupower frequency-set -g performance' holds it"
        ));
    }
    if s.smt.as_deref() == Some("on") {
        said.push("SMT is on: what runs on a sibling shows; one thread a core is measured".into());
    }
    if let Some(balancing) = s.numa_balancing.as_deref().filter(|b| *b != "0") {
        said.push(format!(
            "NUMA balancing is on ({balancing}): memory with an explicit policy is left alone by it, and pages are checked"
        ));
    }
    if let Some(load) = s.load.as_deref().and_then(|l| l.parse::<f64>().ok()).filter(|l| *l >= 0.5) {
        said.push(format!("the load average was {load} before: other work shows in the values"));
    }
    if let Some(quota) = &s.cgroup_cpu {
        said.push(format!(
            "the control group limits CPU time (cpu.max {quota}): threads may be stopped now and then"
        ));
    }
    if s.virtual_machine {
        said.push("a hypervisor is below: other guests show as noise, and nodes are what it says".into());
    }
    said
}
