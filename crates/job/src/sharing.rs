//! Ranks that share the memory of a node, ranks that no node belongs to, and bindings that overlap.
//!
//! All of it follows from the CPUs that each rank may run on. Ranks of different machines share
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::part::RankSummary;
use crate::place::{named, ranges};

/// What follows from where ranks may run, a sentence each, machine by machine.
pub fn sentences(parts: &[RankSummary]) -> Vec<String> {
    let mut hosts: BTreeMap<&str, Vec<&RankSummary>> = BTreeMap::new();
    for part in parts {
        hosts.entry(&part.place.host).or_default().push(part);
    }
    let several = hosts.len() > 1;
    let mut all = Vec::new();
    for (host, ranks) in hosts {
        let of_host = [overlaps(&ranks), memory(&ranks)].concat();
        let told = |s: String| if several { format!("{host}: {s}") } else { s };
        all.extend(of_host.into_iter().map(told));
    }
    all
}

fn numbers(ranks: &[&RankSummary]) -> Vec<u32> {
    ranks.iter().map(|p| p.rank).collect()
}

/// Groups of ranks that share CPUs.
fn overlaps(ranks: &[&RankSummary]) -> Vec<String> {
    if ranks.len() > 1 && ranks.iter().all(|p| p.place.is_unbound()) {
        let cpus = ranks[0].place.host_cpus;
        let who = named("rank", numbers(ranks));
        return vec![format!(
            "{who} are not bound: each may run on all {cpus} CPUs{}; bind them (mpirun --bind-to numa, srun --cpu-bind=ldoms)",
            crowd(ranks, cpus)
        )];
    }
    let mut groups: Vec<Vec<&RankSummary>> = Vec::new();
    for rank in ranks {
        let touches =
            |group: &Vec<&RankSummary>| group.iter().any(|p| !p.place.cpus.is_disjoint(&rank.place.cpus));
        let (joined, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(touches);
        groups = apart;
        groups.push(joined.into_iter().flatten().chain([*rank]).collect());
    }
    groups.sort_by_key(|group| numbers(group).into_iter().min());
    groups.iter().filter(|group| group.len() > 1).map(|group| overlap(group)).collect()
}

/// What a group shares.
fn overlap(group: &[&RankSummary]) -> String {
    let mut times: BTreeMap<u32, usize> = BTreeMap::new();
    group.iter().flat_map(|p| &p.place.cpus).for_each(|cpu| *times.entry(*cpu).or_default() += 1);
    let shared = times.iter().filter(|(_, n)| **n > 1).map(|(cpu, _)| *cpu);
    format!(
        "the bindings of {} overlap: more than one of them may run on {}{}",
        named("rank", numbers(group)),
        named("CPU", shared),
        crowd(group, times.len())
    )
}

/// Whether there are more threads than CPUs, where every rank's threads are known. An MPI library
/// has threads of its own, which mostly sleep.
fn crowd(group: &[&RankSummary], cpus: usize) -> String {
    let threads = |p: &&RankSummary| p.measured.map(|m| m.threads).filter(|n| *n > 0);
    let all: Option<u64> = group.iter().map(threads).sum();
    match all.filter(|all| *all > cpus as u64) {
        Some(all) => {
            let cpus = if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") };
            format!(" ({all} threads on {cpus}, helpers of the MPI library included)")
        }
        None => String::new(),
    }
}

/// Who shares the memory of a node, and who belongs to none.
fn memory(ranks: &[&RankSummary]) -> Vec<String> {
    let mut by_nodes: BTreeMap<&BTreeSet<u16>, Vec<&RankSummary>> = BTreeMap::new();
    for part in ranks {
        by_nodes.entry(&part.place.nodes).or_default().push(part);
    }
    let sentence = |(nodes, group): (&BTreeSet<u16>, Vec<&RankSummary>)| {
        let who = named("rank", numbers(&group));
        match (nodes.len(), group.len()) {
            (1, 2..) => Some(format!("{who} share the memory of node {}", ranges(nodes.iter().copied()))),
            (2.., n) => Some(format!(
                "{who} may run on nodes {}: {} node is {}",
                ranges(nodes.iter().copied()),
                if n == 1 { "no" } else { "no single" },
                if n == 1 { "the rank's own" } else { "theirs" }
            )),
            _ => None,
        }
    };
    by_nodes.into_iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Measured;
    use crate::place::RankBinding;
    use crate::summary::example;

    /// Ranks on these CPUs of a machine with four CPUs a node.
    fn on(host: &str, cpus: &[&[u32]], host_cpus: usize) -> Vec<RankSummary> {
        let mut parts = example(cpus.len());
        for (part, cpus) in parts.iter_mut().zip(cpus) {
            part.place = RankBinding {
                host: host.into(),
                cpus: cpus.iter().copied().collect(),
                nodes: cpus.iter().map(|c| u16::try_from(c / 4).unwrap()).collect(),
                host_cpus,
                host_nodes: host_cpus.div_ceil(4),
            };
        }
        parts
    }

    #[test]
    fn ranks_on_nodes_of_their_own_share_nothing() {
        assert_eq!(sentences(&on("a", &[&[0, 1, 2, 3], &[4, 5, 6, 7]], 8)), Vec::<String>::new());
    }

    #[test]
    fn ranks_of_one_node_share_its_memory() {
        assert_eq!(
            sentences(&on("a", &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]], 8)),
            ["ranks 0, 1 share the memory of node 0", "ranks 2, 3 share the memory of node 1"]
        );
    }

    #[test]
    fn bindings_that_overlap_are_named_with_their_cpus_and_threads() {
        let mut parts = on("a", &[&[0, 1], &[1, 2], &[2, 3], &[4]], 8);
        assert_eq!(
            sentences(&parts),
            [
                "the bindings of ranks 0-2 overlap: more than one of them may run on CPUs 1, 2",
                "ranks 0-2 share the memory of node 0"
            ]
        );
        for part in &mut parts {
            part.measured = Some(Measured { threads: 2, ..Measured::default() });
        }
        assert!(
            sentences(&parts)[0]
                .ends_with("CPUs 1, 2 (6 threads on 4 CPUs, helpers of the MPI library included)")
        );
    }

    #[test]
    fn a_chain_that_closes_late_is_one_group() {
        let parts = on("a", &[&[0], &[2], &[0, 2]], 4);
        assert!(sentences(&parts)[0].starts_with("the bindings of ranks 0-2 overlap"));
    }

    #[test]
    fn unbound_ranks_are_told_so_once() {
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(
            sentences(&on("a", &[&all, &all], 8)),
            [
                "ranks 0, 1 are not bound: each may run on all 8 CPUs; bind them (mpirun --bind-to numa, srun --cpu-bind=ldoms)",
                "ranks 0, 1 may run on nodes 0, 1: no single node is theirs"
            ]
        );
        assert_eq!(
            sentences(&on("a", &[&all], 8)),
            ["rank 0 may run on nodes 0, 1: no node is the rank's own"]
        );
    }

    #[test]
    fn ranks_of_different_machines_share_nothing() {
        let mut parts = on("a", &[&[0, 1], &[0, 1]], 4);
        parts[1].place.host = "b".into();
        assert_eq!(sentences(&parts), Vec::<String>::new());
        let mut four = on("a", &[&[0], &[0], &[0], &[1]], 4);
        four.iter_mut().skip(2).for_each(|p| p.place.host = "b".into());
        assert_eq!(
            sentences(&four),
            [
                "a: the bindings of ranks 0, 1 overlap: more than one of them may run on CPU 0",
                "a: ranks 0, 1 share the memory of node 0",
                "b: ranks 2, 3 share the memory of node 0"
            ]
        );
    }
}
