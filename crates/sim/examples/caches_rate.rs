//! How many accesses a second stage 2 takes on one core:
//! `cargo run --release -p homenode-sim --example caches_rate [WORD]`, for rows that contain WORD
//! alone.
//!
//! Each row is a machine and an access pattern of a few threads; accesses are made in advance, so
//! that the rate is the caches' own. CPU time counts, not the clock on the wall (others may use the
//! machine), and the best of five rounds.

use homenode_model::{
    Bytes, Cache, CacheScope, Core, CpuId, LineNo, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps,
    ThreadId, Ticks, Topology, Writes,
};
use homenode_order::step::{TraceStep, What};
use homenode_sim::caches::Caches;
use homenode_sim::stream::{Cause, MemChunk};

const ROUNDS: u64 = 5;
const ACCESSES: usize = 4 << 20;

fn machine(name: &str, caches: Vec<Cache>) -> Topology {
    let node = Node { memory: Bytes::gib(64), bandwidth: MbPerS(0), port: MbPerS(0) };
    Topology {
        name: name.into(),
        nodes: vec![node; 2],
        cpus: (0..8).map(|c| NodeId(c / 4)).collect(),
        latency: Matrix::from_fn(2, |a, b| Ns(if a == b { 100 } else { 200 })),
        link: Matrix::from_fn(2, |_, _| MbPerS(0)),
        caches,
        page_sizes: vec![Bytes(4096)],
        core: Core { access: Ps(1000), outstanding: 4 },
        migration: MigrationCost::default(),
        remote_cacheable: true,
        counts_references: false,
    }
}

fn cache(level: u8, size: Bytes, ways: u32, scope: CacheScope) -> Cache {
    Cache { level, size, line: Bytes(64), ways, scope, writes: Writes::Back, hit: Ns(10) }
}

/// A fixed generator (xorshift), so that runs compare.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// CPU time of this thread; Linux's schedstat begins with it.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Threads take turns; `f(rng, thread, count of the thread's accesses)` says what each does.
fn pattern(threads: u64, mut f: impl FnMut(&mut Rng, u64, u64) -> (u64, bool)) -> Vec<TraceStep> {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let one = |i: u64| {
        let (line, write) = f(&mut rng, i % threads, i / threads);
        let what = What::Access { line: LineNo(line), write };
        TraceStep { thread: ThreadId((i % threads) as u32), tick: Ticks(i), what }
    };
    (0..ACCESSES as u64).map(one).collect()
}

fn main() {
    use CacheScope::{Cpu, Node};
    let only: Vec<String> = std::env::args().skip(1).collect();
    let mib = |n: u64| (n << 20) / 64;
    let machines = [
        machine("one level, 8 MiB 2-way", vec![cache(2, Bytes::mib(8), 2, Cpu)]),
        machine(
            "1 MiB 16-way + 32 MiB 16-way",
            vec![cache(2, Bytes::mib(1), 16, Cpu), cache(3, Bytes::mib(32), 16, Node)],
        ),
        machine(
            "48 KiB 12 + 2 MiB 16 + 40 MiB 20-way",
            vec![
                cache(1, Bytes::kib(48), 12, Cpu),
                cache(2, Bytes::mib(2), 16, Cpu),
                cache(3, Bytes::mib(40), 20, Node),
            ],
        ),
    ];
    let hits = |rng: &mut Rng, t: u64, n: u64| (mib(t) + (n / 4 + rng.below(32)) % 500, n.is_multiple_of(5));
    // Each thread sweeps its part of 500 MB: two loads, and a store to a second array.
    let stream = |_: &mut Rng, t: u64, n: u64| {
        let (part, round) = (mib(500) / 4, n / 3 % (mib(500) / 12));
        (t * part + if n % 3 == 2 { part * 2 / 3 + round } else { round * 2 + n % 3 }, n % 3 == 2)
    };
    let random = |rng: &mut Rng, _: u64, _: u64| (rng.below(mib(500)), rng.below(10) == 0);
    // What passes a filter of 256 KiB: sweeps over 25 MB a thread, reuse out of the private cache,
    // 5 % shared.
    let mix = |rng: &mut Rng, t: u64, n: u64| match rng.below(100) {
        0..55 => (t * mib(25) + (n / 2) % mib(25), n.is_multiple_of(4)),
        55..95 => (mib(200) + t * mib(2) + rng.below(mib(1) / 2), rng.below(4) == 0),
        _ => (mib(300) + rng.below(mib(4)), rng.below(20) == 0),
    };
    let patterns = [
        ("hits, 4 threads", 4, pattern(4, hits)),
        ("sweep 500 MB, 4 threads", 4, pattern(4, stream)),
        ("random 500 MB, 1 thread", 1, pattern(1, random)),
        ("mix after a filter, 4 threads", 4, pattern(4, mix)),
    ];
    println!("{:<38} {:<30} {:>8} {:>7} {:>7}", "caches", "pattern", "M acc/s", "items %", "coher %");
    for m in &machines {
        for (what, threads, accesses) in &patterns {
            if !only.iter().all(|word| m.name.contains(word.as_str()) || what.contains(word.as_str())) {
                continue;
            }
            // Threads alternate between the nodes.
            let cpus: Vec<CpuId> = (0..*threads).map(|t| CpuId(t % 2 * 4 + t / 2)).collect();
            let mut caches = match Caches::new(m, &cpus) {
                Ok(caches) => caches,
                Err(e) => return eprintln!("{e}"),
            };
            let mut out = MemChunk::default();
            let (mut best, mut items) = (u64::MAX, 0);
            for _ in 0..ROUNDS {
                let start = cpu_ns();
                items = 0;
                for piece in accesses.chunks(1 << 14) {
                    if let Err(e) = piece.iter().try_for_each(|step| caches.step(step, &mut out)) {
                        return eprintln!("{e}");
                    }
                    items += out.items;
                    out.items = 0;
                    out.threads.iter_mut().for_each(Vec::clear);
                }
                best = best.min(cpu_ns() - start);
            }
            let coherence: u64 = caches.counts().map(|c| c.causes[Cause::Coherence as usize]).sum();
            println!(
                "{:<38} {what:<30} {:>8} {:>7} {:>7}",
                m.name,
                ACCESSES as u64 * 1000 / best.max(1),
                items * 100 / ACCESSES as u64,
                coherence * 100 / ROUNDS / ACCESSES as u64
            );
        }
    }
}
