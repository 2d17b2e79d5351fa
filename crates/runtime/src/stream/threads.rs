//! Where the program's threads run, asked from the kernel from time to time.
//!
//! A look reads two small files a thread. The time between two looks is at least [`RARELY`] times
//! as long as a look takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use homenode_model::{CpuId, NodeId, Ns};
use homenode_sys::call;
use homenode_wire::facts::ThreadNodes as Seen;
use homenode_wire::live::{LiveRecord, ThreadNo};

/// Looks take at most one part in this many of the time.
const RARELY: u64 = 1000;
/// The shortest time between two looks.
const SOONEST: Ns = Ns(20_000_000);
/// Threads that are followed.
const MOST: usize = 1024;
/// The highest number of a CPU in a list of CPUs.
const MOST_CPUS: u32 = 1 << 16;

/// A thread's stay on a CPU, since a time.
#[derive(Clone, Copy, Debug)]
struct Stay {
    number: ThreadNo,
    cpu: u32,
    from: Ns,
    seen: Ns,
    bound: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Threads {
    node_of: Vec<Option<NodeId>>,
    stays: BTreeMap<u32, Stay>,
    next: u32,
    due: Ns,
}

impl Threads {
    /// The nodes of CPUs.
    pub fn know(&mut self, node_of: Vec<Option<NodeId>>) {
        self.node_of = node_of;
    }

    fn record(&self, stay: &Stay) -> Option<LiveRecord> {
        let node = self.node_of.get(stay.cpu as usize).copied().flatten()?;
        Some(LiveRecord::Thread {
            thread: stay.number,
            cpu: CpuId(stay.cpu),
            node,
            from: stay.from,
            to: stay.seen,
            bound: stay.bound,
        })
    }

    /// The number of the thread that the kernel calls `id`. A thread that is new runs on `cpu` at
    /// `time`. Threads beyond the bound share the last number.
    pub fn number(&mut self, id: u32, cpu: u32, time: Ns) -> ThreadNo {
        if self.stays.is_empty() && id != std::process::id() {
            // Number 0 is the process's first thread.
            self.number(std::process::id(), cpu, time);
        }
        let (next, many) = (ThreadNo(self.next), self.stays.len() >= MOST);
        let fresh = Stay { number: next, cpu, from: time, seen: time, bound: false };
        match self.stays.get(&id) {
            Some(stay) => stay.number,
            None if many => ThreadNo(self.next.saturating_sub(1)),
            None => {
                self.stays.insert(id, fresh);
                self.next += 1;
                next
            }
        }
    }

    /// Looks where the threads are. Returns the stays that have ended.
    pub fn look(&mut self, time: Ns) -> Vec<LiveRecord> {
        if time < self.due || self.node_of.is_empty() {
            return Vec::new();
        }
        let begin = call::thread_time();
        let mut ended = Vec::new();
        for id in tasks() {
            let Some((cpu, allowed)) = place(id) else { continue };
            let bound = is_of_one_node(&allowed, |cpu| self.node_of.get(cpu as usize).copied().flatten());
            let fresh = |number| Stay { number, cpu, from: time, seen: time, bound };
            let many = self.stays.len() >= MOST;
            match self.stays.get_mut(&id) {
                Some(stay) if (stay.cpu, stay.bound) == (cpu, bound) => stay.seen = time,
                Some(stay) => {
                    stay.seen = time;
                    let old = *stay;
                    *stay = fresh(old.number);
                    ended.push(old);
                }
                None if !many => {
                    self.stays.insert(id, fresh(ThreadNo(self.next)));
                    self.next += 1;
                }
                None => {}
            }
        }
        let took = Ns(call::thread_time().0.saturating_sub(begin.0));
        self.due = time + took.times(RARELY).max(SOONEST);
        ended.iter().filter_map(|stay| self.record(stay)).collect()
    }

    /// Returns the stays that last until the program's end.
    pub fn end(&mut self, time: Ns) -> Vec<LiveRecord> {
        let mut all = self.look(time.max(self.due));
        let stays = std::mem::take(&mut self.stays);
        all.extend(stays.values().filter_map(|s| self.record(&Stay { seen: s.seen.max(s.from), ..*s })));
        all
    }
}

/// The nodes on which threads were seen, for the report. Samples are at least [`SOONEST`] apart.
#[derive(Debug, Default)]
pub struct SeenOn {
    threads: BTreeMap<u32, Looks>,
    due: Ns,
}

/// The looks at one thread.
#[derive(Clone, Debug, Default)]
struct Looks {
    /// Number of looks by node.
    nodes: BTreeMap<NodeId, u64>,
    /// Whether the thread was bound to CPUs of one node at the last look.
    bound: bool,
}

/// A thread changes nodes if at least one in this many looks finds it elsewhere than most looks do.
const ELSEWHERE: u64 = 20;
/// Least time between looks if all threads are bound.
const BOUND: Ns = Ns(500_000_000);

impl Looks {
    /// The node of most looks; among equals the first.
    fn node(&self) -> Option<NodeId> {
        self.nodes
            .iter()
            .max_by_key(|(node, looks)| (**looks, std::cmp::Reverse(**node)))
            .map(|(node, _)| *node)
    }

    fn changes(&self) -> bool {
        let all: u64 = self.nodes.values().sum();
        let most = self.nodes.values().max().copied().unwrap_or(0);
        !self.bound && (all - most) * ELSEWHERE >= all && all > most
    }
}

impl SeenOn {
    /// Whether it is time for a look.
    pub fn is_due(&self, now: Ns) -> bool {
        now >= self.due
    }

    /// A look has ended, which took this much CPU time.
    pub fn looked(&mut self, now: Ns, took: Ns) {
        let soonest = if self.threads.values().all(|t| t.bound) { BOUND } else { SOONEST };
        self.due = now + took.times(RARELY).max(soonest);
    }

    /// A look has found this thread on this node.
    pub fn saw(&mut self, id: u32, node: NodeId, bound: bool) {
        if self.threads.len() < MOST || self.threads.contains_key(&id) {
            let looks = self.threads.entry(id).or_default();
            *looks.nodes.entry(node).or_default() += 1;
            looks.bound = bound;
        }
    }

    /// Whether some thread changes nodes.
    pub fn any_changes(&self) -> bool {
        self.threads.values().any(Looks::changes)
    }

    /// For the closing report.
    pub fn told(&self) -> Seen {
        let count = |f: fn(&Looks) -> bool| self.threads.values().filter(|t| f(t)).count() as u64;
        Seen {
            threads: self.threads.len() as u64,
            unbound: count(|t| !t.bound),
            changed_nodes: count(Looks::changes),
            nodes: self.threads.values().filter_map(Looks::node).collect::<BTreeSet<_>>().len() as u64,
            looks: self.threads.values().flat_map(|t| t.nodes.values()).sum(),
        }
    }
}

/// Reports the program's threads: number, the CPU that the thread ran on last, whether it may run
/// on CPUs of one node only.
pub fn each(node_of: &dyn Fn(u32) -> Option<NodeId>, tell: &mut dyn FnMut(u32, u32, bool)) {
    for id in tasks() {
        if let Some((cpu, allowed)) = place(id) {
            tell(id, cpu, is_of_one_node(&allowed, node_of));
        }
    }
}

/// Whether all CPUs of a list such as `0-3,64-67` that have a node have the same one.
fn is_of_one_node(list: &str, node_of: impl Fn(u32) -> Option<NodeId>) -> bool {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?.min(MOST_CPUS))
    };
    let mut nodes = list.split(',').filter_map(|part| range(part.trim())).flatten().filter_map(node_of);
    nodes.next().is_some_and(|first| nodes.all(|node| node == first))
}

/// The threads of this process, without homenode's own.
fn tasks() -> Vec<u32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut all: Vec<u32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).take(MOST).collect();
    all.sort_unstable();
    all
}

/// The CPU that a thread ran on last, and the list of the CPUs that it may run on. `None`: the
/// thread has ended, or is homenode's own.
fn place(id: u32) -> Option<(u32, String)> {
    let stat = fs::read_to_string(format!("/proc/self/task/{id}/stat")).ok()?;
    let (name, rest) = stat.rsplit_once(')')?;
    if name.contains("(homenode") {
        return None;
    }
    // The state is field 3, the CPU field 39.
    let cpu = rest.split_whitespace().nth(36)?.parse().ok()?;
    let status = fs::read_to_string(format!("/proc/self/task/{id}/status")).ok()?;
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.trim();
    Some((cpu, list.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_found_elsewhere_now_and_then_changes_nodes() {
        let mut seen = SeenOn::default();
        for look in 0..40 {
            // Thread 1 stays, thread 2 was elsewhere once, thread 3 every tenth time, thread 4 is
            // bound from then on.
            let at = |away: bool| NodeId(u16::from(away));
            seen.saw(1, at(false), false);
            seen.saw(2, at(look == 7), false);
            seen.saw(3, at(look % 10 == 7), false);
            seen.saw(4, at(look < 3), look > 3);
        }
        let told = seen.told();
        assert_eq!((told.threads, told.unbound, told.changed_nodes, told.looks), (4, 3, 1, 160));
        assert_eq!(told.nodes, 1, "thread 4 was elsewhere three times");
        assert!(seen.any_changes());
        seen.threads.remove(&3);
        assert!(!seen.any_changes() && seen.is_due(Ns(1)));
    }

    #[test]
    fn a_thread_is_bound_if_all_its_cpus_are_of_one_node() {
        // CPUs 0 to 3 and their siblings 8 to 11 are of node 0, the other eight of node 1.
        let node_of = |cpu: u32| (cpu < 16).then_some(NodeId((cpu % 8 / 4) as u16));
        for (list, bound) in [
            ("5", true),
            ("0,8", true),
            ("0-3,8-11", true),
            ("0-15", false),
            ("3-4", false),
            ("0,12", false),
            // CPU 16 has no node.
            ("1,16", true),
            ("16", false),
            ("", false),
            ("0-4294967295", false),
        ] {
            assert_eq!(is_of_one_node(list, node_of), bound, "{list}");
        }
    }

    #[test]
    fn this_process_has_threads_on_cpus() {
        let mut threads = Threads::default();
        threads.know(vec![Some(NodeId(0)); 4096]);
        assert!(threads.look(Ns(1)).is_empty(), "nobody has left a CPU yet");
        let stays = threads.end(Ns(100_000_000));
        assert!(!stays.is_empty());
        let is_stay = |r: &LiveRecord| matches!(r, LiveRecord::Thread { node: NodeId(0), from: Ns(1), .. });
        assert!(stays.iter().any(is_stay), "{stays:?}");
    }
}
