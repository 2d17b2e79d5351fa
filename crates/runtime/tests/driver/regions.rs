//! Next touch at every region, which the guard judges by itself.

use super::*;

const EVERY_REGION: [Set; 2] = [Set::Arming(Arming::Region), Set::Machine(3, 1)];

/// A region whose team runs on one node and touches all that is armed. How many pages were.
fn a_region_of(d: &mut Driver, world: &Shared, function: usize, node: u16) -> usize {
    later(2_000_000);
    d.region_begin(RegionKey { function, caller: 9 });
    let armed = touch_armed(world, node, |_| node);
    d.region_end();
    armed
}

#[test]
fn of_next_touch_at_every_region_each_is_judged_by_what_it_moves() {
    let (mut d, world) = driver("next-touch", None, &EVERY_REGION);
    // One region goes from node to node, another follows it and finds everything in place.
    let mut armed = [0, 0];
    for i in 0..100 {
        let node = (i + 1) % 3;
        armed[0] += a_region_of(&mut d, &world, 7, node);
        armed[1] += a_region_of(&mut d, &world, 8, node);
        assert_eq!([0, 63].map(|p| home(&world, p)), [node; 2]);
    }
    assert_eq!(armed[0], 100 * 64, "it gains each time");
    assert_eq!(armed[1], 7 * 64, "at its starts 1, 3, 6, 11, 20, 37 and 70");
    let guards: Vec<_> = d.regions().iter().map(|r| (r.guard.armings, r.guard.moved)).collect();
    assert_eq!(guards, [(100, 100 * 64), (7, 0)]);
}

#[test]
fn regions_that_take_pages_from_each_other_are_armed_ever_more_rarely() {
    let (mut d, world) = driver("next-touch", None, &EVERY_REGION);
    let armed: usize =
        (0..200).map(|_| a_region_of(&mut d, &world, 7, 1) + a_region_of(&mut d, &world, 8, 2)).sum();
    for r in d.regions() {
        assert!((3..12).contains(&r.guard.armings), "{:?}", r.guard);
        assert!(r.guard.moved - r.guard.ping_pongs <= 2 * 64, "{:?}", r.guard);
    }
    assert!(armed < 2 * 12 * 64, "{armed}");
}

#[test]
fn rounds_are_found_in_one_region_whose_barriers_are_all_of_one_routine() {
    let (mut d, _) = driver("next-touch", None, &[]);
    d.region_begin(RegionKey { function: 7, caller: 9 });
    // A token: once something before, ten layers of four operations, once something behind.
    for _ in 0..12 {
        let layer = [64, 112, 112, 208];
        let token = std::iter::once(32).chain(layer.into_iter().cycle().take(40)).chain([48]);
        for depth in token {
            later(100_000);
            d.barrier(0x40_1234, depth);
        }
    }
    d.region_end();
    let times = d.times();
    assert!((10..=12).contains(&times.rounds), "{times:?}");
    let took: BTreeSet<Ns> = times.before.iter().chain(&times.after).copied().collect();
    assert_eq!(took, BTreeSet::from([Ns(4_200_000)]));
}
