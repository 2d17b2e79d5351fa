//! A host as a machine's description has it: nothing of it is real.

use homenode_machine::Machine;
use homenode_model::{CacheScope, NodeId};

use super::facts::{Host, HostNode, HostState};
use crate::axes::CpuNumber;

/// What Linux calls a local access.
const LOCAL: u64 = 10;
/// The largest distance that is one.
const FAR: u64 = 254;

pub(super) fn host(machine: &Machine) -> Host {
    let t = &machine.topology;
    let number = |n: NodeId| match &machine.os {
        Some(os) => os.nodes[n.index()] as u16,
        None => n.0,
    };
    let cpu = |i: usize| CpuNumber(machine.os.as_ref().map_or(i as u32, |os| os.cpus[i]));
    let best = t.node_ids().map(|n| t.latency.at(n, n).0).filter(|l| *l > 0).min().unwrap_or(1);
    let mut nodes: Vec<HostNode> = t
        .node_ids()
        .map(|n| {
            let mut cpus: Vec<CpuNumber> = t.cpus_of(n).map(|c| cpu(c.index())).collect();
            cpus.sort();
            let distance = |m| (t.latency.at(n, m).0 * LOCAL / best).clamp(LOCAL, FAR) as u32;
            HostNode {
                node: number(n),
                cores: cpus.clone(),
                cpus,
                unusable_cpus: Vec::new(),
                memory: t.nodes[n.index()].memory.0,
                free: t.nodes[n.index()].memory.0,
                allowed: true,
                distances: t.node_ids().map(distance).collect(),
            }
        })
        .collect();
    nodes.sort_by_key(|n| n.node);
    Host {
        cpu_model: t.name.clone(),
        kernel: machine.origin.to_string(),
        nodes,
        last_level_cache: last_level(machine),
        firmware: Vec::new(),
        state: HostState::default(),
        synthetic: true,
        hidden: Vec::new(),
    }
}

fn last_level(machine: &Machine) -> u64 {
    let t = &machine.topology;
    let Some(cache) = t.caches.last() else { return 0 };
    let per_node = |n: NodeId| {
        let cpus = t.cpus_of(n).count() as u64;
        match cache.scope {
            _ if cpus == 0 => 0,
            CacheScope::Cpu => cpus,
            CacheScope::Group(of) => cpus.div_ceil(u64::from(of.max(1))),
            CacheScope::Node => 1,
        }
    };
    cache.size.times(t.node_ids().map(per_node).sum()).0
}
