//! The CPUs and nodes that a rank may use, and lists of numbers as people read them.

use std::collections::BTreeSet;
use std::fs;

use homenode_runtime::nodes::Nodes;
use serde::{Deserialize, Serialize};

/// Where a rank may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankBinding {
    /// Name of the machine.
    pub host: String,
    /// CPUs that the rank may run on, by the kernel's numbers.
    pub cpus: BTreeSet<u32>,
    /// Nodes with these CPUs.
    pub nodes: BTreeSet<u16>,
    /// CPUs of the whole machine.
    pub host_cpus: usize,
    /// Nodes of the whole machine that have memory.
    pub host_nodes: usize,
}

impl RankBinding {
    /// The place of this process.
    pub fn here() -> Self {
        let (own, all) = (Nodes::here(), Nodes::unbound());
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let nodes: Vec<u16> = (0..u16::try_from(own.machine().nodes.len()).unwrap_or(u16::MAX)).collect();
        let cpus_of = |n: &u16| own.cpus(homenode_model::NodeId(*n)).to_vec();
        Self {
            host: host.trim().to_owned(),
            cpus: nodes.iter().flat_map(cpus_of).collect(),
            nodes: nodes.iter().copied().filter(|n| !cpus_of(n).is_empty()).collect(),
            host_cpus: all.machine().nodes.iter().map(|n| n.cpus.len()).sum(),
            host_nodes: all.with_memory(),
        }
    }

    /// Whether the rank may run on every CPU of a machine with several.
    pub fn is_unbound(&self) -> bool {
        self.host_cpus > 1 && self.cpus.len() >= self.host_cpus
    }
}

/// Numbers as ranges: `0-3, 8`.
pub fn ranges<T: Copy + Into<u64>>(numbers: impl IntoIterator<Item = T>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let sorted: BTreeSet<u64> = numbers.into_iter().map(Into::into).collect();
    for number in sorted {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last): &(u64, u64)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Numbers behind a noun: `rank 3`, `ranks 0-3`.
pub fn named<T: Copy + Into<u64>>(noun: &str, numbers: impl IntoIterator<Item = T>) -> String {
    let text = ranges(numbers);
    if text.contains(['-', ',']) { format!("{noun}s {text}") } else { format!("{noun} {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_ranges() {
        assert_eq!(ranges([3_u32, 1, 2, 0, 8, 11, 10]), "0-3, 8, 10, 11");
        assert_eq!(ranges::<u32>([]), "");
        assert_eq!((named("rank", [4_u32]), named("CPU", [4_u32, 5])), ("rank 4".into(), "CPUs 4, 5".into()));
    }

    #[test]
    fn this_process_has_a_place() {
        let here = RankBinding::here();
        assert!(!here.cpus.is_empty() && !here.nodes.is_empty());
        assert!(here.cpus.len() <= here.host_cpus && here.host_nodes >= 1);
    }
}
