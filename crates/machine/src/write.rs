//! [`Machine`] out as a machine file that reads back as the same machine.
//!
//! Written by hand, not by a serialiser, for the layout: a person edits these files, so each number
//! stands on a line of its own with its source beside it.

use std::fmt::Write as _;

use homenode_model::{CacheScope, Matrix, MbPerS, NodeId, Ns, Writes};

use crate::read::FORMAT;
use crate::{Machine, show_bandwidth, show_bytes, show_ns, show_ps};

impl Machine {
    /// The text of a machine file.
    pub fn to_toml(&self) -> String {
        let t = &self.topology;
        let mut out = String::new();
        let mut line = |s: String| {
            out.push_str(&s);
            out.push('\n');
        };
        line(format!("format = {FORMAT}"));
        line(format!("name = {}", quoted(&t.name)));
        if !self.about.is_empty() {
            line(format!("about = {}", quoted(&self.about)));
        }
        if !t.cpus.is_sorted() {
            line(format!("cpu_nodes = {}", list(t.cpus.iter().map(|n| n.0))));
        }
        line(format!("link = {}", self.sourced("link", &link(&t.link))));
        let pages = list(t.page_sizes.iter().map(|p| quoted(&show_bytes(*p))));
        line(format!("page_sizes = {}", self.sourced("page_sizes", &pages)));
        line(format!(
            "remote_cacheable = {}",
            self.sourced("remote_cacheable", &t.remote_cacheable.to_string())
        ));
        if t.counts_references {
            line(format!("counts_references = {}", self.sourced("counts_references", "true")));
        }
        self.write_nodes(&mut line);
        line("\n[latency]".into());
        line(latency(&t.latency));
        if let Some(source) = self.sources.get("latency") {
            line(format!("source = {}", quoted(source)));
        }
        for (i, c) in t.caches.iter().enumerate() {
            line(format!("\n[[caches]]\nlevel = {}", c.level));
            let scope = match c.scope {
                CacheScope::Cpu => quoted("cpu"),
                CacheScope::Node => quoted("node"),
                CacheScope::Group(n) => n.to_string(),
            };
            match c.writes {
                Writes::Back => {}
            }
            for (key, value) in [
                ("size", quoted(&show_bytes(c.size))),
                ("line", quoted(&show_bytes(c.line))),
                ("ways", c.ways.to_string()),
                ("shared_by", scope),
                ("hit", quoted(&show_ns(c.hit))),
            ] {
                line(format!("{key} = {}", self.sourced(&format!("caches.{i}.{key}"), &value)));
            }
        }
        if let Some(bus) = &self.bus {
            line("\n[bus]".into());
            let bandwidth = quoted(&show_bandwidth(bus.bandwidth));
            line(format!("bandwidth = {}", self.sourced("bus.bandwidth", &bandwidth)));
            line(format!("cpus = {}", self.sourced("bus.cpus", &bus.cpus.to_string())));
        }
        line("\n[core]".into());
        line(format!("access = {}", self.sourced("core.access", &quoted(&show_ps(t.core.access)))));
        line(format!("outstanding = {}", self.sourced("core.outstanding", &t.core.outstanding.to_string())));
        if let Some(window) = self.window {
            line(format!("window = {}", self.sourced("core.window", &window.to_string())));
        }
        line("\n[migration]".into());
        let m = &t.migration;
        for (key, time) in [("fixed", m.fixed), ("per_kib", m.per_kib), ("shootdown", m.shootdown)] {
            line(format!("{key} = {}", self.sourced(&format!("migration.{key}"), &quoted(&show_ns(time)))));
        }
        line(format!("serialised = {}", self.sourced("migration.serialised", &m.serialised.to_string())));
        if m.stops {
            line(format!("stops = {}", self.sourced("migration.stops", "true")));
        }
        self.write_fitted(&mut line);
        if let Some(os) = &self.os {
            line(format!("\n[os]\ncpus = {}", list(os.cpus.iter())));
            line(format!("nodes = {}", list(os.nodes.iter())));
        }
        out
    }

    fn write_fitted(&self, line: &mut dyn FnMut(String)) {
        for f in &self.fitted {
            line(format!("\n[[fitted]]\nprogram = {}", quoted(&f.program)));
            let path = format!("fitted.{}.coverage", f.program);
            line(format!("coverage = {}", self.sourced(&path, &f.coverage.to_string())));
            if let Some(access) = f.access {
                let path = format!("fitted.{}.access", f.program);
                line(format!("access = {}", self.sourced(&path, &quoted(&show_ps(access)))));
            }
        }
    }

    fn write_nodes(&self, line: &mut dyn FnMut(String)) {
        let t = &self.topology;
        for (first, last) in self.node_groups() {
            let node = &t.nodes[first];
            line("\n[[nodes]]".into());
            let values = [
                (last - first + 1).to_string(),
                t.cpus_of(NodeId(first as u16)).count().to_string(),
                quoted(&show_bytes(node.memory)),
                quoted(&show_bandwidth(node.bandwidth)),
                quoted(&show_bandwidth(node.port)),
            ];
            for (key, value) in crate::values::NODE_KEYS.iter().zip(values) {
                line(format!("{key} = {}", self.sourced(&format!("nodes.{first}.{key}"), &value)));
            }
        }
    }

    fn sourced(&self, path: &str, value: &str) -> String {
        match self.sources.get(path) {
            Some(source) => format!("{{ value = {value}, source = {} }}", quoted(source)),
            None => value.into(),
        }
    }
}

fn list<T: ToString>(items: impl Iterator<Item = T>) -> String {
    format!("[{}]", items.map(|i| i.to_string()).collect::<Vec<_>>().join(", "))
}

/// Two numbers when that is all there is, otherwise the matrix.
fn latency(m: &Matrix<Ns>) -> String {
    let n = m.len();
    let at = |a: usize, b: usize| m.at(NodeId(a as u16), NodeId(b as u16));
    let (local, remote) = (at(0, 0), at(0, usize::from(n > 1)));
    let flat = (0..n * n).all(|i| at(i / n, i % n) == if i / n == i % n { local } else { remote });
    match (flat, n) {
        (true, 1) => format!("levels = [{}]", quoted(&show_ns(local))),
        (true, _) => format!("levels = [{}, {}]", quoted(&show_ns(local)), quoted(&show_ns(remote))),
        (false, _) => format!("value = {}", rows(m, |t| plain(t.0, "ns"))),
    }
}

/// One number when all pairs have it and the diagonal is what reading it gives, otherwise the
/// matrix.
fn link(m: &Matrix<MbPerS>) -> String {
    let n = m.len();
    let at = |a: usize, b: usize| m.at(NodeId(a as u16), NodeId(b as u16));
    let all = if n > 1 { at(0, 1) } else { MbPerS(0) };
    let flat = (0..n * n).all(|i| at(i / n, i % n) == if i / n == i % n { MbPerS(0) } else { all });
    if flat { quoted(&show_bandwidth(all)) } else { rows(m, |b| plain(b.0, "MB/s")) }
}

fn rows<T: Copy>(m: &Matrix<T>, show: impl Fn(T) -> String) -> String {
    let mut out = String::from("[\n");
    for row in 0..m.len() {
        let _ = writeln!(out, "  {},", list(m.row(NodeId(row as u16)).iter().map(|c| show(*c))));
    }
    out.push(']');
    out
}

/// A bare number; TOML's integers end at 2^63 − 1, so larger ones carry their unit in quotes.
fn plain(n: u64, unit: &str) -> String {
    if i64::try_from(n).is_ok() { n.to_string() } else { format!("\"{n} {unit}\"") }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
