//! Settings that change what is measured.

use std::collections::BTreeSet;

use super::tree::Tree;
use super::{Host, State};

pub(super) fn read(tree: &Tree, cpus: &BTreeSet<u32>, cpuinfo: &str) -> State {
    let governors: BTreeSet<String> = cpus
        .iter()
        .filter_map(|c| tree.text(&format!("sys/devices/system/cpu/cpu{c}/cpufreq/scaling_governor")))
        .collect();
    let some = |text: Option<String>| text.filter(|t| !t.is_empty());
    State {
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

/// The tightest setting from this process's control group (version 2) up to the root. In a container its own group is the
/// root of what it sees.
fn cgroup(tree: &Tree, file: &str) -> Option<String> {
    let own = tree.text("proc/self/cgroup").unwrap_or_default();
    let mut path = own.lines().find_map(|l| l.strip_prefix("0::")).unwrap_or("/").to_owned();
    let mut tightest: Option<(u64, String)> = None;
    loop {
        let at = format!("sys/fs/cgroup/{}/{file}", path.trim_matches('/'));
        if let Some(text) = tree.text(&at)
            && let Some(number) = text.split_whitespace().next().and_then(|w| w.parse::<u64>().ok())
            && tightest.as_ref().is_none_or(|(n, _)| number < *n)
        {
            tightest = Some((number, text));
        }
        match path.trim_end_matches('/').rsplit_once('/') {
            Some((parent, _)) => path = parent.to_owned(),
            None => return tightest.map(|(_, text)| text),
        }
    }
}

pub(super) fn remarks(host: &Host) -> Vec<String> {
    let s = &host.state;
    let mut said = host.hidden.clone();
    if host.synthetic {
        said.insert(
            0,
            "this machine is described, not real: values are computed from its description".into(),
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
