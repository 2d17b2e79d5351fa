//! What the kernel tells of a running program: where its pages live and where its threads run.
//!
//! To read `numa_maps` the kernel walks the page tables, which takes a millisecond a gigabyte and
//! holds up whoever maps memory meanwhile. So it is read at times that double: a run of 100 seconds
//! is looked at ten times.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Time before the first look.
const FIRST: Duration = Duration::from_millis(100);

/// What was seen of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedRun {
    /// Pages by node at the last look, in kilobytes.
    pub kilobytes: BTreeMap<u16, u64>,
    /// Nodes that each thread was seen on.
    pub threads: BTreeMap<u32, BTreeSet<u16>>,
}

impl ObservedRun {
    /// Looks at the process and what it has become until `ended` tells of its end.
    pub fn of(process: u32, nodes: &[u16], ended: &Receiver<()>) -> Self {
        let mut seen = Self::default();
        let mut wait = FIRST;
        while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            seen.look(innermost(process), nodes);
            wait *= 2;
        }
        seen
    }

    fn look(&mut self, process: u32, nodes: &[u16]) {
        if let Ok(maps) = fs::read_to_string(format!("/proc/{process}/numa_maps")) {
            let now = kilobytes(&maps);
            if !now.is_empty() {
                self.kilobytes = now;
            }
        }
        for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let id = thread.file_name().to_string_lossy().parse().ok();
            let stat = fs::read_to_string(thread.path().join("stat")).ok();
            let cpu = stat.as_deref().and_then(cpu);
            if let (Some(id), Some(cpu)) = (id, cpu) {
                let node = nodes.get(cpu).copied().unwrap_or(0);
                self.threads.entry(id).or_default().insert(node);
            }
        }
    }

    /// Threads that were seen on several nodes.
    pub fn changed(&self) -> usize {
        self.threads.values().filter(|nodes| nodes.len() > 1).count()
    }

    /// Percent of the pages on each of the nodes that have some: `0:50 1:50`.
    pub fn homes(&self) -> Option<String> {
        let all: u64 = self.kilobytes.values().sum();
        let percent = |kilobytes: u64| (kilobytes as f64 / all as f64 * 100.0).round();
        let parts = self.kilobytes.iter().map(|(node, k)| format!("{node}:{}", percent(*k)));
        (all > 0).then(|| parts.collect::<Vec<_>>().join(" "))
    }
}

/// The program behind `homenode run`, which starts it as its only child; else the process itself.
fn innermost(process: u32) -> u32 {
    let mut process = process;
    for _ in 0..4 {
        let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
        match children.ok().and_then(|all| all.split_whitespace().next()?.parse().ok()) {
            Some(child) => process = child,
            None => break,
        }
    }
    process
}

/// The CPU in a thread's `stat`: field 39, counted behind the name in parentheses.
fn cpu(stat: &str) -> Option<usize> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

/// Private pages by node, in kilobytes: files of libraries are nobody's data.
fn kilobytes(maps: &str) -> BTreeMap<u16, u64> {
    let mut all = BTreeMap::new();
    for line in maps.lines().filter(|line| line.contains(" anon=")) {
        let words = || line.split_whitespace().filter_map(|word| word.split_once('='));
        let page = words().find(|(key, _)| *key == "kernelpagesize_kB");
        let page: u64 = page.and_then(|(_, kilobytes)| kilobytes.parse().ok()).unwrap_or(4);
        for (key, pages) in words() {
            let node = key.strip_prefix('N').and_then(|n| n.parse::<u16>().ok());
            if let (Some(node), Ok(pages)) = (node, pages.parse::<u64>()) {
                *all.entry(node).or_default() += pages.saturating_mul(page);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_pages_count_by_node() {
        let maps = "\
55d0 default file=/bin/app mapped=3 N0=3 kernelpagesize_kB=4
55d1 default heap anon=4 dirty=4 N0=1 N1=3 kernelpagesize_kB=4
7f00 default anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
";
        assert_eq!(kilobytes(maps), BTreeMap::from([(0, 4), (1, 4108)]));
        let seen = ObservedRun { kilobytes: BTreeMap::from([(0, 25), (1, 75)]), ..ObservedRun::default() };
        assert_eq!(seen.homes().as_deref(), Some("0:25 1:75"));
        assert_eq!(ObservedRun::default().homes(), None);
    }

    #[test]
    fn a_cpu_is_found_behind_any_name() {
        let fields: Vec<String> = (3..=52).map(|n| n.to_string()).collect();
        let stat = format!("77 (a (b) c) {}", fields.join(" "));
        assert_eq!(cpu(&stat), Some(39));
        assert_eq!(cpu("77 (short) S 1"), None);
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        assert!(cpu(&own).is_some());
    }
}
