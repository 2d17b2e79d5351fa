//! Does it match theory where something queues?

use homenode_model::{Bytes, MbPerS, Ps};
use proptest::prelude::*;

use crate::memory::testing::{Machine, Program, machine};
use crate::stream::Cause;

/// Many, so that filling the pipe at the beginning (a latency, 0.8 % of 6400 lines at 17 GB/s) does
/// not show.
const ACCESSES: u64 = 64_000;

/// Within 1 % of each other.
fn near(a: Ps, b: Ps) -> bool {
    a.0.abs_diff(b.0) * 100 <= a.0.max(b.0)
}

/// Time of `ACCESSES` lines at `mb` MB/s.
fn at(mb: u64) -> Ps {
    MbPerS(mb).occupancy(Bytes(64 * ACCESSES))
}

fn stream() -> Program {
    Program::new().reads(0..100, ACCESSES / 100).end()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_stream_runs_at_the_slowest_of_controller_port_and_link(
        controller in 500u64..20_000, port in 500u64..20_000, link in 500u64..20_000
    ) {
        let m = Machine { controller, port, link, outstanding: 256, ..machine(2) };
        let far = m.run(&m.spread()[..1], "one-node:node=1", &[stream()]);
        prop_assert!(near(far.time, at(controller.min(port).min(link))), "{} {}", far.time, at(controller));
        let home = m.run(&m.spread()[..1], "one-node:node=0", &[stream()]);
        prop_assert!(near(home.time, at(controller)));
    }

    #[test]
    fn threads_share_a_controller_evenly(threads in 1u32..=4, controller in 500u64..5000) {
        let m = Machine { controller, outstanding: 64, ..machine(1) };
        let binding: Vec<_> = (0..threads).map(|i| m.cpu(0, i)).collect();
        let programs: Vec<_> = (0..threads).map(|_| stream()).collect();
        let out = m.run(&binding, "first-touch", &programs);
        let all = at(controller).times(u64::from(threads));
        prop_assert!(near(out.time, all));
        prop_assert!(out.threads.iter().all(|t| near(t.end, all)));
        prop_assert!(near(out.controllers[0], all));
    }
}

#[test]
fn blocking_threads_fill_a_controller_no_further_than_they_ask() {
    // 2 threads, 100 ns latency, 64 ns at the controller: each wants a line every 100 ns, the two
    // get one every 64.
    let m = Machine { controller: 1000, ..machine(1) };
    let binding = [m.cpu(0, 0), m.cpu(0, 1)];
    let one = m.run(&binding[..1], "first-touch", &[stream()]);
    assert_eq!(one.time, Ps(ACCESSES * 100_000));
    let two = m.run(&binding, "first-touch", &[stream(), stream()]);
    assert!(near(two.time, Ps(2 * ACCESSES * 64_000)), "{}", two.time);
}

#[test]
fn a_slow_link_does_not_slow_down_the_home_node() {
    // The remote thread's queue is at the link; the controller has room for both.
    let m = Machine { controller: 100_000, link: 500, outstanding: 16, ..machine(2) };
    let alone = m.run(&m.spread(), "one-node:node=0", &[stream(), Program::new().end()]);
    let both = m.run(&m.spread(), "one-node:node=0", &[stream(), stream()]);
    assert!(near(alone.threads[0].end, both.threads[0].end));
    assert!(near(both.threads[1].end, at(500)));
}

#[test]
fn the_two_directions_of_a_link_are_apart() {
    let m = Machine { link: 1000, outstanding: 64, ..machine(2) };
    let p = |first: u64| Program::new().reads(first..first + 50, 64).end();
    // Node 0 reads from 1 and node 1 from 0: page parity is round robin's home.
    let odd = |parity: u64| {
        (0..3200)
            .fold(Program::new(), |p, i| p.access(i % 50 * 2 + parity, i / 50, false, Cause::Capacity))
            .end()
    };
    let crossing = m.run(&m.spread(), "round-robin", &[odd(1), odd(0)]);
    assert_eq!(crossing.counts.total(), (0, 6400));
    assert!(near(crossing.time, Ps(3200 * 64_000)));
    let same = [m.cpu(0, 0), m.cpu(0, 1)];
    let sharing = m.run(&same, "one-node:node=1", &[p(0), p(50)]);
    assert!(near(sharing.time, Ps(6400 * 64_000)));
}

#[test]
fn write_backs_take_bandwidth_and_nobody_waits() {
    let m = Machine { controller: 1000, ..machine(1) };
    let backs = |p: Program| (0..50).fold(p, |p, i| p.access(0, i, true, Cause::WriteBack));
    let out = m.run(&m.spread(), "first-touch", &[backs(Program::new().read(0)).end()]);
    assert_eq!(out.time, Ps(100_000));
    assert_eq!(out.controllers, [Ps(51 * 64_000)]);
    // The next read stands behind them: 50 lines less what has passed since the first read began.
    let out = m.run(&m.spread(), "first-touch", &[backs(Program::new().read(0)).read(0).end()]);
    assert_eq!(out.time, Ps(100_000 + 50 * 64_000 + 100_000));
    assert_eq!(out.queued, Ps(50 * 64_000));
}
