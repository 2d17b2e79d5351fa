//! All numbers of a machine, each with its source: what `machine show` prints.

use homenode_model::{CacheScope, Matrix, NodeId};

use crate::{Error, MAX_CPUS, MAX_NODES, MAX_TEXT, Machine, OsNumbers, show_bandwidth, show_bytes, show_ns, show_ps};

/// The source of a number that nobody gave a source for.
pub const ASSUMED: &str = "assumed";

/// A number of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its path; equal numbers of consecutive nodes with equal sources are one: `nodes.0-3.memory`.
    pub path: String,
    /// The number with its unit.
    pub text: String,
    /// Paper, data sheet, kernel, or a text that starts with [`ASSUMED`].
    pub source: String,
}

/// The keys of a node's numbers, in the order of a machine file.
pub(crate) const NODE_KEYS: [&str; 5] = ["count", "cpus", "memory", "bandwidth", "port"];

impl Machine {
    /// The source of the number at `path` (one node's: `nodes.3.memory`), or [`ASSUMED`].
    pub fn source(&self, path: &str) -> &str {
        self.sources.get(path).map_or(ASSUMED, String::as_str)
    }

    /// Every number, in the order of a machine file.
    pub fn values(&self) -> Vec<Value> {
        let t = &self.topology;
        let mut out = Vec::new();
        for (first, last) in self.node_groups() {
            let span = if first == last { format!("{first}") } else { format!("{first}-{last}") };
            let node = &t.nodes[first];
            let texts = [
                (last - first + 1).to_string(),
                t.cpus_of(NodeId(first as u16)).count().to_string(),
                show_bytes(node.memory),
                show_bandwidth(node.bandwidth),
                show_bandwidth(node.port),
            ];
            for (key, text) in NODE_KEYS.iter().zip(texts) {
                let source = self.source(&format!("nodes.{first}.{key}")).into();
                out.push(Value { path: format!("nodes.{span}.{key}"), text, source });
            }
        }
        let mut push = |path: String, text: String| {
            let source = self.source(&path).into();
            out.push(Value { path, text, source });
        };
        push("latency".into(), matrix_text(&t.latency, show_ns));
        push("link".into(), matrix_text(&t.link, show_bandwidth));
        push("page_sizes".into(), t.page_sizes.iter().map(|p| show_bytes(*p)).collect::<Vec<_>>().join(", "));
        push("remote_cacheable".into(), t.remote_cacheable.to_string());
        for (i, c) in t.caches.iter().enumerate() {
            push(format!("caches.{i}.size"), format!("L{} {}", c.level, show_bytes(c.size)));
            push(format!("caches.{i}.line"), show_bytes(c.line));
            push(format!("caches.{i}.ways"), c.ways.to_string());
            let scope = match c.scope {
                CacheScope::Cpu => "cpu".into(),
                CacheScope::Node => "node".into(),
                CacheScope::Group(n) => format!("{n} cpus"),
            };
            push(format!("caches.{i}.shared_by"), scope);
            push(format!("caches.{i}.hit"), show_ns(c.hit));
        }
        push("core.access".into(), show_ps(t.core.access));
        push("core.outstanding".into(), t.core.outstanding.to_string());
        push("migration.fixed".into(), show_ns(t.migration.fixed));
        push("migration.per_kib".into(), show_ns(t.migration.per_kib));
        push("migration.shootdown".into(), show_ns(t.migration.shootdown));
        push("migration.serialised".into(), t.migration.serialised.to_string());
        out
    }

    /// Runs (first, last) of consecutive nodes that are equal in numbers and sources.
    pub(crate) fn node_groups(&self) -> Vec<(usize, usize)> {
        let t = &self.topology;
        let mut cpus = vec![0usize; t.nodes.len()];
        t.cpus.iter().for_each(|n| cpus[n.index()] += 1);
        let same = |a: usize, b: usize| {
            t.nodes[a] == t.nodes[b]
                && cpus[a] == cpus[b]
                && NODE_KEYS.iter().all(|key| {
                    self.sources.get(&format!("nodes.{a}.{key}")) == self.sources.get(&format!("nodes.{b}.{key}"))
                })
        };
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for node in 0..t.nodes.len() {
            match groups.last_mut() {
                Some((first, last)) if same(*first, node) => *last = node,
                _ => groups.push((node, node)),
            }
        }
        groups
    }

    /// Whether the machine fits together and within this crate's bounds. Every function here that returns a machine has
    /// called it; call it after changing one.
    ///
    /// # Errors
    /// [`Error::Topology`], [`Error::Bound`].
    pub fn check(&self) -> Result<(), Error> {
        let bound = |problem: String| Err(Error::Bound { origin: self.origin.to_string(), problem });
        let t = &self.topology;
        if t.nodes.len() > MAX_NODES {
            return bound(format!("{} nodes, at most {MAX_NODES}", t.nodes.len()));
        }
        if t.cpus.len() > MAX_CPUS {
            return bound(format!("{} CPUs, at most {MAX_CPUS}", t.cpus.len()));
        }
        t.check().map_err(|error| Error::Topology { origin: self.origin.to_string(), error })?;
        if let Some(OsNumbers { cpus, nodes }) = &self.os
            && (cpus.len() != t.cpus.len() || nodes.len() != t.nodes.len())
        {
            return bound(format!(
                "the kernel's numbers are for {} CPUs and {} nodes, the machine has {} and {}",
                cpus.len(),
                nodes.len(),
                t.cpus.len(),
                t.nodes.len()
            ));
        }
        for text in [&t.name, &self.about].into_iter().chain(self.sources.values()) {
            if text.len() > MAX_TEXT {
                return bound(format!("a text of {} bytes, at most {MAX_TEXT}", text.len()));
            }
        }
        Ok(())
    }
}

/// `216 ns local, 432 ns remote`, with ranges where cells differ.
fn matrix_text<T: Copy + Ord>(m: &Matrix<T>, show: fn(T) -> String) -> String {
    let range = |cells: &mut dyn Iterator<Item = T>| {
        let (mut low, mut high) = (None, None);
        for c in cells {
            low = Some(low.map_or(c, |l: T| l.min(c)));
            high = Some(high.map_or(c, |h: T| h.max(c)));
        }
        low.zip(high).map(|(l, h)| if l == h { show(l) } else { format!("{} to {}", show(l), show(h)) })
    };
    let ids = || (0..m.len() as u16).map(NodeId);
    let local = range(&mut ids().map(|n| m.at(n, n)));
    let remote = range(&mut ids().flat_map(|a| ids().filter(move |b| *b != a).map(move |b| m.at(a, b))));
    match (local, remote) {
        (Some(l), Some(r)) => format!("{l} local, {r} remote"),
        (Some(l), None) => format!("{l} local"),
        _ => "none".into(),
    }
}
