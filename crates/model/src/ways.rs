//! What data passes on its way between CPUs and memory.

use alloc::vec::Vec;

use crate::{MbPerS, NodeId, Topology};

/// A part of the machine that data keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Way {
    /// The memory controller of a node.
    Controller(NodeId),
    /// A node's port, outwards.
    Outgoing(NodeId),
    /// A node's port, inwards.
    Incoming(NodeId),
    /// The link from one node to another one.
    Link(NodeId, NodeId),
}

/// An `S` for each controller, port and link of a machine.
///
/// Data from node a to node b passes a's outgoing port, the link a → b and b's incoming port, and
/// the controller of the node whose memory it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways<S> {
    nodes: usize,
    controllers: Vec<S>,
    outgoing: Vec<S>,
    incoming: Vec<S>,
    links: Vec<S>,
}

impl<S> Ways<S> {
    /// Those of a machine, each made from its bandwidth.
    pub fn new(topology: &Topology, make: impl Fn(MbPerS) -> S) -> Self {
        let pairs = topology.node_ids().flat_map(|a| topology.node_ids().map(move |b| (a, b)));
        let ports = || topology.nodes.iter().map(|n| make(n.port)).collect();
        Self {
            nodes: topology.nodes.len(),
            controllers: topology.nodes.iter().map(|n| make(n.bandwidth)).collect(),
            outgoing: ports(),
            incoming: ports(),
            links: pairs.map(|(a, b)| make(topology.link.at(a, b))).collect(),
        }
    }

    /// Does `each` with all that data from the memory of `home` to `node` passes.
    #[inline]
    pub fn fetch(&mut self, node: NodeId, home: NodeId, mut each: impl FnMut(&mut S)) {
        each(&mut self.controllers[home.index()]);
        if node != home {
            self.hop(home, node, each);
        }
    }

    /// Does `each` with all that data from `node` to the memory of `home` passes.
    #[inline]
    pub fn store(&mut self, node: NodeId, home: NodeId, mut each: impl FnMut(&mut S)) {
        each(&mut self.controllers[home.index()]);
        if node != home {
            self.hop(node, home, each);
        }
    }

    #[inline]
    fn hop(&mut self, from: NodeId, to: NodeId, mut each: impl FnMut(&mut S)) {
        each(&mut self.outgoing[from.index()]);
        each(&mut self.links[from.index() * self.nodes + to.index()]);
        each(&mut self.incoming[to.index()]);
    }

    /// By node.
    pub fn controllers(&self) -> &[S] {
        &self.controllers
    }

    /// Directed, row-major.
    pub fn links(&self) -> &[S] {
        &self.links
    }

    /// All of them: controllers, ports, links, by node.
    pub fn iter(&self) -> impl Iterator<Item = (Way, &S)> {
        let of = |all| (0..).map(NodeId).zip(all);
        let links =
            (0..).map(|i: usize| Way::Link(NodeId((i / self.nodes) as u16), NodeId((i % self.nodes) as u16)));
        of(self.controllers.iter())
            .map(|(n, s)| (Way::Controller(n), s))
            .chain(of(self.outgoing.iter()).map(|(n, s)| (Way::Outgoing(n), s)))
            .chain(of(self.incoming.iter()).map(|(n, s)| (Way::Incoming(n), s)))
            .chain(links.zip(&self.links))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Core, Matrix, MigrationCost, Node, Ns, Ps};
    use alloc::string::String;
    use alloc::vec;

    fn ways() -> Ways<u32> {
        let node = |bandwidth| Node { memory: Bytes::mib(1), bandwidth: MbPerS(bandwidth), port: MbPerS(7) };
        let topology = Topology {
            name: String::new(),
            nodes: vec![node(5), node(6)],
            cpus: vec![NodeId(0), NodeId(1)],
            latency: Matrix::from_fn(2, |_, _| Ns(1)),
            link: Matrix::from_fn(2, |i, j| MbPerS(10 * i as u64 + j as u64)),
            caches: Vec::new(),
            page_sizes: vec![Bytes::kib(4)],
            core: Core { access: Ps(1), outstanding: 1 },
            migration: MigrationCost::default(),
            remote_cacheable: true,
            counts_references: false,
        };
        Ways::new(&topology, |bandwidth| bandwidth.0 as u32)
    }

    fn met(of: impl FnOnce(&mut Ways<u32>, &mut Vec<u32>)) -> Vec<u32> {
        let mut out = Vec::new();
        of(&mut ways(), &mut out);
        out
    }

    #[test]
    fn data_passes_ports_and_link_in_its_direction_and_the_homes_controller() {
        let (a, b) = (NodeId(0), NodeId(1));
        assert_eq!(met(|w, out| w.fetch(a, a, |s| out.push(*s))), [5]);
        assert_eq!(met(|w, out| w.fetch(a, b, |s| out.push(*s))), [6, 7, 10, 7]);
        assert_eq!(met(|w, out| w.store(a, b, |s| out.push(*s))), [6, 7, 1, 7]);
        let mut w = ways();
        w.fetch(a, b, |s| *s += 100);
        let touched: Vec<Way> = w.iter().filter(|(_, s)| **s >= 100).map(|(way, _)| way).collect();
        assert_eq!(touched, [Way::Controller(b), Way::Outgoing(b), Way::Incoming(a), Way::Link(b, a)]);
        assert_eq!((w.controllers(), w.links()), (&[5, 106][..], &[0, 1, 110, 11][..]));
    }
}
