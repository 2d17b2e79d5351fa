//! Caches, counts and modelled time, behind one lock.

use homenode_cache::{CacheShape, Hierarchy, Line, Miss};
use homenode_model::{CpuId, LineNo, Ps, Topology};
pub use homenode_wire::monitor::KERNEL;
use homenode_wire::monitor::{
    AccessCounts, Config, Cpu, CpuShare, Misses, MonitorReport, PageAccesses, Process,
};

use crate::contention::{Contention, LineTraffic};
use crate::count::{PageCounts as Table, PageRow, RowKey};
use crate::front::Front;
use crate::pending::PendingAccess;
use crate::place::PhysicalMap;
use crate::translate::PAGE_SHIFT;

/// All accesses of each CPU by number of the process, since QEMU started.
pub type AccessesByCpu = Vec<Vec<u64>>;

/// What a CPU's accesses met behind the front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Behind {
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
    shape: CacheShape,
    places: PhysicalMap,
    /// Time of the outer caches, summed from the second on, by level that answers.
    outer: Vec<Ps>,
    caches: Hierarchy<u64>,
    counts: Table,
    cpus: Vec<Behind>,
    /// What was moved in this interval.
    traffic: LineTraffic,
    contention: Contention,
    /// Accesses before the beginning, and before this interval.
    before: AccessesByCpu,
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
        let shape = CacheShape::new(&machine, &all).map_err(|e| e.to_string())?;
        let places = PhysicalMap::of(&machine, config.addresses, config.disk);
        let mut outer = vec![Ps(0)];
        for cache in &machine.caches[1..] {
            outer.push(Ps(outer.last().map_or(0, |p| p.0) + cache.hit.ps().0));
        }
        Ok(Self {
            caches: caches(&shape, &machine)?,
            counts: Table::new(places.pages() as usize, machine.nodes.len()),
            cpus: vec![Behind::default(); machine.cpus.len()],
            traffic: LineTraffic::new(&machine),
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
    pub const fn places(&self) -> &PhysicalMap {
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
    pub fn access(&mut self, cpu: usize, access: PendingAccess) -> Reach {
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
        // An upgrade moves no data: it is no access to memory, here as in the simulator.
        if miss != Miss::Upgrade {
            let process = usize::from(access.process);
            if own.memory.len() <= process {
                own.memory.resize(process + 1, [0; 2]);
            }
            own.memory[process][usize::from(node != home)] += 1;
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
    pub fn restart(&mut self, accesses: AccessesByCpu) -> Result<(), String> {
        self.caches = caches(&self.shape, &self.machine)?;
        self.counts.clear();
        self.cpus.fill(Behind::default());
        self.traffic.clear();
        self.contention = Contention::new(&self.machine);
        self.before_interval = accesses.iter().map(|of| of.iter().sum()).collect();
        self.before = accesses;
        self.lost = 0;
        Ok(())
    }

    /// A new interval begins.
    pub fn next_interval(&mut self, accesses: &AccessesByCpu) {
        self.counts.next_interval();
        self.close_interval(accesses);
    }

    fn close_interval(&mut self, accesses: &AccessesByCpu) {
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

    /// The result, without first stores. `lost` are accesses to places that are neither memory nor
    /// a device.
    pub fn result(&mut self, processes: &[Process], accesses: &AccessesByCpu, lost: u64) -> MonitorReport {
        self.close_interval(accesses);
        let cpus = self.cpus.iter().zip(accesses).enumerate().map(|(i, (cpu, all))| {
            let [cold, capacity, coherence, upgrade] = cpu.misses;
            let [alone, time] = self.contention.times(i);
            let shares = (0_u16..).zip(all).filter_map(|(process, n)| {
                let at = usize::from(process);
                let accesses = n - self.before[i].get(at).copied().unwrap_or_default();
                let [local, remote] = cpu.memory.get(at).copied().unwrap_or_default();
                (accesses > 0).then_some((process, CpuShare { accesses, local, remote }))
            });
            let misses = Misses { cold, capacity, coherence, upgrade };
            Cpu { misses, shares: shares.collect(), alone, time }
        });
        let cpus = cpus.collect();
        let places = self.places.clone();
        let page = |(key, row): (&RowKey, &PageRow)| PageAccesses {
            interval: key.interval,
            process: key.process,
            page: key.page,
            physical: key.physical,
            home: places.home(key.physical),
            visit: row.visit,
            counts: row
                .counts
                .iter()
                .map(|[loads, stores]| AccessCounts { loads: *loads, stores: *stores })
                .collect(),
        };
        MonitorReport {
            processes: (1..).zip(processes.iter().cloned()).collect(),
            cpus,
            intervals: self.contention.intervals().to_vec(),
            pages: self.counts.rows().iter().map(page).collect(),
            lost: self.lost + lost,
            ..MonitorReport::default()
        }
    }
}

fn caches(shape: &CacheShape, machine: &Topology) -> Result<Hierarchy<u64>, String> {
    let bytes: u64 = machine.nodes.iter().map(|n| n.memory.0).sum();
    let chunk = (homenode_cache::directory::CHUNK as u64) << (LineNo::SHIFT + shape.line_shift());
    let chunks = u32::try_from(bytes / chunk + 1).map_err(|_| "too much memory")?;
    Hierarchy::new(shape, chunks).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::two_nodes;
    use homenode_model::{NodeId, Way};
    use homenode_wire::monitor::ModelledInterval;

    fn monitor() -> Monitor {
        Monitor::new(&two_nodes()).unwrap()
    }

    /// An interval in which node 0's controller is busiest.
    fn on_the_first(alone: u64, busy: u64) -> ModelledInterval {
        ModelledInterval { alone: Ps(alone), busiest: Way::Controller(NodeId(0)), busy: Ps(busy) }
    }

    fn at(offset: u64, write: bool, process: u16) -> PendingAccess {
        PendingAccess { line: offset >> 6, write, page: 7, process, room: None }
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
        let found = m.result(std::slice::from_ref(&process), &vec![vec![75, 71], vec![70, 2]], 1);
        let share = |accesses, local, remote| CpuShare { accesses, local, remote };
        let cpu = |cold, shares: &[(u16, CpuShare)], alone, time| Cpu {
            misses: Misses { cold, ..Misses::default() },
            shares: shares.iter().copied().collect(),
            alone: Ps(alone),
            time: Ps(time),
        };
        let counts = |loads, stores| AccessCounts { loads, stores };
        let page = PageAccesses {
            interval: 0,
            process: 1,
            page: 7,
            physical: 1,
            home: NodeId(0),
            visit: 0,
            counts: vec![counts(0, 1), counts(1, 0)],
        };
        let want = MonitorReport {
            processes: [(1, process)].into(),
            cpus: vec![
                cpu(2, &[(0, share(5, 0, 1)), (1, share(1, 1, 0))], 30_000, 2_000_000),
                cpu(1, &[(1, share(2, 0, 1))], 20_000, 2_000_000),
            ],
            intervals: vec![on_the_first(30_000, 2_000_000)],
            pages: vec![page],
            lost: 1,
            ..MonitorReport::default()
        };
        assert_eq!(found, want);
    }

    #[test]
    fn a_busy_controller_holds_up_whoever_uses_it_in_that_interval() {
        let mut m = monitor();
        m.restart(vec![vec![0]; 2]).unwrap();
        // Interval 0: both CPUs read 100 lines each from node 0, which takes 200 us there; alone
        // they would take 1 and 2 us.
        for line in 0..100 {
            m.access(0, at(line << 6, false, 1));
            m.access(1, at((line + 1000) << 6, false, 1));
        }
        m.next_interval(&vec![vec![0]; 2]);
        // Interval 1: CPU 0 reads 10 lines of node 1, of which there is no end.
        for line in 0..10 {
            m.access(0, at((1 << 20) + (line << 6), false, 1));
        }
        let found = m.result(&[], &vec![vec![0]; 2], 0);
        let cpus: Vec<_> = found.cpus.iter().map(|c| (c.misses.all(), c.alone.0, c.time.0)).collect();
        assert_eq!(cpus, [(110, 1_200_000, 200_200_000), (100, 2_000_000, 200_000_000)]);
        assert_eq!(found.intervals, [on_the_first(2_000_000, 200_000_000), on_the_first(200_000, 0)]);
    }

    #[test]
    fn what_goes_back_to_memory_keeps_its_controller_busy() {
        let mut m = monitor();
        m.restart(vec![vec![0]; 2]).unwrap();
        // Nine lines of one set of eight ways, written: the ninth pushes the first out.
        for i in 0..9_u64 {
            m.access(0, at(i * 4096, true, 1));
        }
        let found = m.result(&[], &vec![vec![0]; 2], 0);
        assert_eq!(found.intervals, [on_the_first(90_000, 10_000_000)], "nine lines come and one goes");
    }
}
