//! Where the program's threads run, as the kernel tells it from time to time.
//!
//! A look reads two small files a thread. The time between two looks is at least [`RARELY`] times
//! what a look takes.

use std::collections::BTreeMap;
use std::fs;

use homenode_model::{CpuId, NodeId, Ns};
use homenode_sys::call;
use homenode_wire::live::{Live, ThreadNo};

/// Looks take at most one part in so many of the time.
const RARELY: u64 = 1000;
/// The shortest time between two looks.
const SOONEST: Ns = Ns(20_000_000);
/// Threads that are followed.
const MOST: usize = 1024;

/// Where a thread is since when.
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

    fn record(&self, stay: &Stay) -> Option<Live> {
        let node = self.node_of.get(stay.cpu as usize).copied().flatten()?;
        Some(Live::Thread {
            thread: stay.number,
            cpu: CpuId(stay.cpu),
            node,
            from: stay.from,
            to: stay.seen,
            bound: stay.bound,
        })
    }

    /// Looks where the threads are. The stays that have ended.
    pub fn look(&mut self, time: Ns) -> Vec<Live> {
        if time < self.due || self.node_of.is_empty() {
            return Vec::new();
        }
        let begin = call::thread_time();
        let mut ended = Vec::new();
        for id in tasks() {
            let Some((cpu, bound)) = place(id) else { continue };
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

    /// The stays that were going on when the program ended.
    pub fn end(&mut self, time: Ns) -> Vec<Live> {
        let mut all = self.look(time.max(self.due));
        let stays = std::mem::take(&mut self.stays);
        all.extend(stays.values().filter_map(|s| self.record(&Stay { seen: s.seen.max(s.from), ..*s })));
        all
    }
}

/// The threads of this process but homenode's own.
fn tasks() -> Vec<u32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut all: Vec<u32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).take(MOST).collect();
    all.sort_unstable();
    all
}

/// The CPU that a thread ran on last, and whether it may run on that one only. `None`: it is gone,
/// or it is homenode's own.
fn place(id: u32) -> Option<(u32, bool)> {
    let stat = fs::read_to_string(format!("/proc/self/task/{id}/stat")).ok()?;
    let (name, rest) = stat.rsplit_once(')')?;
    if name.contains("(homenode") {
        return None;
    }
    // The state is field 3, the CPU field 39.
    let cpu = rest.split_whitespace().nth(36)?.parse().ok()?;
    let status = fs::read_to_string(format!("/proc/self/task/{id}/status")).ok()?;
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.trim();
    Some((cpu, list.parse::<u32>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_threads_on_cpus() {
        let mut threads = Threads::default();
        threads.know(vec![Some(NodeId(0)); 4096]);
        assert!(threads.look(Ns(1)).is_empty(), "nobody has left a CPU yet");
        let stays = threads.end(Ns(100_000_000));
        assert!(!stays.is_empty());
        let is_stay = |r: &Live| matches!(r, Live::Thread { node: NodeId(0), from: Ns(1), .. });
        assert!(stays.iter().any(is_stay), "{stays:?}");
    }
}
