//! What it costs a policy to read an interval's accesses and to decide: a million pages on
//! four nodes, and nanoseconds a page and interval. The goal is 100.
//!
//! The baseline is what no policy can do without: reading the events once. CPU time, so that other
//! programs matter little; the least of several intervals. Two patterns: *owned*, where each page
//! has one user and some of the others' accesses, and *contested*, where all nodes access every
//! page nearly alike. The accesses change between intervals, so that there is always something to
//! decide.

use std::hint::black_box;
use std::time::{Duration, Instant};

use homenode_model::{
    AccessKind, Bytes, Core, CpuId, DecisionBuf, Event, Matrix, MbPerS, MigrationCost, MoveOutcome,
    MoveResult, Node, NodeId, Ns, PageNo, Ps, Topology,
};
use homenode_policy::{Policy, PolicyContext, Step, build};

const PAGES: u64 = 1_000_000;
const NODES: usize = 4;
const INTERVALS: u64 = 4;

/// Every policy that acts on counts, stopping never.
const SPECS: &[&str] = &[
    "competitive:quiet=0",
    "competitive-balanced:quiet=0",
    "out-u",
    "out-u:adaptive=yes",
    "out-u-local",
    "out-w",
    "out-w-local",
    "in-w",
    "daemon:period=1ms",
];

fn context() -> PolicyContext {
    let node = Node { memory: Bytes::gib(64), bandwidth: MbPerS(9600), port: MbPerS(4800) };
    let machine = Topology {
        name: "bench".into(),
        nodes: vec![node; NODES],
        cpus: (0..NODES as u16).map(NodeId).collect(),
        latency: Matrix::from_fn(NODES, |a, b| Ns(if a == b { 216 } else { 432 })),
        link: Matrix::from_fn(NODES, |_, _| MbPerS(4800)),
        caches: Vec::new(),
        page_sizes: vec![Bytes::kib(4)],
        core: Core { access: Ps(1000), outstanding: 1 },
        migration: MigrationCost {
            fixed: Ns(1000),
            per_kib: Ns(100),
            shootdown: Ns(0),
            serialised: false,
            stops: false,
        },
        remote_cacheable: true,
        counts_references: false,
    };
    assert_eq!(machine.node_of(CpuId(0)), NodeId(0));
    PolicyContext::of(&machine, Bytes::kib(4))
}

/// CPU time of this thread, where the kernel tells.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn timed(f: impl FnOnce()) -> Duration {
    let (wall, cpu) = (Instant::now(), cpu_time());
    f();
    cpu_time().zip(cpu).map_or_else(|| wall.elapsed(), |(end, begin)| end - begin)
}

/// The accesses of interval `i` to pages on `homes`.
fn events(pattern: &str, i: u64, homes: &[NodeId]) -> Vec<Event> {
    let mut events = Vec::with_capacity(PAGES as usize * NODES);
    for page in 0..PAGES {
        let owner = (page / 1000 + i) % NODES as u64;
        for node in 0..NODES as u64 {
            let noise = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (40 + 4 * node)) % 16;
            let count = match pattern {
                "owned" if node == owner => 500 + noise,
                "owned" => noise,
                _ => 100 + noise,
            } as u32;
            if count > 0 {
                let (page, home, node) = (PageNo(page), homes[page as usize], NodeId(node as u16));
                let kind = if noise % 2 == 0 { AccessKind::Read } else { AccessKind::Write };
                events.push(Event::Accesses { page, home, node, kind, count });
            }
        }
    }
    events
}

struct Driver {
    policy: Box<dyn Policy>,
    homes: Vec<NodeId>,
    out: DecisionBuf,
    now: u64,
}

impl Driver {
    fn new(spec: &str) -> Self {
        let policy = build(spec, &context()).expect("a policy of the list");
        let mut driver =
            Self { policy, homes: vec![NodeId(0); PAGES as usize], out: DecisionBuf::new(), now: 0 };
        for page in (0..PAGES).map(PageNo) {
            driver.policy.observe(&Event::Fault { page, node: NodeId(0) });
            driver.carry_out();
        }
        // What comes before is initialisation.
        driver.policy.observe(&Event::Iteration { number: 0 });
        driver.carry_out();
        driver
    }
    /// Tells and polls, which is timed; then carries everything out, which is the driver's.
    fn interval(&mut self, events: &[Event], i: u64) -> Duration {
        let time = timed(|| {
            events.iter().for_each(|e| self.policy.observe(e));
            self.now += 2_000_000;
            self.out.clear();
            if self.policy.interest().counts_by_region {
                self.policy.observe(&Event::RegionEnd { region: 0 });
            } else if self.policy.interest().counts_by_iteration {
                self.policy.observe(&Event::Iteration { number: i as u32 + 1 });
            }
            black_box(self.policy.poll(Ns(self.now), &mut self.out));
        });
        self.outcomes();
        self.carry_out();
        time
    }
    fn outcomes(&mut self) {
        for decision in self.out.as_slice() {
            if let homenode_model::Decision::Move { page, to } = *decision {
                self.homes[page.index()] = to;
                let result = MoveResult::Moved;
                self.policy.outcome(&MoveOutcome { page, to, result, cost: Ns(1) });
            }
        }
    }
    fn carry_out(&mut self) {
        loop {
            self.out.clear();
            if self.policy.poll(Ns(self.now), &mut self.out) != Step::Act {
                return;
            }
            self.outcomes();
        }
    }
}

fn main() {
    let each = |time: Duration| time.as_secs_f64() * 1e9 / PAGES as f64;
    println!("{:<32} {:<10} {:>14} {:>12}", "policy", "pattern", "ns/page", "× a scan");
    for pattern in ["owned", "contested"] {
        let homes = vec![NodeId(0); PAGES as usize];
        let all = events(pattern, 0, &homes);
        let scan = || {
            let mut sums = [0u64; NODES];
            for event in black_box(&all) {
                if let Event::Accesses { node, count, .. } = event {
                    sums[node.index()] += u64::from(*count);
                }
            }
            black_box(sums);
        };
        let scan = (0..INTERVALS).map(|_| each(timed(scan))).fold(f64::INFINITY, f64::min);
        println!("{:<32} {pattern:<10} {scan:>14.1} {:>12.1}", "reading the events", 1.0);
        for spec in SPECS {
            let mut driver = Driver::new(spec);
            let mut best = f64::INFINITY;
            for i in 0..INTERVALS {
                let events = events(pattern, i, &driver.homes);
                best = best.min(each(driver.interval(&events, i)));
            }
            println!("{spec:<32} {pattern:<10} {best:>14.1} {:>12.1}", best / scan);
            println!("bench: decide/{pattern}/{} {best:.3} ns/page", spec.replace(':', "/"));
        }
    }
}
