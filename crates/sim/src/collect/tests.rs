//! The collector by hand, and against what stage 3 sums up itself.

use homenode_model::{AccessKind, Bytes, CpuId, NodeId, ObjectId, PageNo, Ps, ThreadId};
use proptest::prelude::*;

use super::*;
use crate::memory::testing::{Machine, Program, machine};
use crate::memory::{MemoryOptions, Outcome};
use crate::stream::Cause;
use homenode_order::step::Mark;

const PAGE: Bytes = Bytes(4096);
const T: ThreadId = ThreadId(0);

fn collector(budget: u64) -> Collector {
    Collector::new(2, PAGE, &Collect { budget: Bytes(budget) })
}

fn read(c: &mut Collector, now: u64, page: u64, node: u16, home: u16) {
    c.served(now, PageNo(page), NodeId(node), NodeId(home), AccessKind::Read);
}

fn total(collected: &Collected) -> u64 {
    collected.intervals.iter().flat_map(|i| i.cells.all()).map(|c| c.count).sum()
}

#[test]
fn an_iteration_is_an_interval_and_what_lies_around_is_not_timed() {
    let mut c = collector(1 << 20);
    read(&mut c, 5, 1, 0, 0);
    for (at, number) in [(10, 0), (20, 1), (30, 2)] {
        c.iteration(number);
        (0..=number).for_each(|i| read(&mut c, at + 1, 1, (i % 2) as u16, 0));
    }
    let marks = [(0, Ps(10)), (1, Ps(20)), (2, Ps(30))];
    let collected = c.finish(Ps(40), &marks);
    let found: Vec<_> = collected
        .intervals
        .iter()
        .map(|i| {
            (i.begin.0, i.end.0, i.iteration, i.timed, i.cells.all().iter().map(|c| c.count).sum::<u64>())
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, 10, None, false, 1),
            (10, 20, Some(0), true, 1),
            (20, 30, Some(1), true, 2),
            (30, 40, None, false, 3)
        ]
    );
    // One mark: from there to the end.
    let mut c = collector(1 << 20);
    c.iteration(7);
    read(&mut c, 5, 1, 0, 0);
    let collected = c.finish(Ps(40), &[(7, Ps(3))]);
    let found: Vec<_> =
        collected.intervals.iter().map(|i| (i.begin.0, i.end.0, i.iteration, i.timed)).collect();
    assert_eq!(found, [(0, 3, None, false), (3, 40, Some(7), true)]);
}

#[test]
fn without_iterations_there_are_at_most_so_many_intervals_of_equal_length() {
    let mut c = collector(1 << 20);
    let step = SHORTEST.0 / 2;
    for i in 0..1000 {
        read(&mut c, i * step, i % 7, 0, 0);
    }
    let collected = c.finish(Ps(1000 * step), &[]);
    let n = collected.intervals.len() as u32;
    assert!((MOST_INTERVALS / 2..=MOST_INTERVALS).contains(&n), "{n}");
    let lengths: Vec<u64> = collected.intervals.iter().map(|i| (i.end - i.begin).0).collect();
    assert!(lengths[..lengths.len() - 1].iter().all(|l| *l == lengths[0]), "{lengths:?}");
    assert!(collected.intervals.iter().all(|i| i.timed));
    assert_eq!((total(&collected), collected.coarsened.block), (1000, 1));
    assert_eq!(collected.intervals.last().unwrap().end, Ps(1000 * step));
}

#[test]
fn regions_keep_their_accesses_apart() {
    let mut c = collector(1 << 20);
    read(&mut c, 0, 1, 0, 0);
    c.region_begins(Ps(1), T, 4);
    read(&mut c, 1, 1, 0, 0);
    c.region_begins(Ps(2), T, 5);
    read(&mut c, 2, 1, 0, 0);
    c.region_ends(Ps(3), T, 5, Ps(1));
    read(&mut c, 3, 1, 0, 0);
    c.region_ends(Ps(4), T, 4, Ps(3));
    read(&mut c, 5, 1, 0, 0);
    let collected = c.finish(Ps(6), &[]);
    let cells: Vec<_> = collected.intervals[0].cells.all().iter().map(|c| (c.region, c.count)).collect();
    assert_eq!(cells, [(4, 2), (5, 1), (NO_REGION, 2)]);
    assert_eq!(collected.intervals[0].regions, [(4, (1, Ps(3))), (5, (1, Ps(1)))].into());
}

#[test]
fn a_move_ends_a_row_and_a_stay() {
    let mut c = collector(1 << 20);
    c.placed(PageNo(3), NodeId(0));
    read(&mut c, 0, 3, 1, 0);
    c.iteration(0);
    read(&mut c, 1, 3, 1, 0);
    c.moved(Ps(2), Ps(1), T, PageNo(3), (NodeId(0), NodeId(1)), MoveCause::NextTouch);
    read(&mut c, 4, 3, 1, 1);
    c.iteration(1);
    c.moved(Ps(5), Ps(1), T, PageNo(3), (NodeId(1), NodeId(0)), MoveCause::Policy);
    let collected = c.finish(Ps(6), &[(0, Ps(1)), (1, Ps(4))]);
    let stays: Vec<_> = collected.stays.iter().map(|s| (s.from, s.until, s.home.0)).collect();
    assert_eq!(stays, [(0, 0, 0), (1, 1, 1), (2, 2, 0)]);
    let moves: Vec<_> =
        collected.moves.all().iter().map(|m| (collected.interval_of(m), m.cause, m.ping_pong)).collect();
    assert_eq!(moves, [(1, MoveCause::NextTouch, false), (2, MoveCause::Policy, true)]);
    let homes: Vec<_> = collected.intervals[1].cells.all().iter().map(|c| (c.home.0, c.count)).collect();
    assert_eq!(homes, [(0, 1), (1, 1)]);
}

/// A run of `rounds` rounds over two objects whose pages alternate between nodes.
fn long(budget: u64, rounds: u32, marks: bool) -> (Collected, u64) {
    let mut c = collector(budget);
    let objects = [(ObjectId(0), 16, 700 * 4096), (ObjectId(1), 900 * 4096 + 100, 300 * 4096)];
    for (object, first, bytes) in objects {
        c.allocated(Ps(0), object, ByteRange { first, bytes });
    }
    let (mut at, mut times, mut n) = (0, Vec::new(), 0);
    for round in 0..rounds {
        if marks {
            c.iteration(round);
            times.push((round, Ps(at)));
        }
        for page in 0..1300 {
            at += SHORTEST.0 / 300;
            if round == 0 {
                c.placed(PageNo(page), NodeId(0));
            } else if page % 3 == 0 {
                let to = NodeId((round % 2) as u16);
                c.moved(Ps(at), Ps(1), T, PageNo(page), (NodeId(1 - to.0), to), MoveCause::Policy);
            }
            for node in 0..2 {
                read(&mut c, at, page, node, (round % 2) as u16 * u16::from(page % 3 == 0));
                n += 1;
            }
        }
    }
    (c.finish(Ps(at), &times), n)
}

#[test]
fn what_is_too_much_is_coarsened_and_nothing_is_lost() {
    for marks in [false, true] {
        let (fine, n) = long(1 << 30, 60, marks);
        assert_eq!((total(&fine), fine.coarsened.block), (n, 1));
        for budget in [1 << 20, 1 << 17, 1 << 14] {
            let (coarse, m) = long(budget, 60, marks);
            assert_eq!((total(&coarse), m), (n, n), "{budget}");
            assert!(coarse.coarsened.block > 1, "{budget}: {:?}", coarse.coarsened);
            let bytes: usize = coarse.intervals.iter().map(|i| i.cells.bytes()).sum();
            let floor = if marks { 3 } else { 4 } * 12 * size_of::<CountCell>();
            assert!(bytes as u64 <= (budget / 2).max(floor as u64), "{budget}: {bytes}");
            let stays = coarse.stays.len() * size_of::<Stay>();
            assert!(stays as u64 <= (budget / 4).max(1300 * 16 * 4), "{budget}: {stays}");
            // Objects stay apart.
            let of = |c: &Collected, object| -> u64 {
                let cells = c.intervals.iter().flat_map(|i| i.cells.all());
                let owned = cells.filter(|cell| {
                    let owner =
                        (cell.page & NOBODYS == 0).then(|| c.extents.owner(cell.page.into())).flatten();
                    owner.map(|e| e.object) == object
                });
                owned.map(|c| c.count).sum()
            };
            for object in [Some(ObjectId(0)), Some(ObjectId(1)), None] {
                assert_eq!(of(&coarse, object), of(&fine, object), "{budget}: {object:?}");
            }
        }
    }
}

#[test]
fn stays_of_coarse_intervals_are_those_of_the_fine_ones_at_their_ends() {
    let (fine, _) = long(1 << 30, 61, true);
    let (coarse, _) = long(1 << 17, 61, true);
    assert!(coarse.coarsened.rounds > 1);
    let home = |c: &Collected, page: u32, interval: u32| {
        let stay = c.stays.iter().find(|s| s.page == page && (s.from..=s.until).contains(&interval));
        stay.map(|s| s.home)
    };
    for (i, interval) in (0u32..).zip(&coarse.intervals) {
        let same = fine.intervals.iter().position(|f| f.end == interval.end).unwrap() as u32;
        for page in [0, 1, 3, 600, 1298, 1299] {
            assert_eq!(home(&coarse, page, i), home(&fine, page, same), "page {page}, interval {i}");
        }
    }
}

/// Local and remote accesses of the timed cells.
fn timed(collected: &Collected) -> (u64, u64) {
    let cells = collected.intervals.iter().filter(|i| i.timed).flat_map(|i| i.cells.all());
    cells.fold((0, 0), |(l, r), c| if c.node == c.home { (l + c.count, r) } else { (l, r + c.count) })
}

fn collected(outcome: &Outcome) -> &Collected {
    outcome.collected.as_ref().unwrap()
}

const CAUSES: [Cause; 6] =
    [Cause::Cold, Cause::Capacity, Cause::Coherence, Cause::Upgrade, Cause::WriteBack, Cause::Uncached];

proptest! {
    #[test]
    fn the_timed_cells_add_up_to_the_timed_counts(
        deeds in proptest::collection::vec((0u64..40, 0u64..64, any::<bool>(), 0u8..6), 1..300),
        marks in proptest::collection::btree_set(0usize..300, 0..9),
        policy in prop_oneof![Just("first-touch"), Just("round-robin"), Just("next-touch:at=region"), Just("competitive")],
        cacheable: bool,
        budget in prop_oneof![Just(1u64 << 12), Just(1 << 28)],
    ) {
        let mut programs = [Program::new(), Program::new()];
        let mut number = 0;
        for (i, (page, line, write, cause)) in deeds.into_iter().enumerate() {
            if marks.contains(&i) {
                let mark = Mark::Iteration { number };
                programs[0] = std::mem::take(&mut programs[0]).mark(mark);
                number += 1;
            }
            let p = &mut programs[i % 2];
            *p = std::mem::take(p).access(page, line, write, CAUSES[usize::from(cause)]);
        }
        let collect = Some(Collect { budget: Bytes(budget) });
        let options = MemoryOptions { collect, ..MemoryOptions::default() };
        let machine = Machine { options, remote_cacheable: cacheable, ..machine(2) };
        let outcome = machine.run(&[CpuId(0), CpuId(1)], policy, &programs.map(Program::end));
        prop_assert_eq!(timed(collected(&outcome)), outcome.timed_counts.total());
        let moved: u64 = collected(&outcome).moves.all().iter().map(|m| u64::from(m.pages)).sum();
        prop_assert_eq!(moved + collected(&outcome).moves.lost(), outcome.moved);
    }
}
