//! Which CPU each thread of a program runs on.
//!
//! The papers' experiments are defined by this: Löf's *UMA* is [`packed`] on one node, all others
//! are [`spread`].

use homenode_model::{CpuId, NodeId, Topology};

use crate::Error;

/// One CPU for each of `threads` threads, dealt evenly over the nodes that have CPUs, *neighbouring
/// threads on the same node*: 4 threads on 4 nodes are one a node, 12 are three a node with 0, 1, 2
/// on the first (Löf, Table 3). That is also how `OMP_PROC_BIND=close OMP_PLACES=cores` numbers
/// them, and what makes block partitions local.
///
/// With fewer threads than nodes thread *t* is alone on the *t*-th node with CPUs. A node with
/// fewer CPUs than its share passes the rest on to the following nodes.
///
/// # Errors
/// [`Error::NoThreads`]; [`Error::TooManyThreads`] when there are more threads than CPUs: two
/// threads on one CPU would make every time meaningless.
pub fn spread(topology: &Topology, threads: usize) -> Result<Vec<CpuId>, Error> {
    if threads == 0 {
        return Err(Error::NoThreads);
    }
    if threads > topology.cpus.len() {
        return Err(Error::TooManyThreads {
            threads,
            cpus: topology.cpus.len(),
            place: format!("the machine {}", topology.name),
        });
    }
    let cpus = cpus_by_node(topology);
    let nodes: Vec<&Vec<CpuId>> = cpus.iter().filter(|c| !c.is_empty()).collect();
    let n = nodes.len().min(threads);
    // Thread t belongs to node t·n/threads, so node k's share is the number of such t.
    let mut share: Vec<usize> = (0..nodes.len())
        .map(|k| if k < n { ((k + 1) * threads).div_ceil(n) - (k * threads).div_ceil(n) } else { 0 })
        .collect();
    even_out(&mut share, &nodes.iter().map(|c| c.len()).collect::<Vec<_>>());
    Ok(nodes.iter().zip(&share).flat_map(|(cpus, &take)| cpus[..take].iter().copied()).collect())
}

/// Moves what a node cannot hold to the next nodes with room, going round.
fn even_out(share: &mut [usize], room: &[usize]) {
    let mut left = 0;
    for _ in 0..2 {
        for (s, &r) in share.iter_mut().zip(room) {
            let want = *s + left;
            *s = want.min(r);
            left = want - *s;
        }
    }
}

/// One CPU for each of `threads` threads, all on `node`, lowest CPUs first.
///
/// # Errors
/// [`Error::NoThreads`], [`Error::NoSuchNode`], and [`Error::TooManyThreads`] when the node has
/// fewer CPUs than that (a memory-only node has none).
pub fn packed(topology: &Topology, node: NodeId, threads: usize) -> Result<Vec<CpuId>, Error> {
    if threads == 0 {
        return Err(Error::NoThreads);
    }
    if node.index() >= topology.nodes.len() {
        return Err(Error::NoSuchNode { node, nodes: topology.nodes.len(), machine: topology.name.clone() });
    }
    let cpus: Vec<CpuId> = topology.cpus_of(node).collect();
    if threads > cpus.len() {
        return Err(Error::TooManyThreads {
            threads,
            cpus: cpus.len(),
            place: format!("{node} of the machine {}", topology.name),
        });
    }
    Ok(cpus[..threads].to_vec())
}

/// CPUs of each node, in one pass: `Topology::cpus_of` for each node is quadratic on large
/// machines.
fn cpus_by_node(topology: &Topology) -> Vec<Vec<CpuId>> {
    let mut by_node = vec![Vec::new(); topology.nodes.len()];
    for (cpu, node) in topology.cpus.iter().enumerate() {
        by_node[node.index()].push(CpuId(cpu as u32));
    }
    by_node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;
    use proptest::prelude::*;

    fn nodes_of(t: &Topology, cpus: &[CpuId]) -> Vec<u16> {
        cpus.iter().map(|c| t.node_of(*c).0).collect()
    }

    #[test]
    fn lofs_four_threads_are_one_a_node_and_twelve_are_three() {
        let t = preset("sf15k").unwrap().topology;
        assert_eq!(nodes_of(&t, &spread(&t, 4).unwrap()), [0, 1, 2, 3]);
        assert_eq!(nodes_of(&t, &spread(&t, 12).unwrap()), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        assert_eq!(nodes_of(&t, &spread(&t, 5).unwrap()), [0, 0, 1, 2, 3]);
        assert_eq!(nodes_of(&t, &spread(&t, 2).unwrap()), [0, 1]);
    }

    #[test]
    fn a_memory_only_node_gets_no_thread() {
        let t = preset("cxl").unwrap().topology;
        assert_eq!(nodes_of(&t, &spread(&t, 2).unwrap()), [0, 1]);
        let e = packed(&t, NodeId(2), 1).unwrap_err().to_string();
        assert!(e.contains("node 2 of the machine cxl, which has 0 CPUs"), "{e}");
    }

    #[test]
    fn a_small_node_passes_threads_on() {
        let mut t = preset("sf15k").unwrap().topology;
        t.cpus = [0, 1, 1, 1, 1, 2, 2, 3].map(NodeId).to_vec();
        assert_eq!(nodes_of(&t, &spread(&t, 8).unwrap()), [0, 1, 1, 1, 1, 2, 2, 3]);
        t.cpus = [0, 0, 0, 1, 2, 3].map(NodeId).to_vec();
        assert_eq!(nodes_of(&t, &spread(&t, 6).unwrap()), [0, 0, 0, 1, 2, 3]);
    }

    #[test]
    fn one_cpu_is_never_shared() {
        let t = preset("sf15k").unwrap().topology;
        assert!(matches!(spread(&t, 17), Err(Error::TooManyThreads { threads: 17, cpus: 16, .. })));
        assert!(matches!(packed(&t, NodeId(0), 5), Err(Error::TooManyThreads { threads: 5, cpus: 4, .. })));
        assert!(matches!(packed(&t, NodeId(4), 1), Err(Error::NoSuchNode { .. })));
        assert!(matches!(spread(&t, 0), Err(Error::NoThreads)));
        assert_eq!(packed(&t, NodeId(2), 3).unwrap(), [8, 9, 10].map(CpuId));
    }

    proptest! {
        #[test]
        fn every_thread_gets_a_cpu_of_its_own_and_nodes_ascend(
            cpus in prop::collection::vec(0u16..5, 1..40),
            threads in 1usize..45,
        ) {
            let mut t = preset("sf15k").unwrap().topology;
            let extra = t.nodes[0].clone();
            t.nodes.push(extra);
            t.cpus = cpus.iter().copied().map(NodeId).collect();
            match spread(&t, threads) {
                Ok(got) => {
                    prop_assert_eq!(got.len(), threads);
                    let nodes = nodes_of(&t, &got);
                    prop_assert!(nodes.is_sorted());
                    let mut unique = got.clone();
                    unique.sort();
                    unique.dedup();
                    prop_assert_eq!(unique.len(), threads);
                }
                Err(_) => prop_assert!(threads > cpus.len()),
            }
        }
    }
}
