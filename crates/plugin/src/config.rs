//! What the launcher tells the monitor.

use homenode_wire::monitor::Config;

/// Reads it, and checks the machine.
///
/// # Errors
/// It is damaged, of another version, or the machine makes no sense.
pub fn parse(bytes: &[u8]) -> Result<Config, String> {
    let config: Config = homenode_wire::decode(bytes).map_err(|e| e.to_string())?;
    config.machine.check().map_err(|e| e.to_string())?;
    if config.machine.caches.is_empty() {
        return Err("the machine has no cache".into());
    }
    Ok(config)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use homenode_model::{
        Bytes, Cache, CacheScope, Core, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology, Writes,
    };
    use homenode_wire::monitor::PhysicalAddresses;

    /// Two nodes with a CPU each; node 0's memory gives a line a microsecond.
    pub fn two_nodes() -> Config {
        let node =
            |mib, bandwidth| Node { memory: Bytes::mib(mib), bandwidth: MbPerS(bandwidth), port: MbPerS(0) };
        let cache = Cache {
            level: 2,
            size: Bytes::kib(32),
            line: Bytes(64),
            ways: 8,
            scope: CacheScope::Cpu,
            writes: Writes::Back,
            hit: Ns(3),
        };
        Config {
            machine: Topology {
                name: "lab".into(),
                nodes: vec![node(1, 64), node(2, 0)],
                cpus: vec![NodeId(0), NodeId(1)],
                latency: Matrix::from_fn(2, |i, j| Ns(if i == j { 10 } else { 20 })),
                link: Matrix::from_fn(2, |_, _| MbPerS(0)),
                caches: vec![cache],
                page_sizes: vec![Bytes::kib(4)],
                core: Core { access: Ps(0), outstanding: 1 },
                migration: MigrationCost::default(),
                remote_cacheable: true,
                counts_references: false,
            },
            addresses: PhysicalAddresses::Physical { low: Bytes::mib(2) },
            disk: Bytes(0),
            kernel: None,
            output: "x".into(),
            control: 3,
        }
    }

    #[test]
    fn damage_and_what_is_no_machine_are_refused() {
        let good = two_nodes();
        let bytes = homenode_wire::encode(&good).unwrap();
        assert_eq!(parse(&bytes), Ok(good.clone()));
        assert!(parse(&bytes[..bytes.len() - 1]).unwrap_err().contains("cut off"));
        let refused = |change: fn(&mut Config)| {
            let mut config = good.clone();
            change(&mut config);
            assert!(parse(&homenode_wire::encode(&config).unwrap()).is_err());
        };
        refused(|c| c.machine.cpus.push(NodeId(2)));
        refused(|c| c.machine.link = Matrix::from_fn(1, |_, _| MbPerS(0)));
        refused(|c| c.machine.latency = Matrix::from_fn(3, |_, _| Ns(1)));
        refused(|c| c.machine.caches.clear());
    }
}
