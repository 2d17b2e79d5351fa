//! A measurement in the forms that others read: a machine, and the memory attributes of hwloc.

use std::fmt::Write as _;

use homenode_machine::Machine;
use homenode_model::{MbPerS, NodeId, Ns};
use homenode_statistics::Sorted;

use crate::axes::{NodeNumber, NodePair, PageSize};
use crate::measurement::Measurement;

/// The source that a measured number names.
const SOURCE: &str = "measured by homenode measure";

/// `machine` with what was measured in place of what was assumed, each number with its source.
/// Where a pair was not measured the number stays; a matrix that is measured in part says so.
#[must_use]
pub fn machine_file(m: &Measurement, mut machine: Machine) -> Machine {
    let t = &machine.topology;
    let ids: Vec<NodeId> = t.node_ids().collect();
    let node = |id: NodeId| match &machine.os {
        Some(os) => NodeNumber(os.nodes[id.index()] as u16),
        None => NodeNumber(id.0),
    };
    let pair = |a: NodeId, b: NodeId| NodePair { cpu: node(a), memory: node(b) };
    let mut sources = machine.sources.clone();
    let mut topology = t.clone();
    let known = |a: usize, b: usize| m.latency(pair(ids[a], ids[b])).map(|ns| Ns(ns.round() as u64));
    let count = (0..ids.len())
        .flat_map(|a| (0..ids.len()).map(move |b| (a, b)))
        .filter(|(a, b)| known(*a, *b).is_some())
        .count();
    if count > 0 {
        topology.latency = homenode_model::Matrix::from_fn(ids.len(), |a, b| {
            known(a, b).unwrap_or_else(|| t.latency.at(ids[a], ids[b]))
        });
        let part = if count == ids.len() * ids.len() {
            String::new()
        } else {
            format!(" for {count} pairs, others as before")
        };
        sources.insert("latency".into(), format!("{SOURCE}{part}"));
    }
    let mb = |v: f64| MbPerS(v.round().max(1.0) as u64);
    for (i, id) in ids.iter().enumerate() {
        // What its nearest threads get is what the controllers give.
        let best = ids.iter().filter_map(|a| m.bandwidth(pair(*a, *id))).reduce(f64::max);
        if let Some(best) = best {
            topology.nodes[i].bandwidth = mb(best);
            sources.insert(format!("nodes.{i}.bandwidth"), SOURCE.into());
        }
    }
    let remote = |a: usize, b: usize| if a == b { None } else { m.bandwidth(pair(ids[a], ids[b])) };
    if (0..ids.len()).any(|a| (0..ids.len()).any(|b| remote(a, b).is_some())) {
        topology.link = homenode_model::Matrix::from_fn(ids.len(), |a, b| {
            remote(a, b).map_or_else(|| t.link.at(ids[a], ids[b]), mb)
        });
        sources.insert("link".into(), format!("{SOURCE}: what threads of one node get of another's memory"));
    }
    if let Some((fixed, per_kib)) = migration(m) {
        topology.migration.fixed = fixed;
        topology.migration.per_kib = per_kib;
        for key in ["fixed", "per_kib"] {
            sources.insert(format!("migration.{key}"), format!("{SOURCE}: 4 KiB and 2 MiB pages"));
        }
    }
    machine.topology = topology;
    machine.sources = sources;
    machine
}

/// Fixed cost and cost a KiB of a page, from what pages of two sizes cost: medians over all pairs.
fn migration(m: &Measurement) -> Option<(Ns, Ns)> {
    let cost = |page: PageSize| {
        let ns: Vec<f64> = m
            .cells
            .iter()
            .filter(|c| matches!(c.subject, crate::Subject::Migration { page: p, .. } if p == page))
            .filter_map(|c| c.value.map(|v| page.bytes() as f64 * 1e3 / v))
            .collect();
        Sorted::of(ns).upper_median()
    };
    let (small, huge) = (cost(PageSize::Small)?, cost(PageSize::Huge)?);
    let kib = |p: PageSize| p.bytes() as f64 / 1024.0;
    let per_kib = ((huge - small) / (kib(PageSize::Huge) - kib(PageSize::Small))).max(0.0);
    Some((Ns((small - per_kib * kib(PageSize::Small)).max(0.0).round() as u64), Ns(per_kib.round() as u64)))
}

/// hwloc's XML of a topology with the measured latencies (ns) and bandwidths (MB/s) as its memory
/// attributes `Latency` and `Bandwidth`. `xml` is what hwloc wrote; attributes of these names that
/// it has are replaced.
pub fn memory_attributes(m: &Measurement, xml: &str) -> String {
    let nodes: Vec<(NodeNumber, String)> = xml.lines().filter_map(numa_node).collect();
    // Flags as hwloc has them (hwloc/memattrs.h): 1 higher is better, 2 lower is better, 4 an
    // initiator is needed.
    let attributes = [("Bandwidth", 5, false), ("Latency", 6, true)].map(|(name, flags, latency)| {
        let mut text = format!("  <memattr name=\"{name}\" flags=\"{flags}\">\n");
        let mut any = false;
        for (memory, index) in &nodes {
            for cpu in &m.host.nodes {
                let pair = NodePair { cpu: cpu.id(), memory: *memory };
                let value = if latency { m.latency(pair) } else { m.bandwidth(pair) };
                let Some(value) = value else { continue };
                any = true;
                let _ = writeln!(
                    text,
                    "    <memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"{index}\" value=\"{}\" \
                     initiator_cpuset=\"{}\"/>",
                    value.round() as u64,
                    cpuset(&cpu.cpus)
                );
            }
        }
        text += "  </memattr>\n";
        (name, any.then_some(text))
    });
    let mut out = String::new();
    let mut skipping = false;
    for line in xml.lines() {
        let replaced = |(name, text): &(&str, Option<String>)| {
            text.is_some() && line.trim_start().starts_with(&format!("<memattr name=\"{name}\""))
        };
        skipping = skipping || attributes.iter().any(replaced);
        if line.trim() == "</topology>" {
            attributes.iter().filter_map(|(_, text)| text.as_ref()).for_each(|t| out += t);
        }
        if !skipping {
            out += line;
            out.push('\n');
        }
        skipping = skipping && !line.contains("</memattr>");
    }
    out
}

/// The kernel's number and hwloc's index of the node that a line describes.
fn numa_node(line: &str) -> Option<(NodeNumber, String)> {
    let line = line.trim_start().strip_prefix("<object type=\"NUMANode\"")?;
    let value = |key: &str| line.split_once(&format!(" {key}=\""))?.1.split('"').next();
    Some((NodeNumber(value("os_index")?.parse().ok()?), value("gp_index")?.to_owned()))
}

/// A set of CPUs as hwloc writes it: words of 32 bits, the highest first.
fn cpuset(cpus: &[crate::CpuNumber]) -> String {
    let top = cpus.iter().map(|c| c.0 / 32).max().unwrap_or(0);
    let word = |w: u32| cpus.iter().filter(|c| c.0 / 32 == w).fold(0_u32, |bits, c| bits | 1 << (c.0 % 32));
    (0..=top).rev().map(|w| format!("0x{:08x}", word(w))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuNumber, Host, MeasureRequest, MeasurementKind, Synthetic, measure, plan};

    fn measured(machine: &Machine) -> Measurement {
        let host = Host::like(machine);
        let ask = MeasureRequest {
            kinds: [MeasurementKind::Latency, MeasurementKind::Bandwidth, MeasurementKind::Migration].into(),
            ..MeasureRequest::quick()
        };
        let mut prober = Synthetic::new(machine);
        measure(&host, &ask, &plan(&host, &ask), &mut prober, &|| false, &mut |_, _| {})
    }

    #[test]
    fn a_machine_file_has_the_measured_numbers_and_reads_back() {
        let machine = homenode_machine::preset("epyc-nps4").unwrap();
        let m = measured(&machine);
        let got = machine_file(&m, machine.clone());
        assert_eq!(got.topology.latency, machine.topology.latency, "what was measured is what is described");
        assert_eq!(got.source("latency"), SOURCE);
        let text = got.to_toml();
        let back = Machine::from_toml(&text, homenode_machine::MachineOrigin::File("x".into())).unwrap();
        assert_eq!(back.topology.latency, got.topology.latency);
        assert_eq!(back.topology.nodes, got.topology.nodes);
    }

    #[test]
    fn attributes_go_into_xml_and_replace_what_is_there() {
        let xml = include_str!("../../../fixtures/hwloc/hmat.xml");
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hwloc/hmat.xml");
        let machine = homenode_machine::host::from_xml_file(&path).unwrap();
        let m = measured(&machine);
        let out = memory_attributes(&m, xml);
        assert_eq!(out.matches("<memattr name=\"Latency\"").count(), 1, "{out}");
        // Two nodes with CPUs, three with memory.
        assert_eq!(out.matches("<memattr_value").count(), 12);
        let file = std::env::temp_dir().join(format!("homenode-attributes-{}.xml", std::process::id()));
        std::fs::write(&file, &out).unwrap();
        let back = homenode_machine::host::from_xml_file(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(back.topology.latency, machine.topology.latency);
    }

    #[test]
    fn a_cpuset_is_written_as_hwloc_writes_it() {
        assert_eq!(cpuset(&[CpuNumber(0), CpuNumber(3)]), "0x00000009");
        assert_eq!(cpuset(&[CpuNumber(33)]), "0x00000002,0x00000000");
    }
}
