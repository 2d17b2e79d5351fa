//! How fast stage 3 is: items of the memory stream a second, on synthetic streams.
//!
//! `cargo run --release -p homenode-sim --example memory_rate [MILLION_ITEMS]`

use std::time::{Duration, Instant};

use homenode_model::{
    Bytes, Core, CpuId, LineNo, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Ticks, Topology,
};
use homenode_policy::{PolicyContext, build};
use homenode_sim::memory::{Memory, MemoryOptions};
use homenode_sim::stream::{Cause, MemChunk, MemItem, MemWhat};

const PAGE: Bytes = Bytes::kib(8);
/// Lines of the data, all threads together: 128 MiB.
const LINES: u64 = 2 << 20;
/// Items of a thread and chunk.
const PIECE: u64 = 16_384;

fn machine(nodes: usize, per_node: usize, outstanding: u32) -> Topology {
    let node = Node { memory: Bytes::gib(4), bandwidth: MbPerS(9600), port: MbPerS(4800) };
    Topology {
        name: "rate".into(),
        nodes: vec![node; nodes],
        cpus: (0..nodes * per_node).map(|c| NodeId((c / per_node) as u16)).collect(),
        latency: Matrix::from_fn(nodes, |a, b| Ns(if a == b { 216 } else { 432 })),
        link: Matrix::from_fn(nodes, |_, _| MbPerS(4800)),
        caches: Vec::new(),
        page_sizes: vec![PAGE],
        core: Core { access: Ps(1100), outstanding },
        migration: MigrationCost {
            fixed: Ns(20_000),
            per_kib: Ns(1000),
            shootdown: Ns(0),
            serialised: true,
            stops: false,
        },
        remote_cacheable: true,
        counts_references: false,
    }
}

/// Chunk `c` of `threads` threads: each sweeps its share, with every eighth access anywhere.
fn chunk(c: u64, threads: u64) -> MemChunk {
    let share = LINES / threads;
    let item = |t: u64, i: u64| {
        let n = c * PIECE + i;
        let far = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(t) >> 40;
        let line = if i % 8 == 7 { far % LINES } else { t * share + n % share };
        let what = MemWhat::Access { line: LineNo(line), write: i.is_multiple_of(3), cause: Cause::Capacity };
        MemItem { tick: Ticks(n * (6 + t % 3)), what }
    };
    let threads = (0..threads).map(|t| (0..PIECE).map(|i| item(t, i)).collect()).collect();
    MemChunk { threads, items: 0, last: false }
}

/// Time this thread has had a CPU, where the kernel says so: on a machine that others use, too, the
/// clock on the wall measures them.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(40u64);
    println!("M items/s by time on a CPU, and by the clock on the wall");
    println!(
        "{:>7} {:>11} {:<12} {:>8} {:>8} {:>11}",
        "threads", "outstanding", "policy", "cpu", "wall", "modelled s"
    );
    for (nodes, per_node, outstanding) in [(4, 1, 1), (4, 1, 8), (4, 4, 8), (8, 8, 8)] {
        let threads = nodes * per_node;
        let topology = machine(nodes, per_node, outstanding);
        let binding: Vec<CpuId> = (0..threads as u32).map(CpuId).collect();
        // A ring of chunks, so that making them is not what is measured.
        let ring: Vec<MemChunk> = (0..4).map(|c| chunk(c, threads as u64)).collect();
        for name in ["first-touch", "round-robin", "next-touch"] {
            let policy = build(name, &PolicyContext::of(&topology, PAGE)).expect("a known policy");
            let mut memory = Memory::new(&topology, &binding, PAGE, policy, &MemoryOptions::default())
                .expect("a sound machine");
            let rounds = millions * 1_000_000 / (threads as u64 * PIECE);
            let (begun, cpu) = (Instant::now(), cpu_time());
            for c in 0..rounds {
                memory.feed(&ring[c as usize % ring.len()]).expect("a sound stream");
            }
            let outcome = memory.finish().expect("a sound stream");
            let wall = begun.elapsed();
            let cpu = cpu_time().zip(cpu).map_or(wall, |(end, begin)| end - begin);
            let rate = |time: Duration| (rounds * threads as u64 * PIECE) as f64 / time.as_secs_f64() / 1e6;
            let modelled = outcome.time.secs();
            println!(
                "{threads:>7} {outstanding:>11} {name:<12} {:>8.1} {:>8.1} {modelled:>11.3}",
                rate(cpu),
                rate(wall)
            );
        }
    }
}
