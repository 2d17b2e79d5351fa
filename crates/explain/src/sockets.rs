//! The machine with one node a socket: what NPS1 of AMD's firmware and SNC off of Intel's make of
//! it.
//!
//! # Approach
//! A *socket* is a set of nodes that all have the machine's smallest remote latency between them
//! and a larger one to all other nodes. The firmware deals the memory of a merged node over the
//! memory controllers of its socket, so that its latency is the mean over them, and its bandwidth
//! their sum. A cache of a whole node grows with its node. Machines of another shape have no such
//! mode: more than two sockets, nodes without CPUs or memory.

use std::collections::BTreeSet;

use homenode_model::{Bytes, CacheScope, CpuId, Matrix, MbPerS, Node, NodeId, Ns, Topology};

/// Sockets at most.
const SOCKETS: usize = 2;

/// The machine with one node a socket; `None`: it has one already, or is of another shape.
pub(crate) fn merged(machine: &Topology) -> Option<Topology> {
    let sockets = sockets(machine)?;
    if !machine.remote_cacheable || !sockets.iter().all(|nodes| numbered_in_a_row(machine, nodes)) {
        return None;
    }
    let of = |node: NodeId| sockets.iter().position(|nodes| nodes.contains(&node));
    let pairs = |a: usize, b: usize| {
        let to = sockets[b].clone();
        sockets[a].iter().flat_map(move |from| to.clone().into_iter().map(move |to| (*from, to)))
    };
    let sum = |of: &dyn Fn(&Node) -> u64, nodes: &[NodeId]| {
        nodes.iter().map(|n| of(&machine.nodes[n.index()])).fold(0u64, u64::saturating_add)
    };
    let mut caches = machine.caches.clone();
    for cache in caches.iter_mut().filter(|c| c.scope == CacheScope::Node) {
        cache.size = Bytes(cache.size.0.saturating_mul(sockets[0].len() as u64));
    }
    Some(Topology {
        name: format!("{} with one node a socket", machine.name),
        nodes: sockets
            .iter()
            .map(|nodes| Node {
                memory: Bytes(sum(&|n| n.memory.0, nodes)),
                bandwidth: MbPerS(sum(&|n| n.bandwidth.0, nodes)),
                port: MbPerS(sum(&|n| n.port.0, nodes)),
            })
            .collect(),
        cpus: machine
            .cpus
            .iter()
            .map(|node| of(*node).map(|socket| NodeId(socket as u16)))
            .collect::<Option<Vec<_>>>()?,
        latency: Matrix::from_fn(sockets.len(), |a, b| {
            let all: Vec<u64> = pairs(a, b).map(|(from, to)| machine.latency.at(from, to).0).collect();
            Ns(all.iter().sum::<u64>() / all.len().max(1) as u64)
        }),
        link: Matrix::from_fn(sockets.len(), |a, b| {
            MbPerS(pairs(a, b).map(|(from, to)| machine.link.at(from, to).0).fold(0, u64::saturating_add))
        }),
        caches,
        ..machine.clone()
    })
}

/// The nodes of each socket, in order.
fn sockets(machine: &Topology) -> Option<Vec<Vec<NodeId>>> {
    let all: Vec<NodeId> = (0..machine.nodes.len() as u16).map(NodeId).collect();
    if machine.nodes_with_cpus().len() != all.len() || machine.nodes_with_memory().len() != all.len() {
        return None;
    }
    let latency = |a: NodeId, b: NodeId| machine.latency.at(a, b).max(machine.latency.at(b, a));
    let others = |a: NodeId| all.iter().copied().filter(move |b| *b != a);
    let nearest = all.iter().flat_map(|a| others(*a).map(|b| latency(*a, b))).min()?;
    let of = |a: NodeId| -> Vec<NodeId> {
        all.iter().copied().filter(|b| *b == a || latency(a, *b) == nearest).collect()
    };
    let sockets: BTreeSet<Vec<NodeId>> = all.iter().map(|a| of(*a)).collect();
    // Sets that overlap are no sockets, and neither are all nodes of a machine with one level.
    let disjoint = sockets.iter().map(Vec::len).sum::<usize>() == all.len();
    let alike = sockets.iter().map(Vec::len).collect::<BTreeSet<_>>().len() == 1;
    let fits = sockets.len() == SOCKETS && sockets.iter().all(|nodes| nodes.len() > 1);
    (disjoint && alike && fits).then(|| sockets.into_iter().collect())
}

/// Whether the CPUs of the socket's nodes follow each other, so that shared caches stay together.
fn numbered_in_a_row(machine: &Topology, nodes: &[NodeId]) -> bool {
    let cpus: Vec<CpuId> = nodes.iter().flat_map(|node| machine.cpus_of(*node)).collect();
    cpus.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> Topology {
        homenode_schemes::machine(name).unwrap().topology
    }

    #[test]
    fn four_nodes_a_socket_become_one() {
        let it = merged(&preset("epyc-nps4")).unwrap();
        assert_eq!(it.check(), Ok(()));
        assert_eq!((it.nodes.len(), it.cpus.len()), (2, 128));
        assert_eq!(it.cpus_of(NodeId(1)).count(), 64);
        // (95 + 3 × 110) / 4, and the other socket.
        assert_eq!(it.latency.at(NodeId(0), NodeId(0)), Ns(106));
        assert_eq!(it.latency.at(NodeId(0), NodeId(1)), Ns(200));
        assert_eq!(it.nodes[0].bandwidth, MbPerS(160_000));
        let it = merged(&preset("spr-snc4")).unwrap();
        assert_eq!(it.check(), Ok(()));
        assert_eq!(it.caches[1].size, Bytes(4 * (26 << 20)));
    }

    #[test]
    fn machines_of_another_shape_have_no_such_mode() {
        for name in ["2s-xeon", "cxl", "origin2000", "origin3000", "sf15k", "wildfire", "smile"] {
            assert_eq!(merged(&preset(name)).map(|m| m.name), None, "{name}");
        }
    }
}
