//! All numbers of a machine, each with its source: what `machine show` prints.

use homenode_model::{CacheScope, Matrix, NodeId};

use crate::{
    Error, MAX_CPUS, MAX_NODES, MAX_TEXT, Machine, OsNumbers, show_bandwidth, show_bytes, show_ns, show_ps,
};

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
        let local = local_range(&t.latency, show_ns).unwrap_or_else(|| "none".into());
        let text = match remote_range(&t.latency, show_ns) {
            Some(remote) => format!("{local} local, {remote} remote"),
            None => format!("{local} local"),
        };
        push("latency".into(), text);
        // The diagonal of `link` is unused.
        push("link".into(), remote_range(&t.link, show_bandwidth).unwrap_or_else(|| "none".into()));
        push("page_sizes".into(), t.page_sizes.iter().map(|p| show_bytes(*p)).collect::<Vec<_>>().join(", "));
        push("remote_cacheable".into(), t.remote_cacheable.to_string());
        if t.counts_references {
            push("counts_references".into(), "true".into());
        }
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
        if let Some(bus) = &self.bus {
            push("bus.bandwidth".into(), show_bandwidth(bus.bandwidth));
            push("bus.cpus".into(), bus.cpus.to_string());
        }
        push("core.access".into(), show_ps(t.core.access));
        push("core.outstanding".into(), t.core.outstanding.to_string());
        if let Some(window) = self.window {
            push("core.window".into(), window.to_string());
        }
        push("migration.fixed".into(), show_ns(t.migration.fixed));
        push("migration.per_kib".into(), show_ns(t.migration.per_kib));
        push("migration.shootdown".into(), show_ns(t.migration.shootdown));
        push("migration.serialised".into(), t.migration.serialised.to_string());
        if t.migration.stops {
            push("migration.stops".into(), "true".into());
        }
        for f in &self.fitted {
            push(format!("fitted.{}.coverage", f.program), format!("{} %", f.coverage));
            if let Some(access) = f.access {
                push(format!("fitted.{}.access", f.program), show_ps(access));
            }
        }
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
                    self.sources.get(&format!("nodes.{a}.{key}"))
                        == self.sources.get(&format!("nodes.{b}.{key}"))
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

    /// Whether the machine fits together and within this crate's bounds. Every function here that
    /// returns a machine has called it; call it after changing one.
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
            // These are printed on terminals, and a file with them does not read back.
            if text.chars().any(char::is_control) {
                return bound(format!("control characters in the text {text:?}"));
            }
        }
        Ok(())
    }
}

fn local_range<T: Copy + Ord>(m: &Matrix<T>, show: fn(T) -> String) -> Option<String> {
    range((0..m.len() as u16).map(|n| m.at(NodeId(n), NodeId(n))), show)
}

fn remote_range<T: Copy + Ord>(m: &Matrix<T>, show: fn(T) -> String) -> Option<String> {
    let ids = || (0..m.len() as u16).map(NodeId);
    range(ids().flat_map(|a| ids().filter(move |b| *b != a).map(move |b| m.at(a, b))), show)
}

/// `432 ns`, or `415 ns to 915 ns`; `None` of nothing.
fn range<T: Copy + Ord>(cells: impl Iterator<Item = T>, show: fn(T) -> String) -> Option<String> {
    let ends = cells.fold(None, |ends: Option<(T, T)>, c| {
        Some(ends.map_or((c, c), |(low, high)| (low.min(c), high.max(c))))
    });
    ends.map(|(low, high)| if low == high { show(low) } else { format!("{} to {}", show(low), show(high)) })
}
