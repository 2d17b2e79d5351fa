//! Are pages moved rightly, and charged to the right thread?

use homenode_model::{MigrationCost, NodeId, Ns, Ps};

use crate::memory::testing::{Machine, PAGE, Program, machine};
use crate::memory::{MemoryOptions, MoveWorker};
use crate::stream::Cause;
use homenode_order::step::{ByteRange, Mark};

const COST: MigrationCost =
    MigrationCost { fixed: Ns(2_000), per_kib: Ns(100), shootdown: Ns(30), serialised: false, stops: false };
/// 2 µs + 4 KiB · 100 ns + 3 other threads · 30 ns.
const EACH: u64 = 2_490;

fn all(pages: u64) -> Mark {
    Mark::NextTouch { range: ByteRange { first: 0, bytes: pages * PAGE.0 } }
}

/// Serial initialisation of 80 pages; next touch; then `rounds` iterations in which each of four
/// threads reads its own 20 pages.
fn si_mig(rounds: u32) -> Vec<Program> {
    let thread = |t: u64| {
        let mut p = if t == 0 { Program::new().reads(0..80, 1).mark(all(80)) } else { Program::new() };
        for round in 0..rounds {
            if t == 0 {
                p = p.mark(Mark::Iteration { number: round }).signal(2 * round);
            } else {
                p = p.wait(2 * round, 1);
            }
            p = p.reads(20 * t..20 * (t + 1), 1).signal(2 * round + 1);
            if t == 0 {
                p = p.wait(2 * round + 1, 4);
            }
        }
        if t == 0 { p.mark(Mark::Iteration { number: rounds }) } else { p.wait(2 * rounds - 1, 4) }
    };
    (0..4).map(thread).collect()
}

#[test]
fn next_touch_moves_each_page_once_and_then_all_is_local() {
    let m = Machine { migration: COST, ..machine(4) };
    let out = m.run(&m.spread(), "next-touch", &si_mig(3));
    assert_eq!((out.moved, out.touches), (60, 80));
    assert_eq!(out.used, [20; 4]);
    assert_eq!(out.timed_counts.total(), (240, 0), "moved before the access that touched it");
    // Löf, Fig. 1: the whole overhead is in the first iteration, 20 moves a thread.
    let plain = 20 * 100;
    assert_eq!(out.iterations(), [plain + 20 * EACH, plain, plain].map(|n| Ns(n).ps()));
    assert_eq!(out.migration, Ns(60 * EACH).ps());
    let moving: Vec<_> = out.threads.iter().map(|t| t.moving).collect();
    assert_eq!(moving, [0, 20, 20, 20].map(|n| Ns(n * EACH).ps()));
    assert_eq!(out.migrations.len(), 60);
    assert_eq!(out.latency.actual, out.latency.bound);
}

#[test]
fn a_touch_that_hits_in_the_caches_moves_the_page_too() {
    let m = Machine { migration: COST, ..machine(4) };
    let first = Program::new().reads(0..2, 1).mark(all(2)).signal(0).wait(1, 1);
    let second = Program::new().wait(0, 1).touch(1).touch(1).touch(7).signal(1);
    let out = m.run(&m.spread(), "next-touch", &[first, second]);
    assert_eq!((out.moved, out.touches, out.faults), (1, 1, 2));
    assert_eq!(out.placement.home(homenode_model::PageNo(1)), Some(NodeId(1)));
    assert_eq!(out.counts.total(), (2, 0), "a touch is no access");
}

#[test]
fn serialised_moves_take_turns() {
    let m = Machine { migration: MigrationCost { serialised: true, ..COST }, ..machine(4) };
    let out = m.run(&m.spread(), "next-touch", &si_mig(2));
    assert_eq!(out.moved, 60);
    // The lock is never idle; the last mover still makes its access.
    assert_eq!(out.iterations(), [60 * EACH + 100, 2_000].map(|n| Ns(n).ps()));
    assert!(out.migrations.is_sorted_by(|a, b| a.at + Ns(EACH).ps() <= b.at));
}

#[test]
fn nothing_is_computed_beside_a_move_that_stops_the_machine() {
    let m = Machine { migration: MigrationCost { serialised: true, stops: true, ..COST }, ..machine(4) };
    let out = m.run(&m.spread(), "next-touch", &si_mig(2));
    assert_eq!(out.moved, 60);
    assert_eq!(out.iterations(), [60 * EACH + 2_000, 2_000].map(|n| Ns(n).ps()), "one after the other");
    assert_eq!(out.migration, Ns(60 * EACH).ps(), "the movers' time alone");
}

#[test]
fn requests_arm_whole_pages_that_have_a_home() {
    let m = Machine { migration: COST, ..machine(2) };
    let range = ByteRange { first: 1, bytes: 4 * PAGE.0 };
    let p0 = Program::new().reads(0..3, 1).mark(Mark::NextTouch { range }).signal(0).end();
    let p1 = Program::new().wait(0, 1).reads(0..4, 2).end();
    let out = m.run(&m.spread(), "next-touch", &[p0, p1]);
    // Page 0 is partly outside, page 3 has no home: a fault, not a move.
    assert_eq!((out.moved, out.touches, out.faults), (2, 2, 4));
    assert_eq!(out.used, [1, 3]);
}

#[test]
fn the_first_of_several_touchers_gets_the_page() {
    let m = machine(3);
    let p0 = Program::new().read(0).mark(all(1)).signal(0).wait(1, 2).end();
    let p = |ticks| Program::new().wait(0, 1).compute(ticks).read(0).signal(1).end();
    let out = m.run(&m.spread(), "next-touch", &[p0, p(20), p(10)]);
    assert_eq!((out.moved, out.used), (1, vec![0, 0, 1]));
}

#[test]
fn a_full_node_takes_no_more_pages() {
    let m = Machine { pages: vec![1000, 5], ..machine(2) };
    let p0 = Program::new().reads(0..20, 1).mark(all(20)).signal(0).end();
    let p1 = Program::new().wait(0, 1).reads(0..20, 2).end();
    let out = m.run(&m.spread(), "next-touch", &[p0, p1]);
    assert_eq!((out.moved, out.moves_refused, out.used), (5, 0, vec![15, 5]));
}

#[test]
fn a_node_of_cpus_alone_homes_nothing() {
    let m = Machine { pages: vec![0, 4, 1000], ..machine(3) };
    for policy in homenode_policy::POLICIES {
        let spec = if policy.name == "one-node" { "one-node:node=1" } else { policy.name };
        let p0 = Program::new().reads(0..9, 1).mark(all(9)).signal(0).end();
        let p1 = Program::new().wait(0, 1).reads(0..9, 1).end();
        let out = m.run(&[m.cpu(0, 0), m.cpu(1, 0)], spec, &[p0, p1]);
        assert_eq!(out.used[0], 0, "{spec}");
        assert_eq!(out.used.iter().sum::<u64>(), 9, "{spec}");
    }
}

#[test]
fn copies_keep_controllers_busy() {
    let m = Machine { migration: COST, controller: 4096, ..machine(2) };
    let p0 = Program::new().read(0).mark(all(1)).signal(0).end();
    let p1 = Program::new().wait(0, 1).access(0, 1, false, Cause::Cold).end();
    let out = m.run(&m.spread(), "next-touch", &[p0, p1]);
    let line = 15_625;
    assert_eq!(out.controllers, [Ps(line + 1_000_000), Ps(line + 1_000_000)]);
    assert_eq!(out.histogram.total(homenode_model::PageNo(0), NodeId(1)), 1);
}

#[test]
fn others_go_on_while_a_thread_moves_a_page() {
    // Thread 1 traps at 0 and is away for 2.4 µs; thread 2 reads from the same controller meanwhile
    // and queues for nobody.
    let m = Machine { migration: COST, controller: 100_000, ..machine(2) };
    let p0 = Program::new().reads(0..1, 1).mark(all(1)).signal(0).end();
    let p1 = Program::new().wait(0, 1).read(0).end();
    let p2 = Program::new().wait(0, 1).compute(200).read(1).end();
    let out = m.run(&[m.cpu(0, 0), m.cpu(1, 0), m.cpu(1, 1)], "next-touch", &[p0, p1, p2]);
    // Thread 0 has ended, so that one other TLB is shot down, not three.
    let move_ns = EACH - 2 * 30;
    assert_eq!(out.threads[1].end, Ns(100 + move_ns + 100).ps());
    assert_eq!(out.threads[2].end, Ns(100 + 200 + 100).ps());
}

#[test]
fn a_trap_waits_for_the_accesses_before_it() {
    let m = Machine { migration: COST, outstanding: 8, ..machine(2) };
    let p0 = Program::new().reads(0..2, 1).mark(all(1)).signal(0).end();
    let p1 = Program::new().wait(0, 1).read(1).compute(10).read(0).end();
    let out = m.run(&m.spread(), "next-touch", &[p0, p1]);
    // Armed at 100; page 1 is read until 100 + 250, and only then is page 0 moved.
    assert_eq!(out.migrations.iter().map(|m| m.at).collect::<Vec<_>>(), [Ns(350).ps()]);
    assert_eq!(out.threads[1].memory, Ns(240 + 100).ps());
}

#[test]
fn an_engine_apart_holds_nobody_up_and_places_as_many_pages_as_it_has_time_for() {
    let apart = MemoryOptions { mover: MoveWorker::Apart, ..MemoryOptions::default() };
    let m = Machine { migration: COST, options: apart, ..machine(4) };
    let at_once = m.run(&m.spread(), "competitive:horizon=0", &si_mig(4));
    assert_eq!((at_once.moved, at_once.migration), (60, Ns(60 * EACH).ps()));
    assert!(at_once.threads.iter().all(|t| t.moving == Ps::ZERO));
    // The first iteration is remote, the second local at once.
    assert_eq!(at_once.iterations(), [5_000, 2_000, 2_000, 2_000].map(|n| Ns(n).ps()));
    // An iteration of at most 5 µs has room for two or three moves of 2.49 µs.
    let paced = m.run(&m.spread(), "competitive:horizon=0,pace=2490ns", &si_mig(4));
    assert!((4..=8).contains(&paced.moved), "{} moves", paced.moved);
    assert!(paced.threads.iter().all(|t| t.moving == Ps::ZERO));
    assert!(paced.migrations.is_sorted_by(|a, b| a.at + Ns(EACH).ps() <= b.at), "one after the other");
}
