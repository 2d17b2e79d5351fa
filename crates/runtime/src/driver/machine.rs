//! The nodes of the machine, as the launcher describes them. Reading them here would take libraries
//! that have no place in a foreign program.

use homenode_model::{Bytes, Core, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology};
use homenode_policy::PolicyContext;
use homenode_wire::bounded::{CPUS, NODES};
use homenode_wire::live::LiveRecord;
use homenode_wire::settings;

/// Nodes with their CPUs and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveMachine {
    /// Node of each CPU; `None` for CPUs that the launcher does not list.
    node_of_cpu: Vec<Option<NodeId>>,
    /// Memory of each node.
    memory: Vec<Bytes>,
    /// The kernel's distances between nodes.
    distance: Vec<Vec<u64>>,
}

/// Nanoseconds of a unit of distance, assumed: a local access is 10 units and takes 90 ns.
const NS_OF_DISTANCE: u64 = 9;

impl LiveMachine {
    /// The launcher's nodes. `None` if a CPU's number is beyond any machine's, if there is no CPU,
    /// or if distances are missing.
    pub fn of(told: &settings::MachineNodes) -> Option<Self> {
        let mut machine = Self { node_of_cpu: Vec::new(), memory: Vec::new(), distance: Vec::new() };
        for (n, node) in (0u16..).zip(&told.nodes) {
            for cpu in &node.cpus {
                let cpu = *cpu as usize;
                if cpu >= CPUS {
                    return None;
                }
                if machine.node_of_cpu.len() <= cpu {
                    machine.node_of_cpu.resize(cpu + 1, None);
                }
                machine.node_of_cpu[cpu] = Some(NodeId(n));
            }
            machine.memory.push(node.memory);
            machine.distance.push(node.distances.clone());
        }
        let nodes = machine.memory.len();
        let square = machine.distance.iter().all(|row| row.len() == nodes);
        (square && nodes <= NODES && !machine.node_of_cpu.is_empty()).then_some(machine)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.memory.len()
    }

    /// Nodes without memory for this process.
    pub fn without_memory(&self) -> Vec<NodeId> {
        (0..)
            .zip(&self.memory)
            .filter(|(_, memory)| **memory == Bytes::ZERO)
            .map(|(n, _)| NodeId(n))
            .collect()
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: usize) -> Option<NodeId> {
        self.node_of_cpu.get(cpu).copied().flatten()
    }

    /// Node of each CPU. CPUs without a node count as node 0.
    pub fn table(&self) -> Vec<u16> {
        self.node_of_cpu.iter().map(|n| n.map_or(0, |n| n.0)).collect()
    }

    /// Node of each CPU; `None` if the CPU has none.
    pub fn cpu_table(&self) -> &[Option<NodeId>] {
        &self.node_of_cpu
    }

    /// A record for each node, for a recording.
    pub fn nodes_for_stream(&self) -> Vec<LiveRecord> {
        let cpus = |n: u16| (0u32..).zip(&self.node_of_cpu).filter(move |(_, at)| **at == Some(NodeId(n)));
        let record = |(n, memory): (u16, &Bytes)| LiveRecord::Node {
            node: NodeId(n),
            memory: *memory,
            cpus: cpus(n).map(|(cpu, _)| cpu).collect(),
            distances: self.distance[usize::from(n)].clone(),
        };
        (0u16..).zip(&self.memory).map(record).collect()
    }

    /// The same table for sources that see CPUs.
    pub fn cpu_nodes(&self) -> homenode_sources::Cpus {
        homenode_sources::Cpus::new(self.node_of_cpu.clone())
    }

    /// The kernel's distances, a row for each node.
    pub fn distances(&self) -> &[Vec<u64>] {
        &self.distance
    }

    /// CPUs that have a node, ordered by node.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<_> =
            self.node_of_cpu.iter().enumerate().filter_map(|(c, n)| n.map(|n| (n, c))).collect();
        cpus.sort_unstable();
        cpus.into_iter().map(|(_, c)| c).collect()
    }

    /// The machine as policies see it. Latencies that the kernel does not state are assumed, as for
    /// every machine without measurements. The threads may run wherever this process has CPUs.
    pub fn context(&self, page: Bytes) -> PolicyContext {
        let nodes = self.nodes();
        let node = |memory: &Bytes| Node { memory: *memory, bandwidth: MbPerS(0), port: MbPerS(0) };
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
            counts_references: false,
        };
        PolicyContext::of(&topology, page).with_running(self.node_of_cpu.iter().copied().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpus: &[u32], mib: u64, distances: &[u64]) -> settings::UsableNode {
        settings::UsableNode { cpus: cpus.to_vec(), memory: Bytes::mib(mib), distances: distances.to_vec() }
    }

    fn of(nodes: &[settings::UsableNode]) -> Option<LiveMachine> {
        LiveMachine::of(&settings::MachineNodes { nodes: nodes.to_vec() })
    }

    #[test]
    fn distributions_leave_out_nodes_without_cpus_of_the_process() {
        let distances = [10, 21, 31];
        let m = of(&[node(&[], 16, &distances), node(&[2], 16, &distances), node(&[5], 16, &distances)]);
        let context = m.unwrap().context(Bytes::kib(4));
        assert_eq!(context.memory_nodes(), [0, 1, 2].map(NodeId));
        assert_eq!(context.distribution_nodes(), [1, 2].map(NodeId));
    }

    #[test]
    fn nodes_and_cpus_are_known() {
        let m = of(&[node(&[0, 1, 4], 16, &[10, 21]), node(&[2], 8, &[21, 10])]).unwrap();
        assert_eq!((m.nodes(), m.node_of(4), m.node_of(2)), (2, Some(NodeId(0)), Some(NodeId(1))));
        assert_eq!((m.node_of(3), m.node_of(99)), (None, None));
        assert_eq!(m.cpus(), [0, 1, 4, 2]);
        let one_is_empty = of(&[node(&[0], 16, &[10, 21]), node(&[1], 0, &[21, 10])]).unwrap();
        assert_eq!(one_is_empty.without_memory(), [NodeId(1)]);
        let context = m.context(Bytes(4096));
        assert_eq!(context.capacity, [4096, 2048]);
        assert_eq!(context.nearest[1], [NodeId(1), NodeId(0)]);
    }

    #[test]
    fn nonsense_is_none() {
        assert_eq!(of(&[]), None);
        for bad in [node(&[], 1, &[10]), node(&[0], 1, &[10, 20]), node(&[CPUS as u32], 1, &[10])] {
            assert_eq!(of(&[bad]), None);
        }
        assert!(of(&[node(&[0], 1, &[10])]).is_some());
    }
}
