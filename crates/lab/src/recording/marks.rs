//! Reads the marks that a process of the program wrote, with times since the program's start.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use homenode_log::Mark;
use homenode_log::file::{LogReader, MARKS};
use homenode_log::recording::{Meta, Module, Recording};
use homenode_model::Ns;

use crate::guest::STARTED;

/// A thread of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessThread {
    /// Lowest address of its stack and one past the highest.
    pub stack: Option<(u64, u64)>,
    /// Each stay: CPU, begin, end.
    pub stays: Vec<(u32, Ns, Ns)>,
}

impl ProcessThread {
    /// Its first and last mark.
    pub fn lived(&self) -> Option<(Ns, Ns)> {
        Some((self.stays.first()?.1, self.stays.last()?.2))
    }

    fn is_on(&mut self, cpu: u32, now: Ns) {
        if let Some((at, _, until)) = self.stays.last_mut() {
            *until = now.max(*until);
            if *at == cpu {
                return;
            }
        }
        self.stays.push((cpu, now, now));
    }
}

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationMark {
    /// First byte.
    pub address: u64,
    /// Length.
    pub bytes: u64,
    /// Return address of the allocating call; 0: not known.
    pub site: u64,
    /// Return address of the function with that call; 0: not known.
    pub caller: u64,
}

/// An allocation, or the end of one, in the order of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationChange {
    /// Memory was allocated.
    Birth(AllocationMark),
    /// The memory at this address was freed.
    Death(u64),
}

/// An execution of a parallel region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRun {
    /// Where in the program: the outlined function, or the return address of the fork.
    pub pc: u64,
    /// When it began.
    pub begin: Ns,
    /// When it ended.
    pub end: Ns,
}

/// The marks of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessMarks {
    /// Its number in the guest.
    pub process: u32,
    /// Index of this program among those that the process executed.
    pub program: u32,
    /// Its files.
    pub modules: Vec<Module>,
    /// Its threads, in the order in which they began.
    pub threads: Vec<ProcessThread>,
    /// Allocations and their ends, in order, each with its time.
    pub changes: Vec<(Ns, AllocationChange)>,
    /// Executions of regions, by their end.
    pub regions: Vec<RegionRun>,
    /// Calls of `hn_iteration`.
    pub iterations: Vec<Ns>,
    /// Problems while reading.
    pub trouble: Vec<String>,
}

/// Reads the marks of all processes in `folder`, by number.
pub fn read(folder: &Path) -> Vec<ProcessMarks> {
    let started = fs::read_to_string(folder.join(STARTED)).ok().and_then(|t| t.trim().parse().ok());
    let mut processes: Vec<(u32, u32)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let numbers = name.split_once('.').and_then(|(id, n)| Some((id.parse().ok()?, n.parse().ok()?)));
        processes.extend(numbers);
    }
    processes.sort_unstable();
    let one = |(process, program): (u32, u32)| {
        let path = folder.join(format!("{process}.{program}"));
        ProcessMarks { process, program, ..one(&path, started.unwrap_or(0)) }
    };
    processes.into_iter().map(one).collect()
}

/// Reads one process. `zero`: time of the program's start.
fn one(path: &Path, zero: u64) -> ProcessMarks {
    let meta = Meta {
        format: homenode_log::VERSION,
        homenode: String::new(),
        kind: String::new(),
        command: Vec::new(),
        environment: BTreeMap::new(),
        filter_lines: 0,
        rank: None,
        ended: None,
    };
    let recording = Recording { path: path.to_owned(), meta, damage: None };
    let mut process = ProcessMarks { modules: recording.modules(), ..ProcessMarks::default() };
    let mut changes = Vec::new();
    match recording.logs() {
        Ok(logs) => {
            for log in logs {
                let mut reader =
                    Reader { zero, now: Ns(0), thread: ProcessThread::default(), open: BTreeMap::new() };
                let read = LogReader::open(&log).map_err(|e| e.to_string()).and_then(|log| {
                    let mut log = log.only(MARKS);
                    while let Some(mark) = log.next_mark().map_err(|e| e.to_string())? {
                        reader.mark(mark, &mut process, &mut changes);
                    }
                    Ok(())
                });
                process.trouble.extend(read.err());
                process.threads.push(reader.thread);
            }
        }
        Err(e) => process.trouble.push(e.to_string()),
    }
    changes.sort_by_key(|(order, ..)| *order);
    process.changes = changes.into_iter().map(|(_, time, change)| (time, change)).collect();
    process.regions.sort_by_key(|r| (r.end, r.begin, r.pc));
    process.iterations.sort_unstable();
    process
}

/// A thread's log.
struct Reader {
    zero: u64,
    now: Ns,
    thread: ProcessThread,
    /// Regions that it has begun: place and time, by instance.
    open: BTreeMap<u64, (u64, Ns)>,
}

impl Reader {
    fn mark(
        &mut self,
        mark: Mark,
        process: &mut ProcessMarks,
        changes: &mut Vec<(u64, Ns, AllocationChange)>,
    ) {
        let now = self.now;
        match mark {
            Mark::Clock { ns, cpu } => {
                self.now = Ns(ns.saturating_sub(self.zero));
                self.thread.is_on(u32::try_from(cpu).unwrap_or(u32::MAX), self.now);
            }
            Mark::ThreadStart { stack_low, stack_high, .. } if stack_low < stack_high => {
                self.thread.stack = Some((stack_low, stack_high));
            }
            Mark::Alloc { address, bytes, site, caller, order } => {
                changes.push((
                    order,
                    now,
                    AllocationChange::Birth(AllocationMark { address, bytes, site, caller }),
                ));
            }
            Mark::Free { address, order } => changes.push((order, now, AllocationChange::Death(address))),
            Mark::RegionFork { instance, pc } => drop(self.open.insert(instance, (pc, now))),
            Mark::RegionJoin { instance } => {
                let run = self.open.remove(&instance);
                process.regions.extend(run.map(|(pc, begin)| RegionRun { pc, begin, end: now.max(begin) }));
            }
            Mark::Iteration { .. } => process.iterations.push(now),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_the_time_of_the_clock_before_them() {
        let mut process = ProcessMarks::default();
        let mut changes = Vec::new();
        let mut reader =
            Reader { zero: 100, now: Ns(0), thread: ProcessThread::default(), open: BTreeMap::new() };
        let clock = |ns, cpu| Mark::Clock { ns, cpu };
        let birth = Mark::Alloc { address: 1, bytes: 2, site: 3, caller: 4, order: 1 };
        for mark in [
            Mark::ThreadStart { id: 0, stack_low: 10, stack_high: 20 },
            clock(105, 2),
            birth,
            clock(110, 2),
            Mark::RegionFork { instance: 1, pc: 77 },
            clock(130, 1),
            Mark::RegionJoin { instance: 1 },
            Mark::RegionJoin { instance: 9 },
            Mark::Iteration { number: 0, order: 2 },
            Mark::Free { address: 1, order: 3 },
            clock(90, 1),
        ] {
            reader.mark(mark, &mut process, &mut changes);
        }
        assert_eq!(reader.thread.stack, Some((10, 20)));
        assert_eq!(reader.thread.stays, [(2, Ns(5), Ns(30)), (1, Ns(30), Ns(30))]);
        assert_eq!(process.regions, [RegionRun { pc: 77, begin: Ns(10), end: Ns(30) }]);
        assert_eq!(process.iterations, [Ns(30)]);
        let times: Vec<_> = changes.iter().map(|(order, time, _)| (*order, *time)).collect();
        assert_eq!(times, [(1, Ns(5)), (3, Ns(30))]);
    }
}
