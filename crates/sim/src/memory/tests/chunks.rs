//! Same stream, same bytes, however it is cut; and what holds for every stream and policy.

use std::sync::{Arc, Mutex};

use homenode_model::{
    Decision, DecisionBuf, Event, Interest, MigrationCost, MoveOutcome, NodeId, Ns, ObjectId, PageNo,
};
use homenode_policy::{POLICIES, Policy, PolicyContext, Step, build};
use proptest::prelude::*;

use crate::memory::testing::{Machine, PAGE, Program, check, machine, whole};
use crate::memory::{Memory, MemoryError, MemoryOptions, Outcome};
use crate::stream::{Cause, MemChunk, MemItem};
use homenode_order::step::{ByteRange, Mark};

/// A thing that a thread does between two barriers.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Access { page: u64, line: u64, write: bool, cause: u8 },
    Compute(u64),
    CacheTime(u64),
    Alloc(u64),
    Free(u64),
    NextTouch(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        8 => (0u64..40, 0u64..64, any::<bool>(), 0u8..6)
            .prop_map(|(page, line, write, cause)| Deed::Access { page, line, write, cause }),
        2 => (0u64..200).prop_map(Deed::Compute),
        1 => (0u64..90_000).prop_map(Deed::CacheTime),
        1 => (0u64..40).prop_map(Deed::Alloc),
        1 => (0u64..40).prop_map(Deed::Free),
        1 => (0u64..40).prop_map(Deed::NextTouch),
    ]
}

/// By round and thread.
fn rounds() -> impl Strategy<Value = Vec<Vec<Vec<Deed>>>> {
    (1usize..=5).prop_flat_map(|threads| {
        let thread = proptest::collection::vec(deed(), 0..25);
        proptest::collection::vec(proptest::collection::vec(thread, threads), 1..4)
    })
}

/// Thread 0 marks regions and iterations, all join at the end of a round, and a lock goes round in
/// each.
fn programs(rounds: &[Vec<Vec<Deed>>]) -> Vec<Program> {
    let threads = rounds[0].len();
    let mut programs = vec![Program::new(); threads];
    for (r, round) in (0u32..).zip(rounds) {
        let id = r * 100;
        for (t, deeds) in round.iter().enumerate() {
            let mut p = std::mem::take(&mut programs[t]);
            p = if t > 0 {
                p.wait(id, 1)
            } else {
                let region = r % 2;
                p.mark(Mark::Iteration { number: r }).mark(Mark::RegionBegin { region }).signal(id)
            };
            p = deeds.iter().fold(p, |p, deed| carry_out(p, *deed));
            p = if t > 0 { p.wait(id + 10 + t as u32, 1) } else { p };
            p = p.compute(5).signal(id + 11 + t as u32).barrier(id + 1, threads as u32);
            programs[t] = if t > 0 { p } else { p.mark(Mark::RegionEnd { region: r % 2 }) };
        }
    }
    programs
}

fn carry_out(p: Program, deed: Deed) -> Program {
    let object = |page: u64| ObjectId((page % 7) as u32);
    let range = |page: u64| ByteRange { first: page * PAGE.0 + page % 3, bytes: (page % 5) * PAGE.0 };
    match deed {
        Deed::Access { page, line, write, cause } => p.access(page, line, write, CAUSES[usize::from(cause)]),
        Deed::Compute(ticks) => p.compute(ticks),
        Deed::CacheTime(ps) => p.cache_time(ps),
        Deed::Alloc(page) => p.mark(Mark::Alloc { object: object(page), range: range(page) }),
        Deed::Free(page) => p.mark(Mark::Free { object: object(page), range: range(page) }),
        Deed::NextTouch(page) => p.mark(Mark::NextTouch { range: range(page) }),
    }
}

const CAUSES: [Cause; 6] =
    [Cause::Cold, Cause::Capacity, Cause::Coherence, Cause::Upgrade, Cause::WriteBack, Cause::Uncached];

/// Cuts every thread's items at places of its own: `cuts[i]` is what share of the rest (in 8ths)
/// chunk i takes of thread i mod threads, and the others take theirs shifted.
fn cut(programs: &[Program], cuts: &[u8]) -> Vec<MemChunk> {
    let mut rest: Vec<&[MemItem]> = programs.iter().map(|p| p.items.as_slice()).collect();
    let mut chunks = Vec::new();
    for (i, share) in cuts.iter().enumerate() {
        let mut chunk = MemChunk::default();
        for (t, items) in rest.iter_mut().enumerate() {
            let share = (usize::from(*share) + 3 * (i + t)) % 9;
            let (now, later) = items.split_at(items.len() * share / 8);
            chunk.threads.push(now.to_vec());
            *items = later;
        }
        chunks.push(chunk);
    }
    let threads = rest.into_iter().map(<[MemItem]>::to_vec).collect();
    chunks.push(MemChunk { threads, items: 0, last: true });
    chunks
}

fn busy_machine(remote_cacheable: bool, stops: bool) -> Machine {
    Machine {
        controller: 3000,
        port: 2000,
        link: 1500,
        outstanding: 3,
        pages: vec![12, 0, 30],
        migration: MigrationCost {
            fixed: Ns(700),
            per_kib: Ns(10),
            shootdown: Ns(50),
            serialised: true,
            stops,
        },
        remote_cacheable,
        ..machine(3)
    }
}

fn simulate(m: &Machine, policy: Box<dyn Policy>, chunks: &[MemChunk]) -> Result<Outcome, MemoryError> {
    let binding = [m.cpu(0, 0), m.cpu(1, 0), m.cpu(2, 0), m.cpu(0, 1), m.cpu(1, 1)];
    let mut memory = Memory::new(&m.build(), &binding, PAGE, policy, &MemoryOptions::default())?;
    for chunk in chunks {
        memory.feed(chunk)?;
    }
    let outcome = memory.finish()?;
    check(&outcome, m);
    Ok(outcome)
}

/// Wants to know everything, wakes up every so often, moves pages about, and writes down what it
/// sees.
struct Daemon {
    seen: Arc<Mutex<String>>,
    wake: Ns,
    page: u64,
    period: u64,
}

impl Policy for Daemon {
    fn interest(&self) -> Interest {
        Interest { faults: true, counts_by_region: true, counts_by_iteration: true, ..Interest::default() }
    }
    fn observe(&mut self, event: &Event) {
        *self.seen.lock().unwrap() += &format!("{event:?}\n");
    }
    fn poll(&mut self, now: Ns, out: &mut DecisionBuf) -> Step {
        if now < self.wake {
            return Step::WakeAt(self.wake);
        }
        *self.seen.lock().unwrap() += &format!("awake at {now}\n");
        // A period of 0 asks to be polled again at once.
        self.wake = Ns(now.0 + self.period);
        self.page += 1;
        if self.period == 0 && !self.page.is_multiple_of(3) {
            return Step::WakeAt(now);
        }
        let page = PageNo(self.page * 7 % 40);
        out.push(Decision::Move { page, to: NodeId((self.page % 4) as u16) });
        Step::Act
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        *self.seen.lock().unwrap() += &format!("{outcome:?}\n");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cuts_do_not_show(
        rounds in rounds(),
        cuts in proptest::collection::vec(0u8..9, 0..12),
        policy in 0..POLICIES.len(),
        remote_cacheable: bool,
        stops: bool,
    ) {
        let m = busy_machine(remote_cacheable, stops);
        let programs = programs(&rounds);
        let spec = POLICIES[policy].name;
        let make = || build(spec, &PolicyContext::of(&m.build(), PAGE).with_plan(Default::default())).unwrap();
        let one = simulate(&m, make(), &[whole(&programs)]);
        let many = simulate(&m, make(), &cut(&programs, &cuts));
        prop_assert_eq!(format!("{:?}", one), format!("{:?}", many));
        prop_assert_eq!(one, many);
    }

    #[test]
    fn cuts_do_not_show_to_a_policy_that_wakes(
        rounds in rounds(),
        cuts in proptest::collection::vec(0u8..9, 0..12),
        period in prop_oneof![Just(0u64), Just(1), 1u64..3000],
    ) {
        let m = busy_machine(true, false);
        let programs = programs(&rounds);
        let run = |chunks: &[MemChunk]| {
            let seen = Arc::new(Mutex::new(String::new()));
            let policy = Daemon { seen: seen.clone(), wake: Ns(40), page: 0, period };
            let outcome = simulate(&m, Box::new(policy), chunks);
            let seen = seen.lock().unwrap().clone();
            (outcome, seen)
        };
        let (one, saw_one) = run(&[whole(&programs)]);
        let (many, saw_many) = run(&cut(&programs, &cuts));
        prop_assert_eq!(saw_one, saw_many);
        prop_assert_eq!(one, many);
    }
}

/// Thread 1 meets remote memory all the time, and thread 0 computes: the items of thread 1 wait
/// until the last chunk says that thread 0 has nothing to do before the barrier.
#[test]
fn items_that_wait_in_a_file_do_not_show() {
    let m = machine(2);
    let begin = Program::new().reads(0..40, 1).barrier(0, 2);
    let fast = begin.clone().compute(1_000_000).barrier(1, 2).end();
    let slow = begin.reads(0..40, 1000).compute(7).barrier(1, 2).end();
    let chunks = cut(&[fast, slow], &[1; 60]);
    let simulate = |held: usize| {
        let mut memory = m.memory(&m.spread(), "first-touch");
        memory.held = held;
        let mut most = 0;
        for chunk in &chunks {
            memory.feed(chunk).unwrap();
            most = most.max(memory.threads.iter().map(super::super::thread::Thread::items_in_memory).sum());
        }
        let outcome = memory.finish().unwrap();
        check(&outcome, &m);
        (outcome, most)
    };
    let ((all, most_of_all), (few, most_of_few)) = (simulate(usize::MAX), simulate(100));
    assert_eq!(all, few);
    assert!(most_of_all > 30_000, "{most_of_all} of 40 000 items wait");
    assert!(most_of_few < 15_000, "{most_of_few} items in memory");
}

#[test]
fn counts_are_told_in_order_before_the_mark() {
    let m = machine(2);
    let seen = Arc::new(Mutex::new(String::new()));
    let policy = Daemon { seen: seen.clone(), wake: Ns::MAX, page: 0, period: 0 };
    let p = |p: Program| p.reads(1..3, 2).access(1, 9, true, Cause::Cold);
    let p0 = p(Program::new().mark(Mark::RegionBegin { region: 5 }).signal(0)).signal(1).wait(1, 2);
    let p0 = p0.mark(Mark::RegionEnd { region: 5 }).mark(Mark::Iteration { number: 0 });
    let chunk = whole(&[p0, p(Program::new().wait(0, 1)).signal(1)]);
    let mut memory =
        Memory::new(&m.build(), &m.spread(), PAGE, Box::new(policy), &MemoryOptions::default()).unwrap();
    memory.feed(&chunk).unwrap();
    memory.finish().unwrap();
    let seen = seen.lock().unwrap();
    let told: Vec<&str> = seen.lines().skip_while(|l| !l.starts_with("Accesses")).collect();
    let cells: Vec<String> = [(1, 0, "Read", 2), (1, 0, "Write", 1), (1, 1, "Read", 2), (1, 1, "Write", 1)]
        .into_iter()
        .chain([(2, 0, "Read", 2), (2, 1, "Read", 2)])
        .map(|(page, node, kind, count)| {
            format!(
                "Accesses {{ page: PageNo({page}), home: NodeId(0), node: NodeId({node}), kind: {kind}, count: {count} }}"
            )
        })
        .collect();
    assert_eq!(told[..6], cells);
    assert_eq!(told[6..], ["RegionEnd { region: 5 }", "Iteration { number: 0 }"]);
}
