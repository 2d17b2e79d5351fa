//! Caches, counts and modelled time, behind one lock.

use std::fmt::Write as _;

use homenode_cache::{Agent, Hierarchy, Line, Miss, Shape};
use homenode_model::{CpuId, LineNo, NodeId, Ps, Topology};

use crate::config::{Addresses, Config};
use crate::count::Counts;
use crate::front::Front;
use crate::translate::PAGE_SHIFT;

/// Who makes an access: by the half of the address space in which the instruction lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A program of the guest.
    User,
    /// Its kernel.
    Kernel,
}

/// What a CPU's accesses met behind the front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cpu {
    /// Main-memory accesses by cause ([`Miss`]).
    misses: [u64; 4],
    /// To the node of the CPU, to others; user's, then the kernel's.
    local: [u64; 2],
    remote: [u64; 2],
    /// Cache and memory time.
    time: Ps,
}

/// The model.
#[derive(Debug)]
pub struct Monitor {
    machine: Topology,
    shape: Shape,
    addresses: Addresses,
    /// First page of each node in the guest's memory, counted without the hole, and one past the last.
    first: Vec<u64>,
    caches: Hierarchy<u64>,
    counts: Counts,
    cpus: Vec<Cpu>,
    /// Accesses that fit no model: beyond the memory.
    lost: u64,
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
        let mut first = vec![0];
        for node in &machine.nodes {
            first.push(first.last().unwrap_or(&0) + (node.memory.0 >> PAGE_SHIFT));
        }
        let pages = *first.last().unwrap_or(&0) as usize;
        Ok(Self {
            caches: caches(&shape, &machine)?,
            counts: Counts::new(pages, machine.nodes.len()),
            cpus: vec![Cpu::default(); machine.cpus.len()],
            lost: 0,
            addresses: config.addresses,
            shape,
            first,
            machine,
        })
    }

    /// The first-level cache of a CPU.
    pub fn agent(&self, cpu: usize) -> Agent {
        self.shape.agent_of()[cpu]
    }

    /// First-level caches.
    pub const fn agents(&self) -> usize {
        self.shape.agents() as usize
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

    /// Place in the guest's memory, counted without the hole under 4 GiB; `None` for what is not memory.
    pub fn offset(&self, physical: u64) -> Option<u64> {
        let end = self.first.last()? << PAGE_SHIFT;
        let offset = match self.addresses {
            Addresses::Physical { low } if physical < low.0 => physical,
            Addresses::Physical { low } => physical.checked_sub(1 << 32)?.checked_add(low.0)?,
            Addresses::Blocks => {
                let doubled = |page: &u64| page << (PAGE_SHIFT + 1);
                let node = self.first.partition_point(|f| doubled(f) <= physical).checked_sub(1)?;
                let offset = physical - doubled(&self.first[node]) + (self.first[node] << PAGE_SHIFT);
                return (offset < self.first.get(node + 1)? << PAGE_SHIFT).then_some(offset);
            }
        };
        (offset < end).then_some(offset)
    }

    /// An access to something that is neither memory nor a device that QEMU knows.
    pub const fn lose(&mut self) {
        self.lost += 1;
    }

    /// The node of a page of the guest's memory.
    fn home(&self, page: u64) -> NodeId {
        NodeId((self.first.partition_point(|f| *f <= page) - 1) as u16)
    }

    /// An access that the front does not answer, at a place in the guest's memory.
    pub fn access(&mut self, cpu: usize, front: &Front, offset: u64, page: u64, write: bool, side: Side) {
        let line = Line(offset >> self.line_shift());
        let agent = self.agent(cpu);
        let Ok(outcome) = self.caches.access(agent, line, write) else {
            self.lost += 1;
            return;
        };
        front.follow(agent, line, write);
        let levels = self.machine.caches.len();
        let own = &mut self.cpus[cpu];
        let Some(miss) = outcome.miss else {
            let outer = &self.machine.caches[1..=usize::from(outcome.level).min(levels - 1)];
            own.time += outer.iter().map(|c| c.hit.ps()).sum();
            return;
        };
        let physical = offset >> PAGE_SHIFT;
        let (node, home) = (self.machine.cpus[cpu], self.home(physical));
        let own = &mut self.cpus[cpu];
        own.misses[miss as usize] += 1;
        own.time += self.machine.latency.at(node, home).ps();
        let which = usize::from(side == Side::Kernel);
        if node == home {
            own.local[which] += 1;
        } else {
            own.remote[which] += 1;
        }
        if side == Side::User && miss != Miss::Upgrade {
            self.counts.add(page, physical as usize, node.index(), write);
        }
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

    /// The result, as text. `accesses` are all accesses of each CPU: the program's side, the kernel's.
    pub fn result(&mut self, accesses: &[[u64; 2]]) -> String {
        let mut out = String::from("homenode counts 1\n");
        let _ = writeln!(out, "lost {}", self.lost);
        for (i, (cpu, [user, kernel])) in self.cpus.iter().zip(accesses).enumerate() {
            let [cold, capacity, coherence, upgrade] = cpu.misses;
            let time = cpu.time + Ps(self.machine.core.access.0.saturating_mul(user + kernel));
            let ([lu, lk], [ru, rk]) = (cpu.local, cpu.remote);
            let _ = writeln!(
                out,
                "cpu {i} {user} {kernel} {cold} {capacity} {coherence} {upgrade} {lu} {ru} {lk} {rk} {}",
                time.0
            );
        }
        let pages: Vec<u64> = self.counts.rows().keys().map(|(_, _, physical)| *physical).collect();
        let homes: Vec<NodeId> = pages.into_iter().map(|p| self.home(p)).collect();
        for (((interval, page, physical), row), home) in self.counts.rows().iter().zip(homes) {
            let _ = write!(out, "page {interval} {page} {physical} {}", home.0);
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
    use homenode_model::Bytes;

    fn monitor(addresses: &str) -> Monitor {
        let text = format!(
            "homenode monitor 1\naddresses {addresses}\ncontrol 3\naccess 0\nnode 1048576\nnode 2097152\ncpu 0\ncpu 1\n\
             latency 10 20\nlatency 20 10\ncache 2 32768 64 8 1 3\noutput x\n"
        );
        Monitor::new(&Config::parse(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_hole_under_4_gib_is_no_memory() {
        let m = monitor("2097152");
        assert_eq!(m.offset(2_097_151), Some(2_097_151));
        assert_eq!(m.offset(2_097_152), None);
        assert_eq!(m.offset(1 << 32), Some(2_097_152));
        assert_eq!(m.offset((1 << 32) + Bytes::mib(1).0), None, "the end");
    }

    #[test]
    fn qemus_old_addresses_count_what_lies_before_a_node_twice() {
        let m = monitor("0");
        assert_eq!(m.offset(1_048_575), Some(1_048_575));
        assert_eq!(m.offset(1_048_576), None);
        assert_eq!(m.offset(2 * 1_048_576), Some(1_048_576));
        assert_eq!(m.offset(2 * 1_048_576 + 2_097_151), Some(3 * 1_048_576 - 1));
        assert_eq!(m.offset(2 * 1_048_576 + 2_097_152), None);
        assert_eq!((m.home(255), m.home(256)), (NodeId(0), NodeId(1)));
    }
}
