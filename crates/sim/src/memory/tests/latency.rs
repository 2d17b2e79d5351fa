//! Does it match theory where nothing queues?

use homenode_model::{NodeId, Ns, PageNo, Ps};

use crate::memory::testing::{Machine, Program, machine};
use crate::stream::Cause;
use homenode_order::step::Mark;

#[test]
fn a_blocking_chase_takes_the_matrix_entry_an_access() {
    let m = machine(2);
    for (policy, ns) in [("one-node:node=0", 100), ("one-node:node=1", 250)] {
        let out = m.run(&m.spread()[..1], policy, &[Program::new().reads(0..10, 64)]);
        assert_eq!(out.time, Ns(640 * ns).ps(), "{policy}");
        assert_eq!(out.threads[0].memory, out.time);
        assert_eq!(out.latency.actual, out.time);
    }
}

#[test]
fn a_wider_window_hides_latency_up_to_its_width() {
    // 64 accesses to one page, w under way: 64 / w rounds of 100 ns.
    for w in [1, 2, 4, 8] {
        let m = Machine { outstanding: w, ..machine(1) };
        let out = m.run(&m.spread(), "first-touch", &[Program::new().reads(0..1, 64)]);
        assert_eq!(out.time, Ns(64 / u64::from(w) * 100).ps(), "{w} outstanding");
    }
}

#[test]
fn computing_and_cache_time_add_up() {
    let m = machine(1);
    let p =
        Program::new().compute(7).read(0).compute(5).cache_time(1_500).compute(1).read(0).compute(2).end();
    let out = m.run(&m.spread(), "first-touch", &[p]);
    assert_eq!(out.time, Ps((7 + 5 + 1 + 2) * 1000 + 1_500 + 2 * 100_000));
    assert_eq!(out.threads[0].busy, Ps(16_500));
}

#[test]
fn hits_of_outer_caches_overlap_as_misses_do() {
    let time = |outstanding, p: Program| {
        let m = Machine { outstanding, ..machine(1) };
        m.run(&m.spread(), "first-touch", &[p.end()]).time
    };
    // 60 hits of 20 ns are never slower than 60 misses of 100 ns, and hide behind computing.
    for w in [1, 2, 3, 4, 12] {
        let (hits, misses) = (Program::new().cache_time(60 * 20_000), Program::new().reads(0..1, 60));
        let (hits, misses) = (time(w, hits), time(w, misses));
        assert_eq!(hits, Ps((60 * 20_000_u64).div_ceil(u64::from(w))), "{w} outstanding");
        assert!(hits < misses, "{w} outstanding: {hits} {misses}");
        let hidden = time(w, Program::new().compute(5_000).cache_time(60 * 20_000));
        assert_eq!(hidden, Ps(5_000_000 + if w == 1 { 60 * 20_000 } else { 0 }), "{w} outstanding");
    }
}

#[test]
fn computing_overlaps_with_accesses_under_way() {
    // Two under way at most: the second is issued 30 ns after the first and waits for that one,
    // then for itself.
    let m = Machine { outstanding: 2, ..machine(1) };
    let out = m.run(&m.spread(), "first-touch", &[Program::new().read(0).compute(30).read(0).end()]);
    assert_eq!(out.time, Ns(130).ps());
}

#[test]
fn an_upgrade_is_a_round_trip_without_data() {
    let m = Machine { controller: 1, ..machine(2) };
    let p = Program::new().access(0, 0, true, Cause::Upgrade).access(0, 1, true, Cause::Upgrade);
    let out = m.run(&m.spread()[..1], "one-node:node=1", &[p]);
    assert_eq!(out.time, Ns(500).ps());
    assert_eq!(out.controllers, [Ps::ZERO; 2]);
    assert_eq!((out.counts.total(), out.counts.by_cause(Cause::Upgrade)), ((0, 0), (0, 2)));
}

#[test]
fn uncached_accesses_cost_where_the_page_is_remote() {
    let p = || Program::new().access(0, 0, false, Cause::Cold).access(0, 0, false, Cause::Uncached).end();
    let m = Machine { remote_cacheable: false, ..machine(2) };
    let near = m.run(&m.spread()[..1], "one-node:node=0", &[p()]);
    let far = m.run(&m.spread()[..1], "one-node:node=1", &[p()]);
    assert_eq!((near.time, far.time), (Ns(100).ps(), Ns(500).ps()));
    // The hit counts against the remote home only.
    assert_eq!(far.latency.bound, Ns(100).ps());
    assert_eq!(far.latency.placement, Ns(500).ps());
    let cached = machine(2);
    assert_eq!(cached.run(&m.spread()[..1], "one-node:node=1", &[p()]).time, Ns(250).ps());
}

/// Four threads, each with 20 pages of its own, `sweeps` sweeps over them with 50 ns of computing
/// before each access. The first thread may touch everything before (SI). Thread 0 marks begin and
/// end.
fn sweep(sweeps: u64, serial: bool) -> Vec<Program> {
    let thread = |t: u64| {
        let mut p = Program::new();
        if t == 0 {
            if serial {
                p = p.reads(0..80, 1);
            }
            p = p.mark(Mark::Iteration { number: 0 }).signal(0);
        } else {
            p = p.wait(0, 1);
        }
        for _ in 0..sweeps {
            for page in 20 * t..20 * (t + 1) {
                p = p.compute(50).read(page);
            }
        }
        p = p.signal(1);
        if t == 0 {
            p = p.wait(1, 4).mark(Mark::Iteration { number: 1 });
        }
        p.end()
    };
    (0..4).map(thread).collect()
}

#[test]
fn uma_si_and_pi_follow_the_formula() {
    let m = machine(4);
    let each = |latency: u64| Ns(3 * 20 * (50 + latency)).ps();
    let one_node: Vec<_> = (0..4).map(|i| m.cpu(0, i)).collect();
    let uma = m.run(&one_node, "first-touch", &sweep(3, true));
    let si = m.run(&m.spread(), "first-touch", &sweep(3, true));
    let pi = m.run(&m.spread(), "first-touch", &sweep(3, false));
    assert_eq!((uma.timed, si.timed, pi.timed), (each(100), each(250), each(100)));
    // Löf, Table 2: three of four accesses are remote.
    assert_eq!(si.timed_counts.total(), (60, 180));
    assert_eq!(pi.timed_counts.total(), (240, 0));
    assert_eq!(si.counts.total(), (60 + 80, 180));
    // Thread 0 waits for the others, its memory is local.
    assert_eq!(si.threads[0].wait, Ns(60 * 150).ps());
    assert_eq!(si.latency.bound, Ns(240 * 100).ps());
    assert_eq!(si.latency.placement, Ns(60 * 100 + 180 * 250).ps());
    assert_eq!((pi.latency.placement, pi.latency.floor), (pi.latency.bound, pi.latency.bound));
}

#[test]
fn the_timed_part_is_between_the_first_mark_and_the_last() {
    let m = machine(1);
    let mark = |p: Program, number| p.mark(Mark::Iteration { number });
    let p = mark(mark(mark(Program::new().read(0), 0).read(1), 1).reads(1..3, 1), 2).read(3);
    let out = m.run(&m.spread(), "first-touch", &[p]);
    assert_eq!(out.iterations(), [Ns(100).ps(), Ns(200).ps()]);
    let counts: Vec<u64> = (0..4).map(|p| out.histogram.total(PageNo(p), NodeId(0))).collect();
    assert_eq!((out.timed, counts.as_slice()), (Ns(300).ps(), &[0, 2, 1, 0][..]));
    let p = mark(Program::new().read(0), 0).read(1).read(1);
    let out = m.run(&m.spread(), "first-touch", &[p]);
    assert_eq!((out.timed, out.timed_counts.total()), (Ns(200).ps(), (2, 0)));
}

#[test]
fn regions_add_up_their_instances() {
    let m = machine(2);
    let region = |p: Program, region, pages| {
        p.mark(Mark::RegionBegin { region }).reads(pages, 1).mark(Mark::RegionEnd { region }).compute(9)
    };
    let p = region(region(region(Program::new(), 4, 0..3), 2, 0..1), 4, 0..3)
        .mark(Mark::RegionEnd { region: 77 });
    let out = m.run(&m.spread()[..1], "round-robin", &[p]);
    let regions: Vec<_> =
        out.regions.iter().map(|r| (r.region, r.instances, r.local, r.remote, r.time)).collect();
    assert_eq!(regions, [(2, 1, 1, 0, Ns(100).ps()), (4, 2, 4, 2, Ns(900).ps())]);
}

#[test]
fn a_thousand_threads_on_256_nodes_have_their_own_pages() {
    let m = Machine { cpus: 4, ..machine(256) };
    let all: Vec<_> = (0..256).flat_map(|n| (0..4).map(move |i| (n, i))).collect();
    let binding: Vec<_> = all.iter().map(|(n, i)| m.cpu(*n, *i)).collect();
    let threads: Vec<_> = (0..1024).map(|t| Program::new().reads(t..t + 1, 8)).collect();
    let out = m.run(&binding, "first-touch", &threads);
    assert_eq!(out.time, Ns(800).ps());
    assert!(out.placement.iter().all(|(page, home)| u64::from(home.0) == page.0 / 4));
    let out = m.run(&binding, "one-node:node=255", &threads);
    assert_eq!(out.threads[0].end, Ns(2000).ps(), "250 ns each from another node");
}

#[test]
fn references_to_uncached_memory_do_not_depend_on_its_home() {
    let m = Machine { remote_cacheable: false, ..machine(2) };
    let p = || Program::new().access(0, 0, false, Cause::Cold).access(0, 0, false, Cause::Uncached).end();
    let total = |policy: &str| {
        let out = m.run(&m.spread()[..1], policy, &[p()]);
        let references = out.references();
        references.total(PageNo(0), NodeId(0))
    };
    assert_eq!((total("one-node:node=0"), total("one-node:node=1")), (2, 2));
}

#[test]
fn a_monitor_that_counts_references_sees_hits_that_cost_nothing() {
    let m = Machine { counts_references: true, ..machine(2) };
    let p = || Program::new().access(0, 0, false, Cause::Cold).access(0, 0, false, Cause::Uncached).end();
    let out = m.run(&m.spread()[..1], "one-node:node=1", &[p()]);
    assert_eq!(out.time, machine(2).run(&m.spread()[..1], "one-node:node=1", &[p()]).time);
    assert_eq!(out.latency.placement, Ns(250).ps(), "the hit is not in the cost of the home");
    assert_eq!(out.counts.total(), (0, 1), "nor among the accesses to memory");
    assert_eq!(out.references().total(PageNo(0), NodeId(0)), 2);
}
