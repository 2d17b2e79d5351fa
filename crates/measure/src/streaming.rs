//! What streams reach on a described machine whose CPUs share buses or look ahead a known distance.
//!
//! # Problem
//!
//! A rate of "as many lines as a CPU may miss at once, each in a latency" makes a CPU faster than
//! its bus, and two CPUs of a bus as fast as two CPUs of two buses. Robertson and Rendell's Table 1
//! shows neither.
//!
//! # Approach
//!
//! The arrays of a loop begin their lines in the same step. One such *set* of lines takes
//!
//! - a latency for each group of lines that the CPU misses at once: at most
//!   [`Core::outstanding`](homenode_model::Core), and no farther ahead than [`Machine::window`]
//!   reaches; then
//! - the time of all its lines on the [`Bus`], one after another: the lines that a store reads
//!   first and the lines that are written back, too. Other CPUs of the bus are served in between.
//!
//! The bus is a queue with one server, and a CPU comes back a latency after it was served. Mean
//! value analysis (Reiser and Lavenberg, 1980) gives the time that a set needs there. A CPU
//! computes while its lines pass the bus, so computing takes no time of its own.
//!
//! Memory, ports and links then limit the result. Data passes the same [`Ways`] as in the
//! simulator, and all threads that share a way get the same part of it.
//!
//! # What it leaves out
//!
//! - Hardware and software prefetching.
//! - Idle cycles of a bus between two lines: the bus carries its full bandwidth.
//! - Threads of one bus with different latencies count with their mean.

use homenode_machine::{Bus, Machine};
use homenode_model::{NodeId, Ways};

use crate::axes::{NodePair, Op, Stores};
use crate::item::Streams;

/// Bytes of a number.
const NUMBER: u64 = 8;

/// Lines of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lines {
    /// As STREAM counts.
    counted: f64,
    /// Lines that come from memory: a regular store reads its line first.
    fetched: f64,
    /// Lines that go to memory.
    written: f64,
}

impl Lines {
    fn of(op: Op, stores: Stores) -> Self {
        let counted = op.bytes() / NUMBER;
        let written = u64::from(op != Op::Read);
        let allocated = if stores == Stores::Regular { written } else { 0 };
        let [counted, fetched, written] = [counted, counted - written + allocated, written].map(|n| n as f64);
        Self { counted, fetched, written }
    }
}

/// A part of the machine: what it carries in a nanosecond, and the lines of all threads that pass
/// it in the time of a set.
#[derive(Clone, Copy, Debug)]
struct Load {
    limit: f64,
    lines: f64,
}

/// The rate of each pair of `ask` in `op`, in 10^6 bytes a second as STREAM counts.
///
/// `nodes` gives the description's numbers of a pair's two nodes, `latency` its nanoseconds.
pub(crate) fn rates(
    machine: &Machine,
    ask: &Streams,
    op: Op,
    nodes: impl Fn(NodePair) -> (NodeId, NodeId),
    latency: impl Fn(NodePair) -> f64,
) -> Vec<f64> {
    let lines = Lines::of(op, ask.stores);
    let line = machine.topology.caches.last().map_or(64, |c| c.line.0) as f64;
    let waits: Vec<f64> = ask.pairs.iter().map(|p| latency(*p) * groups(machine, op, lines, line)).collect();
    let on_bus =
        machine.bus.map_or(0.0, |bus| (lines.fetched + lines.written) * line * 1e3 / bus.bandwidth.0 as f64);
    let sets: Vec<f64> = sharers(machine.bus, ask)
        .iter()
        .map(|threads| {
            let of_thread = |(pair, others): &(usize, Vec<usize>)| {
                let mean = others.iter().map(|o| waits[*o]).sum::<f64>() / others.len() as f64;
                1.0 / (waits[*pair] + at_server(others.len(), mean, on_bus)).max(1e-3)
            };
            threads.iter().map(of_thread).sum()
        })
        .collect();
    let limit = |bandwidth: homenode_model::MbPerS| match bandwidth.0 {
        0 => f64::INFINITY,
        mb => mb as f64 / 1e3,
    };
    let mut ways = Ways::new(&machine.topology, |b| Load { limit: limit(b), lines: 0.0 });
    for pair in &ask.pairs {
        let (node, home) = nodes(*pair);
        let threads = f64::from(ask.threads);
        ways.fetch(node, home, |w| w.lines += lines.fetched * threads);
        ways.store(node, home, |w| w.lines += lines.written * threads);
    }
    let threads = f64::from(ask.threads);
    let of_pair = |(pair, sets): (&NodePair, &f64)| {
        let (node, home) = nodes(*pair);
        let mut most = *sets;
        let mut narrow = |w: &mut Load| {
            if w.lines > 0.0 {
                most = most.min(threads * w.limit / (w.lines * line));
            }
        };
        ways.fetch(node, home, &mut narrow);
        ways.store(node, home, &mut narrow);
        most * lines.counted * line * 1e3
    };
    ask.pairs.iter().zip(&sets).map(of_pair).collect()
}

/// Latencies that a set of lines takes: lines that are missed together take one.
fn groups(machine: &Machine, op: Op, lines: Lines, line: f64) -> f64 {
    let outstanding = f64::from(machine.topology.core.outstanding.max(1));
    let ahead = machine.window.map_or(f64::INFINITY, |window| {
        // A step loads, stores, and does one thing with the numbers at least.
        let steps = f64::from(window) / (lines.counted + f64::from(u8::from(op != Op::Copy)));
        // As many steps as a line has do not reach the next line.
        (steps / (line / NUMBER as f64)).ceil().max(1.0)
    });
    if lines.fetched == 0.0 { 0.0 } else { lines.fetched / outstanding.min(lines.fetched * ahead) }
}

/// For each thread of each pair: the pair, and the pairs of all threads on the same bus, itself
/// included. Threads of a node take its CPUs in order.
fn sharers(bus: Option<Bus>, ask: &Streams) -> Vec<Vec<(usize, Vec<usize>)>> {
    let each = bus.map_or(1, |b| b.cpus.max(1)) as usize;
    let threads = ask.threads.max(1) as usize;
    // The pair of each thread of a node, in order.
    let on_node = |pair: &NodePair| {
        let same = ask.pairs.iter().enumerate().filter(|(_, p)| p.cpu == pair.cpu);
        same.flat_map(|(i, _)| std::iter::repeat_n(i, threads)).collect::<Vec<_>>()
    };
    let of_pair = |(i, pair): (usize, &NodePair)| {
        let all = on_node(pair);
        let buses = all.chunks(each).filter(|bus| bus.contains(&i));
        buses.flat_map(|bus| bus.iter().filter(|p| **p == i).map(|p| (*p, bus.to_vec()))).collect()
    };
    ask.pairs.iter().enumerate().map(of_pair).collect()
}

/// Mean time at a queue with one server of `service`, of `customers` who come back after `away`.
fn at_server(customers: usize, away: f64, service: f64) -> f64 {
    let (mut queue, mut time) = (0.0, service);
    for n in 1..=customers {
        time = service * (1.0 + queue);
        queue = if away + time > 0.0 { n as f64 * time / (away + time) } else { n as f64 };
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::MbPerS;

    fn machine() -> Machine {
        homenode_machine::resolve("origin3000").unwrap()
    }

    fn triad(machine: &Machine, pairs: &[(u16, u16)]) -> Vec<f64> {
        let pairs: Vec<NodePair> = pairs.iter().map(|(cpu, memory)| NodePair::new(*cpu, *memory)).collect();
        let t = &machine.topology;
        let nodes = |p: NodePair| (NodeId(p.cpu.0), NodeId(p.memory.0));
        let latency = |p: NodePair| t.latency.at(NodeId(p.cpu.0), NodeId(p.memory.0)).0 as f64;
        rates(machine, &Streams::triad(&pairs, 1 << 20), Op::Triad, nodes, latency)
    }

    #[test]
    fn a_store_reads_its_line_first_unless_it_passes_the_caches() {
        let of = |op, stores| {
            let l = Lines::of(op, stores);
            (l.counted, l.fetched, l.written)
        };
        assert_eq!(of(Op::Triad, Stores::Regular), (3.0, 3.0, 1.0));
        assert_eq!(of(Op::Scale, Stores::NonTemporal), (2.0, 1.0, 1.0));
        assert_eq!(of(Op::Read, Stores::Regular), (1.0, 1.0, 0.0));
        assert_eq!(of(Op::Write, Stores::NonTemporal), (1.0, 0.0, 1.0));
    }

    #[test]
    fn one_thread_takes_a_latency_and_its_lines_on_the_bus() {
        // 180 ns, and four lines of 80 ns for three that count.
        let ours = triad(&machine(), &[(0, 0)]);
        assert!((ours[0] - 3.0 * 128e3 / 500.0).abs() < 0.5, "{ours:?}");
    }

    #[test]
    fn two_threads_of_a_bus_have_less_than_two_of_two_buses() {
        let shared = machine();
        let mut apart = shared.clone();
        apart.bus = shared.bus.map(|b| Bus { cpus: 1, ..b });
        let sum = |m: &Machine| triad(m, &[(0, 0), (0, 0)]).iter().sum::<f64>();
        let one = triad(&shared, &[(0, 0)])[0];
        assert!(sum(&shared) > one && sum(&shared) < 1.6 * one, "{} {one}", sum(&shared));
        assert!((sum(&apart) - 2.0 * one).abs() < 1.0, "{} {one}", sum(&apart));
        // The bus is the limit of however many.
        let many = triad(&Machine { bus: shared.bus.map(|b| Bus { cpus: 4, ..b }), ..shared }, &[(0, 0); 4]);
        assert!(many.iter().sum::<f64>() <= 1600.0 * 0.75 + 1e-6, "{many:?}");
    }

    #[test]
    fn ports_count_what_others_write_through_them() {
        let mut m = machine();
        m.topology.nodes.iter_mut().for_each(|n| n.port = MbPerS(100));
        // Node 0 sends three lines to node 1, and writes one of its own there.
        let crossed = triad(&m, &[(0, 1), (1, 0)]);
        assert!(crossed.iter().all(|r| (r - 100.0 * 3.0 / 4.0).abs() < 1e-6), "{crossed:?}");
        let alone = triad(&m, &[(0, 1)]);
        assert!((alone[0] - 100.0).abs() < 1e-6, "{alone:?}");
    }

    #[test]
    fn a_window_that_reaches_the_next_line_hides_latency() {
        let m = machine();
        let wide = Machine { window: Some(1 << 20), ..m.clone() };
        assert!(triad(&wide, &[(0, 15)])[0] > 1.1 * triad(&m, &[(0, 15)])[0]);
    }

    #[test]
    fn mean_value_analysis_is_right_at_its_ends() {
        assert_eq!(at_server(1, 100.0, 50.0), 50.0);
        assert_eq!(at_server(3, 0.0, 50.0), 150.0);
        assert_eq!(at_server(9, 100.0, 0.0), 0.0);
        // Two customers: 50 (1 + 50 / 150).
        assert!((at_server(2, 100.0, 50.0) - 50.0 * (1.0 + 1.0 / 3.0)).abs() < 1e-9);
    }
}
