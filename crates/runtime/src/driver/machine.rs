//! The nodes, as the launcher hands them over: reading them takes libraries that have no place in a program.

use homenode_model::{Bytes, Core, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology};
use homenode_policy::PolicyContext;

/// Nodes with their CPUs and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Node by CPU; CPUs that are not listed have none.
    node_of_cpu: Vec<Option<NodeId>>,
    /// MiB of memory by node.
    memory: Vec<u64>,
    /// The kernel's distances, by node.
    distance: Vec<Vec<u64>>,
}

/// More CPUs or nodes than any machine has.
const MOST: usize = 1 << 14;
/// Nanoseconds of a unit of distance, assumed: 10 units are a local access, of 90 ns.
const NS_OF_DISTANCE: u64 = 9;

impl Machine {
    /// Reads `CPUS/MIB/DISTANCES;…`, one part a node: CPUs as in `0-3,8`, memory, distances as in `10.21`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut machine = Self { node_of_cpu: Vec::new(), memory: Vec::new(), distance: Vec::new() };
        for (n, part) in (0u16..).zip(text.split(';')) {
            let mut fields = part.split('/');
            let (cpus, mib, distance) = (fields.next()?, fields.next()?, fields.next()?);
            for range in cpus.split(',').filter(|r| !r.is_empty()) {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
                if last >= MOST || first > last {
                    return None;
                }
                if machine.node_of_cpu.len() <= last {
                    machine.node_of_cpu.resize(last + 1, None);
                }
                machine.node_of_cpu[first..=last].fill(Some(NodeId(n)));
            }
            machine.memory.push(mib.parse().ok()?);
            machine.distance.push(distance.split('.').map(|d| d.parse().ok()).collect::<Option<_>>()?);
        }
        let nodes = machine.memory.len();
        let square = machine.distance.iter().all(|row| row.len() == nodes);
        (square && nodes < MOST && !machine.node_of_cpu.is_empty()).then_some(machine)
    }

    /// How many nodes.
    pub fn nodes(&self) -> usize {
        self.memory.len()
    }

    /// Nodes that have none for this process.
    pub fn without_memory(&self) -> Vec<NodeId> {
        (0..).zip(&self.memory).filter(|(_, mib)| **mib == 0).map(|(n, _)| NodeId(n)).collect()
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: usize) -> Option<NodeId> {
        self.node_of_cpu.get(cpu).copied().flatten()
    }

    /// Node by CPU; CPUs without one are on node 0.
    pub fn table(&self) -> Vec<u16> {
        self.node_of_cpu.iter().map(|n| n.map_or(0, |n| n.0)).collect()
    }

    /// The same for who tells by CPU who touches what.
    pub fn cpu_nodes(&self) -> homenode_sources::Cpus {
        homenode_sources::Cpus::new(self.node_of_cpu.clone())
    }

    /// CPUs that have a node, those of the first node first.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<_> =
            self.node_of_cpu.iter().enumerate().filter_map(|(c, n)| n.map(|n| (n, c))).collect();
        cpus.sort_unstable();
        cpus.into_iter().map(|(_, c)| c).collect()
    }

    /// The machine as policies see it. What the kernel does not say is assumed, as for any machine that nobody measured.
    pub fn context(&self, page: Bytes) -> PolicyContext {
        let nodes = self.nodes();
        let node = |mib: &u64| Node { memory: Bytes::mib(*mib), bandwidth: MbPerS(0), port: MbPerS(0) };
        let topology = Topology {
            name: "this machine".into(),
            nodes: self.memory.iter().map(node).collect(),
            cpus: self.table().into_iter().map(NodeId).collect(),
            latency: Matrix::from_fn(nodes, |a, b| Ns(self.distance[a][b]).times(NS_OF_DISTANCE)),
            link: Matrix::from_fn(nodes, |_, _| MbPerS(0)),
            caches: Vec::new(),
            page_sizes: vec![page],
            core: Core { access: Ps(500), outstanding: 10 },
            migration: MigrationCost {
                fixed: Ns(1_000),
                per_kib: Ns(125),
                shootdown: Ns(0),
                serialised: false,
                stops: false,
            },
            remote_cacheable: true,
        };
        PolicyContext::of(&topology, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_cpus_are_read() {
        let m = Machine::parse("0-1,4/16/10.21;2/8/21.10").unwrap();
        assert_eq!((m.nodes(), m.node_of(4), m.node_of(2)), (2, Some(NodeId(0)), Some(NodeId(1))));
        assert_eq!((m.node_of(3), m.node_of(99)), (None, None));
        assert_eq!(m.cpus(), [0, 1, 4, 2]);
        assert_eq!(Machine::parse("0/16/10.21;1/0/21.10").unwrap().without_memory(), [NodeId(1)]);
        let context = m.context(Bytes(4096));
        assert_eq!(context.capacity, [4096, 2048]);
        assert_eq!(context.nearest[1], [NodeId(1), NodeId(0)]);
    }

    #[test]
    fn nonsense_is_none() {
        for text in ["", "0", "0/1", "x/1/10", "5-2/1/10", "0/1/10.20", "0-99999/1/10", "/1/10", "0/1/10;"] {
            assert_eq!(Machine::parse(text), None, "{text}");
        }
    }
}
