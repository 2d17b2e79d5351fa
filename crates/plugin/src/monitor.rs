//! Caches, counts and modelled time, behind one lock.

use std::fmt::Write as _;

use homenode_cache::{Hierarchy, Line, Miss, Shape};
use homenode_model::{CpuId, LineNo, Ps, Topology};

use crate::config::Config;
use crate::count::Counts;
use crate::pending::Access;
use crate::place::Places;
use crate::process::Process;
use crate::translate::PAGE_SHIFT;

/// The kernel's number among the processes.
pub const KERNEL: u16 = 0;

/// What a CPU's accesses met behind the front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cpu {
    /// Main-memory accesses by cause ([`Miss`]).
    misses: [u64; 4],
    /// To the node of the CPU, to others, by number of the process.
    memory: Vec<[u64; 2]>,
    /// Cache and memory time.
    time: Ps,
}

/// The model.
#[derive(Debug)]
pub struct Monitor {
    machine: Topology,
    shape: Shape,
    places: Places,
    /// Time of the outer caches, summed from the second on, by level that answers.
    outer: Vec<Ps>,
    caches: Hierarchy<u64>,
    counts: Counts,
    cpus: Vec<Cpu>,
    /// Accesses that do not fit the caches' model.
    lost: u64,
}

/// Whom an access concerns beside the CPU that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nobody.
    Own,
    /// Other CPUs may have had the line.
    Others,
}

impl Monitor {
    /// The model of a machine, caches empty.
    ///
    /// # Errors
    /// Why its caches cannot be modelled.
    pub fn new(config: &Config) -> Result<Self, String> {
        let machine = config.machine.clone();
        let all: Vec<CpuId> = (0..machine.cpus.len() as u32).map(CpuId).collect();
        let shape = Shape::new(&machine, &all).map_err(|e| e.to_string())?;
        let places = Places::of(&machine, config.addresses, config.disk);
        let mut outer = vec![Ps(0)];
        for cache in &machine.caches[1..] {
            outer.push(Ps(outer.last().map_or(0, |p| p.0) + cache.hit.ps().0));
        }
        Ok(Self {
            caches: caches(&shape, &machine)?,
            counts: Counts::new(places.pages() as usize, machine.nodes.len()),
            cpus: vec![Cpu::default(); machine.cpus.len()],
            lost: 0,
            places,
            outer,
            shape,
            machine,
        })
    }

    /// Where things are in the guest's memory.
    pub const fn places(&self) -> &Places {
        &self.places
    }

    /// Other CPUs that share the first-level cache of this one.
    pub fn siblings(&self, cpu: usize) -> Vec<usize> {
        let of = self.shape.agent_of();
        (0..of.len()).filter(|i| *i != cpu && of[*i] == of[cpu]).collect()
    }

    /// CPUs.
    pub const fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Sets of the first level.
    pub fn sets(&self) -> u64 {
        self.machine.caches[0].sets()
    }

    /// log2 of the line size.
    pub const fn line_shift(&self) -> u32 {
        LineNo::SHIFT + self.shape.line_shift()
    }

    /// An access that the front does not answer.
    pub fn access(&mut self, cpu: usize, access: Access) -> Reach {
        let Ok(outcome) = self.caches.access(self.shape.agent_of()[cpu], Line(access.line), access.write)
        else {
            self.lost += 1;
            return Reach::Own;
        };
        let level = usize::from(outcome.level);
        let own = &mut self.cpus[cpu];
        let Some(miss) = outcome.miss else {
            own.time += self.outer.get(level).or(self.outer.last()).copied().unwrap_or_default();
            return if level < self.caches.private() { Reach::Own } else { Reach::Others };
        };
        let physical = access.line >> (PAGE_SHIFT - LineNo::SHIFT - self.shape.line_shift());
        let (node, home) = (self.machine.cpus[cpu], self.places.home(physical));
        own.misses[miss as usize] += 1;
        own.time += self.machine.latency.at(node, home).ps();
        let process = usize::from(access.process);
        if own.memory.len() <= process {
            own.memory.resize(process + 1, [0; 2]);
        }
        own.memory[process][usize::from(node != home)] += 1;
        if access.process != KERNEL && miss != Miss::Upgrade {
            self.counts.add(access.process, access.page, physical as usize, node.index(), access.write);
        }
        Reach::Others
    }

    /// Starts from nothing: empty caches, no counts.
    ///
    /// # Errors
    /// As [`Monitor::new`].
    pub fn restart(&mut self) -> Result<(), String> {
        self.caches = caches(&self.shape, &self.machine)?;
        self.counts.clear();
        self.cpus.fill(Cpu::default());
        self.lost = 0;
        Ok(())
    }

    /// A new interval begins.
    pub fn next_interval(&mut self) {
        self.counts.next_interval();
    }

    /// The result, as text. `accesses` are all accesses of each CPU by number of the process; `lost` those to places that are
    /// neither memory nor a device.
    pub fn result(&mut self, processes: &[Process], accesses: &[Vec<u64>], lost: u64) -> String {
        let mut out = String::from("homenode counts 2\n");
        let _ = writeln!(out, "lost {}", self.lost + lost);
        for (i, process) in processes.iter().enumerate() {
            let _ = writeln!(out, "process {} {} {}", i + 1, process.id, process.name);
        }
        for (i, (cpu, all)) in self.cpus.iter().zip(accesses).enumerate() {
            let [cold, capacity, coherence, upgrade] = cpu.misses;
            let time = cpu.time + Ps(self.machine.core.access.0.saturating_mul(all.iter().sum()));
            let _ = writeln!(out, "cpu {i} {cold} {capacity} {coherence} {upgrade} {}", time.0);
            for (process, n) in all.iter().enumerate().filter(|(_, n)| **n > 0) {
                let [local, remote] = cpu.memory.get(process).copied().unwrap_or_default();
                let _ = writeln!(out, "of {i} {process} {n} {local} {remote}");
            }
        }
        let places = self.places.clone();
        for (key, row) in self.counts.rows() {
            let home = places.home(key.physical);
            let _ =
                write!(out, "page {} {} {} {} {}", key.interval, key.process, key.page, key.physical, home.0);
            for [loads, stores] in row {
                let _ = write!(out, " {loads} {stores}");
            }
            out.push('\n');
        }
        out
    }
}

fn caches(shape: &Shape, machine: &Topology) -> Result<Hierarchy<u64>, String> {
    let bytes: u64 = machine.nodes.iter().map(|n| n.memory.0).sum();
    let chunk = (homenode_cache::directory::CHUNK as u64) << (LineNo::SHIFT + shape.line_shift());
    let chunks = u32::try_from(bytes / chunk + 1).map_err(|_| "too much memory")?;
    Hierarchy::new(shape, chunks).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monitor() -> Monitor {
        let text = "homenode monitor 3\naddresses 2097152\ncontrol 3\naccess 0\nnode 1048576\nnode 2097152\ncpu 0\ncpu 1\n\
                    latency 10 20\nlatency 20 10\ncache 2 32768 64 8 1 3\noutput x\n";
        Monitor::new(&Config::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn counts_say_who_and_where() {
        let mut m = monitor();
        let at = |offset: u64, write, process| Access { line: offset >> 6, write, page: 7, process };
        assert_eq!(m.access(1, at(4096, false, 1)), Reach::Others, "cold: others may be told");
        assert_eq!(m.access(1, at(4096, false, 1)), Reach::Own);
        m.access(0, at(4096, true, 1));
        m.access(0, at(1 << 20, true, KERNEL));
        let process = Process { id: 300, name: "a".into() };
        let text = m.result(&[process], &[vec![5, 1], vec![0, 2]], 1);
        let want = "homenode counts 2\nlost 1\nprocess 1 300 a\ncpu 0 2 0 0 0 30000\nof 0 0 5 0 1\nof 0 1 1 1 0\n\
                    cpu 1 1 0 0 0 20000\nof 1 1 2 0 1\npage 0 1 7 1 0 0 1 1 0\n";
        assert_eq!(text, want);
    }
}
