//! Do threads wait for each other rightly?

use homenode_model::{Ns, ObjectId, Ps, ThreadId};

use crate::memory::MemoryError;
use crate::memory::testing::{Machine, Program, machine};
use homenode_order::step::{ByteRange, Mark, SyncId};

fn four(m: &Machine) -> Vec<homenode_model::CpuId> {
    (0..4).map(|i| m.cpu(0, i)).collect()
}

#[test]
fn a_barrier_waits_for_the_last() {
    let m = machine(1);
    let p = |t: u64| Program::new().compute(10 * t).barrier(0, 4).compute(5).barrier(1, 4).end();
    let out = m.run(&four(&m), "first-touch", &[p(1), p(4), p(2), p(3)]);
    assert!(out.threads.iter().all(|t| t.end == Ns(45).ps()));
    assert_eq!(out.threads.iter().map(|t| t.wait).collect::<Vec<_>>(), [30, 0, 20, 10].map(|n| Ns(n).ps()));
}

#[test]
fn a_barrier_waits_for_accesses_under_way() {
    let m = Machine { outstanding: 8, ..machine(1) };
    let out = m.run(
        &four(&m)[..2],
        "first-touch",
        &[Program::new().read(0).barrier(0, 2), Program::new().barrier(0, 2)],
    );
    assert!(out.threads.iter().all(|t| t.end == Ns(100).ps()));
    assert_eq!((out.threads[0].wait, out.threads[1].wait), (Ps::ZERO, Ns(100).ps()));
}

#[test]
fn a_lock_is_held_by_one_after_the_other() {
    // Ticket i may enter when ticket i − 1 has left; tickets were drawn in the order of the
    // recording.
    let m = machine(1);
    let p = |ticket: u32| {
        let p = Program::new().compute(3);
        let p = if ticket > 0 { p.wait(ticket - 1, 1) } else { p };
        p.compute(20).signal(ticket).compute(1).end()
    };
    let out = m.run(&four(&m), "first-touch", &[p(2), p(0), p(3), p(1)]);
    let ends: Vec<_> = out.threads.iter().map(|t| t.end).collect();
    assert_eq!(ends, [3, 1, 4, 2].map(|n| Ns(3 + 20 * n + 1).ps()));
}

#[test]
fn late_waiters_of_one_counter_may_want_different_numbers() {
    let m = machine(1);
    let signals = Program::new().compute(10).signal(0).compute(10).signal(0).compute(10).signal(0).end();
    let out = m.run(
        &four(&m),
        "first-touch",
        &[Program::new().wait(0, 3), Program::new().wait(0, 1), signals, Program::new().wait(0, 2)],
    );
    let ends: Vec<_> = out.threads.iter().map(|t| t.end).collect();
    assert_eq!(ends, [30, 10, 30, 20].map(|n| Ns(n).ps()));
}

#[test]
fn a_thread_that_nobody_wakes_is_an_error() {
    let m = machine(1);
    let p = [Program::new().signal(7).end(), Program::new().wait(7, 2)];
    let error = m.try_run(&four(&m)[..2], "first-touch", &p).unwrap_err();
    assert_eq!(error, MemoryError::Deadlock { thread: ThreadId(1), id: SyncId(7), wants: 2, had: 1 });
}

#[test]
fn equal_times_go_by_thread_index() {
    // Both fault on page 0 at time 0: thread 0 is on node 1.
    let m = machine(2);
    let out =
        m.run(&[m.cpu(1, 0), m.cpu(0, 0)], "first-touch", &[Program::new().read(0), Program::new().read(0)]);
    assert_eq!(out.used, [0, 1]);
}

#[test]
fn freed_pages_fault_again() {
    let m = machine(2);
    let object = ObjectId(0);
    let range = ByteRange { first: 100, bytes: 3 * 4096 };
    let first = Program::new().mark(Mark::Alloc { object, range }).reads(0..4, 1);
    let p0 = first.mark(Mark::Free { object, range }).signal(0).end();
    let p1 = Program::new().wait(0, 1).reads(0..4, 1).end();
    let out = m.run(&m.spread(), "first-touch", &[p0, p1]);
    // Pages 1 and 2 lie wholly inside.
    assert_eq!((out.used, out.faults), (vec![2, 2], 6));
    assert_eq!(out.counts.total(), (6, 2));
}
