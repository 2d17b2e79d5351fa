//! Where memory is, asked of the kernel: before and after.

use std::collections::BTreeMap;
use std::fs;

use homenode_sys::numa::{self, PageStatus};
use homenode_sys::{HUGE, PAGE, Span, maps};

use super::trouble::Trouble;
use crate::axes::{CpuNumber, NodeNumber, PageSize};
use crate::cell::Proof;

/// Pages asked for at a time.
const BATCH: usize = 1 << 14;

/// What the kernel says of some memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub nodes: BTreeMap<NodeNumber, u64>,
    pub missing: u64,
    pub by: &'static str,
    pub huge: u64,
}

/// Asks where each page is, by `move_pages`, and where that is forbidden by `numa_maps`.
pub(super) fn look(span: Span) -> Result<Seen, Trouble> {
    let huge = huge_bytes(span);
    // All of a huge page is on one node.
    let step = if huge >= span.len() as u64 { HUGE } else { PAGE };
    match query(span, step) {
        Ok((nodes, missing)) => Ok(Seen { nodes, missing, by: "move_pages", huge }),
        Err(refused) => match fs::read_to_string("/proc/self/numa_maps").ok().and_then(|t| counted(&t, span))
        {
            Some(nodes) => {
                let pages: u64 = nodes.values().sum();
                let missing = (span.pages() as u64).saturating_sub(pages);
                Ok(Seen { nodes, missing, by: "numa_maps", huge })
            }
            None => Err(Trouble::forbidden(
                "nobody says where the memory is: numa_maps is not readable, and asking by move_pages",
                &refused,
            )),
        },
    }
}

fn query(span: Span, step: usize) -> homenode_sys::Result<(BTreeMap<NodeNumber, u64>, u64)> {
    let (mut nodes, mut missing) = (BTreeMap::new(), 0);
    let mut at = span.start;
    let mut pages = Vec::with_capacity(BATCH);
    let mut status = vec![PageStatus::UNKNOWN; BATCH];
    while at < span.end {
        pages.clear();
        while at < span.end && pages.len() < BATCH {
            pages.push(at);
            at += step;
        }
        numa::query(&pages, &mut status[..pages.len()])?;
        for s in &status[..pages.len()] {
            match s.node() {
                Some(node) => *nodes.entry(NodeNumber(node.0)).or_default() += 1,
                None => missing += 1,
            }
        }
    }
    Ok((nodes, missing))
}

/// Base pages by node of the mapping that starts where `span` does (`N0=12` in its line;
/// Documentation/filesystems/proc).
fn counted(numa_maps: &str, span: Span) -> Option<BTreeMap<NodeNumber, u64>> {
    let line = numa_maps.lines().find(|l| {
        let first = l.split_whitespace().next();
        first.and_then(|a| usize::from_str_radix(a, 16).ok()) == Some(span.start)
    })?;
    let words = line.split_whitespace().filter_map(|w| w.strip_prefix('N')?.split_once('='));
    Some(words.filter_map(|(n, pages)| Some((NodeNumber(n.parse().ok()?), pages.parse().ok()?))).collect())
}

/// How much of a block is in huge pages: by `PAGEMAP_SCAN`, before Linux 6.7 by `smaps`.
pub(super) fn huge_bytes(span: Span) -> u64 {
    let mut units = 0;
    if maps::huge_units(span, |_| units += 1).is_ok() {
        return units * HUGE as u64;
    }
    let mut huge = 0;
    // A block's mapping is its own; what tampering splits is added up.
    let _ = maps::each_with_flags(|s, flags| {
        if s.overlaps(span) {
            huge += flags.huge.0;
        }
        s.start < span.end
    });
    huge
}

/// A proof that is being made: the CPUs are read by the thread itself.
pub(super) fn begin(cpu: CpuNumber, node: NodeNumber, span: Span, before: &Seen) -> Proof {
    Proof {
        cpu: Some(cpu),
        node: Some(node),
        before: before.nodes.clone(),
        by: before.by.into(),
        bytes: span.len() as u64,
        huge: before.huge,
        ..Proof::default()
    }
}

/// What is wrong with where thread and memory were; `None`: nothing.
pub(super) fn wrong(proof: &Proof, missing: u64, page: PageSize) -> Option<String> {
    let node = proof.node?;
    if let Some(cpu) = proof.cpu
        && let Some(other) = proof.cpu_read.iter().find(|c| **c != cpu)
    {
        return Some(format!("the thread was bound to {cpu} and ran on {other}"));
    }
    let first = proof.came_from.unwrap_or(node);
    for (when, node, nodes) in [("before", first, &proof.before), ("after", node, &proof.after)] {
        let astray: u64 = nodes.iter().filter(|(n, _)| **n != node).map(|(_, pages)| pages).sum();
        let all: u64 = nodes.values().sum();
        if astray > 0 {
            let where_ = nodes.keys().filter(|n| **n != node).map(ToString::to_string).collect::<Vec<_>>();
            return Some(format!(
                "{when} measuring, {astray} of {all} pages were on {} instead of {node}",
                where_.join(", ")
            ));
        }
        if all == 0 {
            return Some(format!("{when} measuring, no page was on {node}"));
        }
    }
    if missing > 0 {
        return Some(format!("{missing} pages were not in memory"));
    }
    let mib = |b: u64| b >> 20;
    match page {
        PageSize::Huge if proof.huge < proof.bytes => Some(format!(
            "{} of {} MiB came in huge pages; 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled', and \
             'echo 1 > /proc/sys/vm/compact_memory' where memory is fragmented",
            mib(proof.huge),
            mib(proof.bytes)
        )),
        PageSize::Small if proof.huge > 0 => Some(format!(
            "{} of {} MiB came in huge pages though small ones were asked for",
            mib(proof.huge),
            mib(proof.bytes)
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Proof {
        let on = |n| BTreeMap::from([(NodeNumber(n), 512)]);
        Proof {
            cpu: Some(CpuNumber(3)),
            cpu_read: vec![CpuNumber(3), CpuNumber(3)],
            node: Some(NodeNumber(1)),
            came_from: None,
            before: on(1),
            after: on(1),
            by: "move_pages".into(),
            bytes: 2 << 20,
            huge: 0,
        }
    }

    #[test]
    fn each_thing_that_is_wrong_is_found() {
        let small = PageSize::Small;
        assert_eq!(wrong(&good(), 0, small), None);
        let say = |p: &Proof, page| wrong(p, 0, page).unwrap();
        let p = Proof { cpu_read: vec![CpuNumber(3), CpuNumber(4)], ..good() };
        assert_eq!(say(&p, small), "the thread was bound to CPU 3 and ran on CPU 4");
        let p = Proof { before: BTreeMap::from([(NodeNumber(0), 512)]), ..good() };
        assert_eq!(say(&p, small), "before measuring, 512 of 512 pages were on node 0 instead of node 1");
        let p = Proof { after: BTreeMap::from([(NodeNumber(0), 1), (NodeNumber(1), 511)]), ..good() };
        assert_eq!(say(&p, small), "after measuring, 1 of 512 pages were on node 0 instead of node 1");
        let p = Proof {
            came_from: Some(NodeNumber(0)),
            before: BTreeMap::from([(NodeNumber(0), 512)]),
            ..good()
        };
        assert_eq!(wrong(&p, 0, small), None, "they came over");
        let p = Proof { came_from: Some(NodeNumber(0)), ..good() };
        assert_eq!(say(&p, small), "before measuring, 512 of 512 pages were on node 1 instead of node 0");
        let p = Proof { after: BTreeMap::new(), ..good() };
        assert_eq!(say(&p, small), "after measuring, no page was on node 1");
        assert_eq!(wrong(&good(), 2, small).unwrap(), "2 pages were not in memory");
        assert!(say(&good(), PageSize::Huge).starts_with("0 of 2 MiB came in huge pages"));
        assert!(say(&Proof { huge: 2 << 20, ..good() }, small).contains("though small ones"));
    }

    #[test]
    fn a_line_of_numa_maps_is_counted() {
        let text = "5000 default file=/bin/x mapped=1 N0=1\n7f00 bind:1 anon=512 dirty=512 N0=2 N1=510 kernelpagesize_kB=4";
        let nodes = counted(text, Span::new(0x7f00, 1 << 21)).unwrap();
        assert_eq!(nodes, BTreeMap::from([(NodeNumber(0), 2), (NodeNumber(1), 510)]));
        assert_eq!(counted(text, Span::new(0x7f01, 1)), None);
    }
}
