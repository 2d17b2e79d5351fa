//! The bound holds for every policy, and is met where it should be.

use std::sync::Arc;

use homenode_model::{Bytes, CpuId, MigrationCost, NodeId, Ns, PageNo, Placement, Ps};
use homenode_policy::{POLICIES, Policy, PolicyContext, build};
use proptest::prelude::*;

use super::{Script, Tally, Yardsticks};
use crate::memory::testing::{Machine, PAGE, Program, machine, whole};
use crate::memory::{Memory, MemoryOptions, Outcome, Percent};
use crate::stream::Cause;
use homenode_order::step::{ByteRange, Mark};

/// Reads of page p by thread t in round r: `rounds[r][t]` lists (page, times).
type Rounds = Vec<Vec<Vec<(u64, u64)>>>;

/// One program a thread: rounds between barriers, thread 0 marks the iterations.
fn programs(rounds: &Rounds, threads: usize) -> Vec<Program> {
    let n = threads as u32;
    let mut all = vec![Program::new(); threads];
    let mut barrier = 0;
    let mut meet = |all: &mut Vec<Program>| {
        for p in all.iter_mut() {
            *p = std::mem::take(p).barrier(barrier, n);
        }
        barrier += 1;
    };
    let mark = |all: &mut Vec<Program>, number: usize| {
        all[0] = std::mem::take(&mut all[0]).mark(Mark::Iteration { number: number as u32 });
    };
    for (number, round) in rounds.iter().enumerate() {
        mark(&mut all, number);
        meet(&mut all);
        for (p, work) in all.iter_mut().zip(round) {
            for (page, times) in work {
                *p = std::mem::take(p).reads(*page..*page + 1, *times).compute(3);
            }
        }
        meet(&mut all);
    }
    mark(&mut all, rounds.len());
    all.into_iter().map(Program::end).collect()
}

fn yardsticks(machine: &Machine, binding: &[CpuId], programs: &[Program]) -> Yardsticks {
    tallied(machine, binding, &MemoryOptions::default(), programs)
}

fn tallied(
    machine: &Machine,
    binding: &[CpuId],
    options: &MemoryOptions,
    programs: &[Program],
) -> Yardsticks {
    let mut tally = Tally::new(&machine.build(), binding, PAGE, options).unwrap();
    tally.feed(&whole(programs)).unwrap();
    tally.finish()
}

fn driven(
    machine: &Machine,
    binding: &[CpuId],
    options: &MemoryOptions,
    policy: Box<dyn Policy>,
    programs: &[Program],
) -> Outcome {
    let mut memory = Memory::new(&machine.build(), binding, PAGE, policy, options).unwrap();
    memory.feed(&whole(programs)).unwrap();
    memory.finish().unwrap()
}

fn scripted(
    machine: &Machine,
    binding: &[CpuId],
    way: super::path::HomePath,
    programs: &[Program],
) -> Outcome {
    let script = Box::new(Script::new(Arc::new(way)));
    driven(machine, binding, &MemoryOptions::default(), script, programs)
}

/// Two nodes, moves of 2 us, one at a time.
fn costly() -> Machine {
    let migration =
        MigrationCost { fixed: Ns(2000), per_kib: Ns(0), shootdown: Ns(10), serialised: true, stops: false };
    Machine { migration, ..machine(2) }
}

fn rounds(threads: usize) -> impl Strategy<Value = Rounds> {
    let work = proptest::collection::vec((0u64..6, 1u64..60), 0..4);
    proptest::collection::vec(proptest::collection::vec(work, threads), 1..5)
}

proptest! {
    #[test]
    fn no_policy_is_below_the_bound(
        rounds in rounds(4),
        outstanding in 1u32..4,
        controller in prop_oneof![Just(0u64), Just(400)],
        coverage in 0u8..101,
    ) {
        let machine = Machine { outstanding, controller, cpus: 2, ..costly() };
        let binding: Vec<CpuId> = (0..4).map(CpuId).collect();
        let options = MemoryOptions { coverage: Percent::new(coverage).unwrap(), ..MemoryOptions::default() };
        let programs = programs(&rounds, 4);
        let y = tallied(&machine, &binding, &options, &programs);
        let context = PolicyContext::of(&machine.build(), PAGE);
        prop_assert!(y.floor <= y.bound);
        prop_assert_eq!(y.approximate, 0);
        for policy in POLICIES.iter().filter(|p| p.name != "plan") {
            let policy_made = build(policy.name, &context).unwrap();
            let outcome = driven(&machine, &binding, &options, policy_made, &programs);
            if outcome.replicated > 0 {
                continue;
            }
            let timed = outcome.timed;
            prop_assert!(y.bound <= timed, "{}: {timed} is below the bound of {}", policy.name, y.bound);
        }
        let script = Box::new(Script::new(Arc::new(y.way.unwrap())));
        prop_assert!(y.bound <= driven(&machine, &binding, &options, script, &programs).timed);
    }

    #[test]
    fn search_never_raises_its_measure(rounds in rounds(4), start in proptest::collection::vec(0u16..2, 6)) {
        let machine = Machine { cpus: 2, controller: 400, ..costly() };
        let binding: Vec<CpuId> = (0..4).map(CpuId).collect();
        let search = yardsticks(&machine, &binding, &programs(&rounds, 4)).search;
        let mut from = Placement::new();
        (0u64..).zip(start).for_each(|(p, n)| from.set(PageNo(p), NodeId(n)));
        let to = search.improve(&from);
        prop_assert!(search.measure(&to) <= search.measure(&from));
    }

    /// Where a stream is cut does not show.
    #[test]
    fn chunks_do_not_show(rounds in rounds(3), cuts in proptest::collection::vec(0usize..200, 3)) {
        let machine = Machine { nodes: 3, pages: vec![100; 3], ..costly() };
        let programs = programs(&rounds, 3);
        let binding = machine.spread();
        let one = yardsticks(&machine, &binding, &programs);
        let mut tally = Tally::new(&machine.build(), &binding, PAGE, &MemoryOptions::default()).unwrap();
        let mut chunk = whole(&programs);
        let mut rest = chunk.clone();
        for (t, cut) in cuts.into_iter().enumerate() {
            let cut = cut.min(chunk.threads[t].len());
            rest.threads[t] = chunk.threads[t].split_off(cut);
        }
        tally.feed(&chunk).unwrap();
        tally.feed(&rest).unwrap();
        let two = tally.finish();
        prop_assert_eq!((one.floor, one.bound, one.way), (two.floor, two.bound, two.way));
    }
}

#[test]
fn an_uncontested_program_meets_its_bound() {
    let rounds: Rounds = vec![vec![vec![(0, 50)], vec![(1, 50)]]; 3];
    let machine = costly();
    let y = yardsticks(&machine, &machine.spread(), &programs(&rounds, 2));
    // 50 reads at 100 ns and 3 ticks of 1 ns a round.
    assert_eq!((y.floor, y.bound), (Ps(3 * 5_003_000), Ps(3 * 5_003_000)));
    assert_eq!(machine.run(&machine.spread(), "first-touch", &programs(&rounds, 2)).timed, y.bound);
    assert_eq!(y.epochs, 3);
}

#[test]
fn the_way_follows_a_page_whose_user_changes() {
    let mine = |t: usize| (0..2).map(|i| if i == t { vec![(0, 500)] } else { vec![] }).collect();
    let rounds: Rounds = vec![mine(0), mine(0), mine(1), mine(1)];
    let machine = costly();
    let programs = programs(&rounds, 2);
    let y = yardsticks(&machine, &machine.spread(), &programs);
    let way = y.way.unwrap();
    assert_eq!(way.first.home(PageNo(0)), Some(NodeId(0)));
    assert_eq!(way.moves, [(2, PageNo(0), NodeId(1))]);
    let outcome = scripted(&machine, &machine.spread(), way, &programs);
    assert_eq!((outcome.moved, outcome.timed_counts.total().1), (1, 0));
}

#[test]
fn a_page_never_moves_for_less_than_it_costs() {
    // Ten reads save 1.5 us, a move costs 2.01.
    let mine = |t: usize| (0..2).map(|i| if i == t { vec![(0, 10)] } else { vec![] }).collect();
    let rounds: Rounds = vec![mine(0), mine(1), mine(0), mine(1)];
    let machine = costly();
    let way = yardsticks(&machine, &machine.spread(), &programs(&rounds, 2)).way.unwrap();
    assert_eq!(way.moves, []);
}

#[test]
fn search_levels_what_nobody_owns() {
    // Both nodes read eight pages alike; all on node 0 makes node 1 the slower.
    let all: Vec<(u64, u64)> = (0..8).map(|p| (p, 20)).collect();
    let rounds: Rounds = vec![vec![all.clone(), all]];
    let machine = costly();
    let y = yardsticks(&machine, &machine.spread(), &programs(&rounds, 2));
    let cheapest = y.search.cheapest();
    assert_eq!(cheapest.iter().filter(|(_, n)| *n == NodeId(0)).count(), 8, "ties go to the smaller node");
    let level = y.search.improve(&cheapest);
    assert_eq!(level.iter().filter(|(_, n)| *n == NodeId(0)).count(), 4);
}

#[test]
fn a_freed_page_starts_anew() {
    let page = ByteRange { first: 0, bytes: PAGE.0 };
    let free = Mark::Free { object: homenode_model::ObjectId(0), range: page };
    let read = |p: Program| p.access(0, 0, false, Cause::Cold);
    let first = (0..100).fold(Program::new().mark(Mark::Iteration { number: 0 }), |p, _| read(p));
    let first = first.mark(free).mark(Mark::Iteration { number: 1 }).signal(0).wait(1, 1);
    let second = (0..100).fold(Program::new().wait(0, 1), |p, _| read(p)).signal(1).end();
    let machine = costly();
    let programs = [first.mark(Mark::Iteration { number: 2 }).end(), second];
    let y = yardsticks(&machine, &machine.spread(), &programs);
    assert_eq!(y.bound, Ps(200 * 100_000), "a new life costs no move");
}

#[test]
fn hostile_streams_are_refused() {
    let machine = machine(2);
    let mut tally = Tally::new(&machine.build(), &machine.spread(), PAGE, &MemoryOptions::default()).unwrap();
    assert!(tally.feed(&whole(&[Program::new().read(1 << 40)])).is_err());
    let wide =
        Mark::Free { object: homenode_model::ObjectId(0), range: ByteRange { first: 0, bytes: u64::MAX } };
    assert!(tally.feed(&whole(&[Program::new().mark(wide)])).is_err());
    assert!(tally.feed(&whole(&[Program::new(), Program::new(), Program::new()])).is_err());
    assert!(Tally::new(&machine.build(), &[CpuId(99)], Bytes(4096), &MemoryOptions::default()).is_err());
}
