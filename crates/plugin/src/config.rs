//! The machine, as the launcher writes it down: lines of words and numbers.

use homenode_model::{
    Bytes, Cache, CacheScope, Core, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology, Writes,
};

use crate::process::Layout;

/// What the first line says.
const MAGIC: &str = "homenode monitor 4";

/// What `qemu_plugin_hwaddr_phys_addr` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// The guest's physical address; memory from `low` on is above 4 GiB.
    Physical {
        /// Bytes below the hole under 4 GiB.
        low: Bytes,
    },
    /// Before QEMU 8.2: place in a node's block of memory, plus the block's place among QEMU's blocks, plus its place in
    /// the machine's memory. The latter two are the same here, so what lies before a node counts twice.
    Blocks {
        /// As above: the guest knows nothing of blocks.
        low: Bytes,
    },
}

/// What the plug-in is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The modelled machine; its CPUs are the guest's.
    pub machine: Topology,
    /// What QEMU means by a physical address.
    pub addresses: Addresses,
    /// Bytes of a disk that is mapped as memory, before that of the nodes.
    pub disk: Bytes,
    /// Where the guest's kernel keeps what says which process runs.
    pub kernel: Option<Layout>,
    /// Where the result goes.
    pub output: String,
    /// The socket on which the launcher says when to begin and to end.
    pub control: i32,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// The line that makes no sense.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(MAGIC) {
            return Err(format!("it does not begin with '{MAGIC}'"));
        }
        let (mut nodes, mut cpus, mut latencies, mut links, mut caches) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut addresses, mut output, mut control, mut access, mut kernel) = (None, None, None, None, None);
        let mut disk = Bytes::ZERO;
        for line in lines {
            let wrong = || format!("'{line}'");
            let (word, rest) = line.split_once(' ').ok_or_else(wrong)?;
            if word == "output" {
                output = Some(rest.to_owned());
                continue;
            }
            let numbers: Option<Vec<u64>> = rest.split(' ').map(|n| n.parse().ok()).collect();
            let numbers = numbers.ok_or_else(wrong)?;
            match (word, &numbers[..]) {
                ("addresses", [low]) => addresses = Some(Addresses::Physical { low: Bytes(*low) }),
                ("blocks", [low]) => addresses = Some(Addresses::Blocks { low: Bytes(*low) }),
                ("kernel", [areas, current, direct, process, name]) => {
                    kernel = Some(Layout {
                        areas: *areas,
                        current: *current,
                        direct: *direct,
                        process: *process,
                        name: *name,
                    });
                }
                ("disk", [n]) => disk = Bytes(*n),
                ("control", [n]) => control = Some(i32::try_from(*n).map_err(|_| wrong())?),
                ("access", [n]) => access = Some(Ps(*n)),
                ("node", [memory, bandwidth, port]) => nodes.push(Node {
                    memory: Bytes(*memory),
                    bandwidth: MbPerS(*bandwidth),
                    port: MbPerS(*port),
                }),
                ("cpu", [n]) => cpus.push(NodeId(u16::try_from(*n).map_err(|_| wrong())?)),
                ("latency", row) => latencies.push(row.to_vec()),
                ("link", row) => links.push(row.to_vec()),
                ("cache", [level, size, line, ways, scope, hit]) => caches.push(Cache {
                    level: *level as u8,
                    size: Bytes(*size),
                    line: Bytes(*line),
                    ways: *ways as u32,
                    scope: match *scope {
                        0 => CacheScope::Node,
                        1 => CacheScope::Cpu,
                        n => CacheScope::Group(n as u32),
                    },
                    writes: Writes::Back,
                    hit: Ns(*hit),
                }),
                _ => return Err(wrong()),
            }
        }
        let n = nodes.len();
        if [&latencies, &links].iter().any(|m| m.len() != n || m.iter().any(|r| r.len() != n)) {
            return Err("latencies or links are no matrix over the nodes".into());
        }
        let machine = Topology {
            name: "lab".into(),
            nodes,
            cpus,
            latency: Matrix::from_fn(n, |i, j| Ns(latencies[i][j])),
            link: Matrix::from_fn(n, |i, j| MbPerS(links[i][j])),
            caches,
            page_sizes: vec![Bytes::kib(4)],
            core: Core { access: access.ok_or("no line 'access'")?, outstanding: 1 },
            migration: MigrationCost::default(),
            remote_cacheable: true,
        };
        machine.check().map_err(|e| e.to_string())?;
        Ok(Self {
            machine,
            addresses: addresses.ok_or("no line 'addresses'")?,
            disk,
            kernel,
            output: output.ok_or("no line 'output'")?,
            control: control.ok_or("no line 'control'")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_refused() {
        let good = "homenode monitor 4\naddresses 1048576\ncontrol 3\naccess 500\nnode 1048576 40000 50000\ncpu 0\n\
                    latency 95\nlink 0\ncache 2 524288 64 8 1 3\nkernel 1 2 3 4 5\noutput /tmp/x y\n";
        let config = Config::parse(good).unwrap();
        assert_eq!((config.output.as_str(), config.machine.caches.len()), ("/tmp/x y", 1));
        assert_eq!(config.kernel.map(|k| (k.areas, k.name)), Some((1, 5)));
        let node = &config.machine.nodes[0];
        assert_eq!((node.bandwidth, node.port), (MbPerS(40_000), MbPerS(50_000)));
        for (from, to) in [
            ("monitor 4", "monitor 3"),
            ("cpu 0", "cpu 1"),
            ("latency 95", "latency 95 95"),
            ("link 0\n", ""),
            ("addresses 1", "addresses x"),
            ("kernel 1 2", "kernel 1"),
        ] {
            assert!(Config::parse(&good.replace(from, to)).is_err(), "{to}");
        }
    }
}
