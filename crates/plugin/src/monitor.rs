//! Caches, counts and modelled time, behind one lock.

use std::fmt::Write as _;

use homenode_cache::{Hierarchy, Line, Miss, Shape};
use homenode_model::{CpuId, LineNo, Ps, Topology};

use crate::config::Config;
use crate::contention::{Contention, Traffic};
use crate::count::Counts;
use crate::front::Front;
use crate::pending::Access;
use crate::place::Places;
use crate::process::Process;
use crate::translate::PAGE_SHIFT;

/// The kernel's number among the processes.
pub const KERNEL: u16 = 0;

/// All accesses of each CPU by number of the process, since QEMU started.
pub type Accesses = Vec<Vec<u64>>;

/// What a CPU's accesses met behind the front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cpu {
    /// Main-memory accesses by cause ([`Miss`]).
    misses: [u64; 4],
    /// To the node of the CPU, to others, by number of the process.
    memory: Vec<[u64; 2]>,
    /// Cache and memory time of this interval.
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
    /// What was moved in this interval.
    traffic: Traffic,
    contention: Contention,
    /// Accesses before the beginning, and before this interval.
    before: Accesses,
    before_interval: Vec<u64>,
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
            traffic: Traffic::new(&machine),
            contention: Contention::new(&machine),
            before: vec![Vec::new(); machine.cpus.len()],
            before_interval: vec![0; machine.cpus.len()],
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

    /// A front for this CPU.
    pub fn front(&self, cpu: usize) -> Front {
        let first = &self.machine.caches[0];
        Front::new(first.sets(), first.ways, self.siblings(cpu).is_empty())
    }

    /// log2 of the line size.
    pub const fn line_shift(&self) -> u32 {
        LineNo::SHIFT + self.shape.line_shift()
    }

    /// An access that the front does not answer.
    pub fn access(&mut self, cpu: usize, access: Access) -> Reach {
        let agent = self.shape.agent_of()[cpu];
        if let Some(room) = access.room {
            self.caches.makes_room(agent, room);
        }
        let Ok(outcome) = self.caches.access(agent, Line(access.line), access.write) else {
            self.lost += 1;
            return Reach::Own;
        };
        let lines_of_page = PAGE_SHIFT - self.line_shift();
        if outcome.write_backs > 0 {
            for line in self.caches.write_backs() {
                self.traffic.stored(cpu, self.places.home(line.0 >> lines_of_page));
            }
        }
        let level = usize::from(outcome.level);
        let own = &mut self.cpus[cpu];
        let Some(miss) = outcome.miss else {
            own.time += self.outer.get(level).or(self.outer.last()).copied().unwrap_or_default();
            return if level < self.caches.private() { Reach::Own } else { Reach::Others };
        };
        let physical = access.line >> lines_of_page;
        let (node, home) = (self.machine.cpus[cpu], self.places.home(physical));
        own.misses[miss as usize] += 1;
        own.time += self.machine.latency.at(node, home).ps();
        let process = usize::from(access.process);
        if own.memory.len() <= process {
            own.memory.resize(process + 1, [0; 2]);
        }
        own.memory[process][usize::from(node != home)] += 1;
        if miss != Miss::Upgrade {
            self.traffic.fetched(cpu, home);
            if access.process != KERNEL {
                self.counts.add(access.process, access.page, physical as usize, node.index(), access.write);
            }
        }
        Reach::Others
    }

    /// Starts from nothing: empty caches, no counts. `accesses` are those made before.
    ///
    /// # Errors
    /// As [`Monitor::new`].
    pub fn restart(&mut self, accesses: Accesses) -> Result<(), String> {
        self.caches = caches(&self.shape, &self.machine)?;
        self.counts.clear();
        self.cpus.fill(Cpu::default());
        self.traffic.clear();
        self.contention = Contention::new(&self.machine);
        self.before_interval = accesses.iter().map(|of| of.iter().sum()).collect();
        self.before = accesses;
        self.lost = 0;
        Ok(())
    }

    /// A new interval begins.
    pub fn next_interval(&mut self, accesses: &Accesses) {
        self.counts.next_interval();
        self.close_interval(accesses);
    }

    fn close_interval(&mut self, accesses: &Accesses) {
        let access = self.machine.core.access.0;
        let mut times = Vec::new();
        for ((cpu, all), before) in self.cpus.iter_mut().zip(accesses).zip(&mut self.before_interval) {
            let sum = all.iter().sum();
            let made = sum - std::mem::replace(before, sum);
            times.push(std::mem::take(&mut cpu.time) + Ps(access.saturating_mul(made)));
        }
        self.contention.add(&times, &self.traffic);
        self.traffic.clear();
    }

    /// The result, as text. `lost` are accesses to places that are neither memory nor a device.
    pub fn result(&mut self, processes: &[Process], accesses: &Accesses, lost: u64) -> String {
        self.close_interval(accesses);
        let mut out = String::from("homenode counts 3\n");
        let _ = writeln!(out, "lost {}", self.lost + lost);
        for (i, process) in processes.iter().enumerate() {
            let _ = writeln!(out, "process {} {} {}", i + 1, process.id, process.name);
        }
        for (i, (cpu, all)) in self.cpus.iter().zip(accesses).enumerate() {
            let [cold, capacity, coherence, upgrade] = cpu.misses;
            let [alone, time] = self.contention.times(i);
            let _ = writeln!(out, "cpu {i} {cold} {capacity} {coherence} {upgrade} {} {}", alone.0, time.0);
            for (process, n) in all.iter().enumerate() {
                let n = n - self.before[i].get(process).copied().unwrap_or_default();
                if n > 0 {
                    let [local, remote] = cpu.memory.get(process).copied().unwrap_or_default();
                    let _ = writeln!(out, "of {i} {process} {n} {local} {remote}");
                }
            }
        }
        self.contention.write(&mut out);
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

    /// Two nodes with a CPU each; node 0's memory gives a line a microsecond.
    fn monitor() -> Monitor {
        let text = "homenode monitor 4\naddresses 2097152\ncontrol 3\naccess 0\nnode 1048576 64 0\nnode 2097152 0 0\n\
                    cpu 0\ncpu 1\nlatency 10 20\nlatency 20 10\nlink 0 0\nlink 0 0\ncache 2 32768 64 8 1 3\noutput x\n";
        Monitor::new(&Config::parse(text).unwrap()).unwrap()
    }

    fn at(offset: u64, write: bool, process: u16) -> Access {
        Access { line: offset >> 6, write, page: 7, process, room: None }
    }

    #[test]
    fn counts_say_who_and_where() {
        let mut m = monitor();
        m.restart(vec![vec![70, 70], vec![70]]).unwrap();
        assert_eq!(m.access(1, at(4096, false, 1)), Reach::Others, "cold: others may be told");
        assert_eq!(m.access(1, at(4096, false, 1)), Reach::Own);
        m.access(0, at(4096, true, 1));
        m.access(0, at(1 << 20, true, KERNEL));
        let process = Process { id: 300, name: "a".into() };
        let text = m.result(&[process], &vec![vec![75, 71], vec![70, 2]], 1);
        let want = "homenode counts 3\nlost 1\nprocess 1 300 a\ncpu 0 2 0 0 0 30000 2000000\nof 0 0 5 0 1\nof 0 1 1 1 0\n\
                    cpu 1 1 0 0 0 20000 2000000\nof 1 1 2 0 1\ninterval 0 30000 2000000 0 0 0\npage 0 1 7 1 0 0 1 1 0\n";
        assert_eq!(text, want);
    }

    #[test]
    fn a_busy_controller_holds_up_whoever_uses_it_in_that_interval() {
        let mut m = monitor();
        m.restart(vec![vec![0]; 2]).unwrap();
        // Interval 0: both CPUs read 100 lines each from node 0, which takes 200 us there; alone they would take 1 and 2 us.
        for line in 0..100 {
            m.access(0, at(line << 6, false, 1));
            m.access(1, at((line + 1000) << 6, false, 1));
        }
        m.next_interval(&vec![vec![0]; 2]);
        // Interval 1: CPU 0 reads 10 lines of node 1, of which there is no end.
        for line in 0..10 {
            m.access(0, at((1 << 20) + (line << 6), false, 1));
        }
        let text = m.result(&[], &vec![vec![0]; 2], 0);
        let rows: Vec<&str> =
            text.lines().filter(|l| l.starts_with("cpu") || l.starts_with("interval")).collect();
        assert_eq!(
            rows,
            [
                "cpu 0 110 0 0 0 1200000 200200000",
                "cpu 1 100 0 0 0 2000000 200000000",
                "interval 0 2000000 200000000 0 0 0",
                "interval 1 200000 0 0 0 0",
            ]
        );
    }

    #[test]
    fn what_goes_back_to_memory_keeps_its_controller_busy() {
        let mut m = monitor();
        m.restart(vec![vec![0]; 2]).unwrap();
        // Nine lines of one set of eight ways, written: the ninth pushes the first out.
        for i in 0..9_u64 {
            m.access(0, at(i * 4096, true, 1));
        }
        let text = m.result(&[], &vec![vec![0]; 2], 0);
        assert!(text.contains("interval 0 90000 10000000 0 0 0"), "nine lines come and one goes: {text}");
    }
}
