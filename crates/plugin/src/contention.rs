//! How long controllers, ports and links are busy with what an interval moves, and whom that holds
//! up.
//!
//! Approach: for each interval the bytes that pass each of them, by the machine's bandwidths
//! ([`Ways`], as in the simulator's stage 3), take some time, and the interval lasts at least as
//! long for each CPU whose data passes there. So a CPU's time in an interval is the larger one of
//! its own (caches and latencies, one miss at a time, nobody else there) and that of the busiest
//! that it uses. It is too small where an interval has phases that load different parts one after
//! the other, and where requests come in bursts: queues within an interval are not modelled.

use homenode_model::{Bytes, LineNo, NodeId, Ps, Topology, Way, Ways};
use homenode_wire::monitor::ModelledInterval;

/// Lines that each CPU moved in an interval, by home.
#[derive(Clone, Debug)]
pub struct LineTraffic {
    nodes: usize,
    /// By CPU and home: fetched, stored.
    lines: Vec<[u64; 2]>,
}

impl LineTraffic {
    /// None.
    pub fn new(machine: &Topology) -> Self {
        let nodes = machine.nodes.len();
        Self { nodes, lines: vec![[0; 2]; nodes * machine.cpus.len()] }
    }

    /// A CPU got a line from there.
    #[inline]
    pub fn fetched(&mut self, cpu: usize, home: NodeId) {
        self.lines[cpu * self.nodes + home.index()][0] += 1;
    }

    /// A line went there from a CPU's caches.
    #[inline]
    pub fn stored(&mut self, cpu: usize, home: NodeId) {
        self.lines[cpu * self.nodes + home.index()][1] += 1;
    }

    /// A new interval.
    pub fn clear(&mut self) {
        self.lines.fill([0; 2]);
    }

    /// CPU, home, lines fetched and stored.
    fn moved(&self) -> impl Iterator<Item = (usize, NodeId, [u64; 2])> {
        let all = self.lines.iter().enumerate().filter(|(_, lines)| **lines != [0; 2]);
        all.map(|(i, lines)| (i / self.nodes, NodeId((i % self.nodes) as u16), *lines))
    }
}

/// A part of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// How long a line keeps it busy.
    takes: Ps,
    /// How long it is busy.
    busy: Ps,
}

/// All intervals so far.
#[derive(Clone, Debug)]
pub struct Contention {
    ways: Ways<Part>,
    nodes: Vec<NodeId>,
    /// By CPU: its own time, and with what it waited for others.
    times: Vec<[Ps; 2]>,
    intervals: Vec<ModelledInterval>,
}

impl Contention {
    /// None yet.
    pub fn new(machine: &Topology) -> Self {
        let line = machine.caches.last().map_or(Bytes(LineNo::BYTES), |c| c.line);
        let part = |bandwidth: homenode_model::MbPerS| Part { takes: bandwidth.occupancy(line), busy: Ps(0) };
        Self {
            ways: Ways::new(machine, part),
            nodes: machine.cpus.clone(),
            times: vec![[Ps(0); 2]; machine.cpus.len()],
            intervals: Vec::new(),
        }
    }

    /// An interval in which the CPUs took so long alone, and moved this.
    pub fn add(&mut self, alone: &[Ps], traffic: &LineTraffic) {
        let mut ways = self.ways.clone();
        for (cpu, home, [fetched, stored]) in traffic.moved() {
            let add = |lines: u64| move |part: &mut Part| part.busy += Ps(part.takes.0.saturating_mul(lines));
            ways.fetch(self.nodes[cpu], home, add(fetched));
            ways.store(self.nodes[cpu], home, add(stored));
        }
        let mut busiest = vec![Ps(0); alone.len()];
        for (cpu, home, [fetched, stored]) in traffic.moved() {
            let mut look = |part: &mut Part| busiest[cpu] = busiest[cpu].max(part.busy);
            if fetched > 0 {
                ways.fetch(self.nodes[cpu], home, &mut look);
            }
            if stored > 0 {
                ways.store(self.nodes[cpu], home, &mut look);
            }
        }
        for ((time, alone), busiest) in self.times.iter_mut().zip(alone).zip(busiest) {
            time[0] += *alone;
            time[1] += busiest.max(*alone);
        }
        // The first of several.
        let first = (Way::Controller(NodeId(0)), Ps(0));
        let (busiest, busy) = ways
            .iter()
            .fold(first, |most, (way, part)| if part.busy > most.1 { (way, part.busy) } else { most });
        let alone = alone.iter().copied().max().unwrap_or_default();
        self.intervals.push(ModelledInterval { alone, busiest, busy });
    }

    /// A CPU's own time, and with what it waited for others.
    pub fn times(&self, cpu: usize) -> [Ps; 2] {
        self.times[cpu]
    }

    /// What is modelled of each interval.
    pub fn intervals(&self) -> &[ModelledInterval] {
        &self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three nodes of `epyc-nps4` with a CPU each.
    fn machine() -> Topology {
        let mut machine = homenode_machine::preset("epyc-nps4").unwrap().topology;
        machine.cpus = (0..3).map(NodeId).collect();
        machine
    }

    #[test]
    fn the_busiest_of_controllers_ports_and_links_is_named() {
        let machine = machine();
        // 64 bytes at 40 GB/s and at 50 GB/s.
        let (controller, link) = (1600, 1280);
        let mut all = Contention::new(&machine);
        let mut traffic = LineTraffic::new(&machine);
        // CPU 0 and CPU 1 get 1000 lines each from node 2: 2000 pass its controller and its port,
        // 1000 each link.
        for cpu in 0..2 {
            (0..1000).for_each(|_| traffic.fetched(cpu, NodeId(2)));
        }
        all.add(&[Ps(5), Ps(5_000_000), Ps(7)], &traffic);
        // CPU 0 gets 1000 lines from each other node: its own port is busiest.
        traffic.clear();
        for home in 1..3 {
            (0..1000).for_each(|_| traffic.fetched(0, NodeId(home)));
        }
        all.add(&[Ps(0); 3], &traffic);
        // And lines go back there.
        traffic.clear();
        (0..1000).for_each(|_| traffic.stored(2, NodeId(0)));
        all.add(&[Ps(0); 3], &traffic);
        let times: Vec<[u64; 2]> = (0..3).map(|cpu| all.times(cpu).map(|t| t.0)).collect();
        assert_eq!(
            times,
            [[5, 2000 * controller + 2000 * link], [5_000_000, 5_000_000], [7, 7 + 1000 * controller],]
        );
        let interval = |alone, busy, busiest| ModelledInterval { alone: Ps(alone), busiest, busy: Ps(busy) };
        let want = [
            interval(5_000_000, 2000 * controller, Way::Controller(NodeId(2))),
            interval(0, 2000 * link, Way::Incoming(NodeId(0))),
            interval(0, 1000 * controller, Way::Controller(NodeId(0))),
        ];
        assert_eq!(all.intervals(), want);
    }
}
