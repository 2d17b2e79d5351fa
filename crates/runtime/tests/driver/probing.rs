//! What is armed once more when the iteration is known: a little of a large object, and all of it
//! if that tells that it is needed.

use super::*;

/// The first region touches all of an object of 64 MiB by the node that `first` names for each
/// page, the others by the one that `then` names, ten times. Pages that the others found armed.
fn armed_after(first: fn(usize) -> u16, then: fn(usize) -> u16) -> usize {
    let (mut d, world, object, pages) = next_touch_with_object(&[Set::Force(true)]);
    let mut armed = 0;
    for i in 0..10 {
        a_region(&mut d);
        let by = if i == 0 { first } else { then };
        let n = touch_by(&world, |page| by(page.saturating_sub(object) / PAGE));
        armed += if i == 0 { 0 } else { n };
        d.region_end();
    }
    let world = world.lock().unwrap();
    let home = |page: usize| world.homes[&(object + page * PAGE)].0;
    assert_eq!((0..pages).filter(|page| home(*page) != then(*page)).count(), 0);
    armed
}

/// Has all that is armed be touched, by 64 KiB, each by the node that is named for its address.
fn touch_by(world: &Shared, node: impl Fn(usize) -> u16) -> usize {
    let mut world = world.lock().unwrap();
    let arms = std::mem::take(&mut world.arms);
    for (address, bytes, manner) in &arms {
        let around = if *manner == Manner::Around { 16 } else { 1 };
        for page in (*address..address + bytes).step_by(around * PAGE) {
            let (by, pages) = (NodeId(node(page)), ((address + bytes - page) / PAGE).min(around));
            world.touches.push(Touch { address: page, pages: pages as u32, node: by, moved: true });
            (0..pages).for_each(|i| _ = world.homes.insert(page + i * PAGE, by));
        }
    }
    arms.iter().map(|a| a.1 / PAGE).sum()
}

const ALL: usize = 1 << 14;

fn halves(page: usize) -> u16 {
    u16::from(page >= ALL / 2)
}

#[test]
fn what_is_where_it_is_used_is_not_brought_again() {
    let armed = armed_after(halves, halves);
    assert!((ALL / 32..ALL / 8).contains(&armed), "{armed} of {ALL}: one sixteenth and what is small");
}

#[test]
fn what_the_first_region_brought_elsewhere_follows() {
    assert!(armed_after(|page| 1 - halves(page), halves) > ALL);
    // One thread initialises in it.
    assert!(armed_after(|_| 0, halves) > ALL);
    // Initialised in turns of 256 KiB.
    assert!(armed_after(|page| (page / 64 % 2) as u16, halves) > ALL);
    // An eighth is another node's.
    assert!(armed_after(|page| u16::from(page >= ALL / 8 * 3), halves) > ALL);
}

/// Pages of the object that are elsewhere than `then` has them.
fn elsewhere(world: &Shared, object: usize, then: fn(usize) -> u16) -> usize {
    let world = world.lock().unwrap();
    (0..ALL).filter(|page| world.homes[&(object + page * PAGE)].0 != then(*page)).count()
}

/// `count` regions, `ns` apart, whose team touches the object as `by` says.
fn regions(
    d: &mut Driver,
    world: &Shared,
    object: usize,
    count: usize,
    ns: u64,
    by: fn(usize) -> u16,
) -> usize {
    let one = |_| {
        later(ns);
        a_region(d);
        let armed = touch_by(world, |page| by(page.saturating_sub(object) / PAGE));
        d.region_end();
        armed
    };
    (0..count).map(one).sum()
}

#[test]
fn whether_moving_pays_is_not_judged_by_what_is_about_to_follow() {
    // The second node initialises all in the first region, and the first uses all: what was held
    // back is at home, what moved is not.
    let (mut d, world, object, _) = next_touch_with_object(&[Set::Budget(1000, 60000)]);
    regions(&mut d, &world, object, 1, 0, |_| 1);
    regions(&mut d, &world, object, 100, 0, |_| 0);
    assert_eq!((d.stopped(), elsewhere(&world, object, |_| 0)), (None, 0));

    let (mut d, world, object, _) = next_touch_with_object(&[Set::Budget(1000, 60000)]);
    regions(&mut d, &world, object, 1, 0, |page| 1 - halves(page));
    regions(&mut d, &world, object, 100, 0, halves);
    let ([moved, held], verdict) = (<[_; 2]>::from(d.hold_back().0.samples()), d.hold_back().1);
    assert_eq!((verdict, moved.remote), (Verdict::Pays, 0), "{moved:?}, {held:?}");
    assert_eq!(elsewhere(&world, object, halves), 0);
}

#[test]
fn what_was_armed_in_part_when_the_iteration_was_found_is_probed_later() {
    let (mut d, world, object, _) = next_touch_with_object(&[Set::Force(true), Set::Budget(10, 60)]);
    regions(&mut d, &world, object, 1, 0, |page| 1 - halves(page));
    assert!(elsewhere(&world, object, |_| 0) < ALL / 2, "there was no room for all of it");
    regions(&mut d, &world, object, 100, 1_000_000_000, halves);
    assert_eq!(elsewhere(&world, object, halves), 0);
}

#[test]
fn memory_that_came_to_be_after_it_had_its_turn_follows() {
    let (mut d, world, object, _) = next_touch_with_object(&[Set::Force(true), Set::Budget(10, 50)]);
    let rest = |world: &Shared, there: bool| {
        for page in (4096..ALL).map(|i| object + i * PAGE) {
            let mut world = world.lock().unwrap();
            _ = if there { world.homes.insert(page, NodeId(0)) } else { world.homes.remove(&page) };
        }
    };
    rest(&world, false);
    for function in 100..130 {
        later(200_000_000);
        d.region_begin(RegionKey { function, caller: 9 });
        touch_by(&world, |_| 0);
        d.region_end();
    }
    // The main thread initialises it now.
    rest(&world, true);
    regions(&mut d, &world, object, 100, 1_000_000_000, halves);
    assert_eq!(elsewhere(&world, object, halves), 0);
}

#[test]
fn a_successor_at_the_same_place_is_probed_for_itself() {
    let (mut d, world, object, pages) = next_touch_with_object(&[Set::Force(true)]);
    regions(&mut d, &world, object, 10, 0, halves);
    // Nobody saw it freed; another one has come, which the first thread has initialised.
    (0..ALL).for_each(|i| _ = world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(0)));
    d.born(object, pages * PAGE, Origin::Allocated([3, 0, 0, 0, 0, 0]));
    let armed = regions(&mut d, &world, object, 10, 0, halves);
    assert!((ALL..ALL + ALL / 8).contains(&armed), "{armed} of {ALL}: once");
    assert_eq!(elsewhere(&world, object, halves), 0);
}

#[test]
fn little_that_is_elsewhere_does_not_bring_all_again() {
    // One 64 KiB in a hundred is another node's.
    let armed = |by: fn(usize) -> u16| {
        let (mut d, world, object, _) = next_touch_with_object(&[Set::Force(true)]);
        regions(&mut d, &world, object, 1, 0, by);
        regions(&mut d, &world, object, 20, 0, halves)
    };
    let few = |page| halves(page) ^ u16::from(page / 16 % 100 == 7);
    let many = |page| halves(page) ^ u16::from(page / 16 % 10 == 7);
    assert!(armed(few) < ALL / 4);
    assert!(armed(many) > ALL);
}

#[test]
fn one_probe_of_many_does_not_bring_all() {
    let (mut d, world, object, _) = next_touch_with_object(&[Set::Force(true)]);
    regions(&mut d, &world, object, 1, 0, halves);
    // Nobody touches it any more, but for one probe, which the other node touches once.
    let (mut armed, mut touched) = (0, false);
    for _ in 0..12 {
        a_region(&mut d);
        let mut w = world.lock().unwrap();
        let arms: Vec<_> = std::mem::take(&mut w.arms).into_iter().filter(|arm| arm.0 >= object).collect();
        armed += arms.iter().map(|arm| arm.1 / PAGE).sum::<usize>();
        if let Some((address, ..)) = arms.iter().find(|arm| arm.1 == 16 * PAGE && !touched) {
            touched = true;
            let node = NodeId(1 - halves((address - object) / PAGE));
            w.touches.push(Touch { address: *address, pages: 16, node, moved: true });
        }
        drop(w);
        d.region_end();
    }
    assert!(touched && armed < ALL / 4, "{armed} of {ALL}");
}

/// As [`next_touch_with_object`], after a first region of the wrong halves, with a budget that is
/// used up.
fn with_little_room(more: &[Set]) -> (Driver, Shared, usize) {
    let (mut d, world, object, _) = next_touch_with_object(more);
    regions(&mut d, &world, object, 1, 10_000_000, |page| 1 - halves(page));
    let left = d.settings().budget.allows(d.cpu_time()) - d.own_time();
    world.lock().unwrap().own_ns += left.0 - 100_000;
    (d, world, object)
}

#[test]
fn memory_that_comes_in_each_round_does_not_keep_large_objects_from_being_put_right() {
    let (mut d, world, object) = with_little_room(&[Set::Budget(20, 200)]);
    let fresh = object - (3 << 20);
    for _ in 0..2000 {
        (0..512).for_each(|page| _ = world.lock().unwrap().homes.insert(fresh + page * PAGE, NodeId(0)));
        d.born(fresh, 2 << 20, Origin::Allocated([5, 0, 0, 0, 0, 0]));
        let pages = regions(&mut d, &world, object, 1, 0, halves) as u64;
        let mut w = world.lock().unwrap();
        (w.copies, w.own_ns) = (w.copies + pages, w.own_ns + pages * 4_000);
        drop(w);
        d.dies(fresh);
    }
    assert_eq!((d.hold_back().1, d.stopped()), (Verdict::Pays, None), "{:?}", d.hold_back().0.samples());
}

#[test]
fn room_is_not_looked_for_at_every_round() {
    let (mut d, world, object) = with_little_room(&[Set::Budget(20, 200), Set::Force(true)]);
    let before = world.lock().unwrap().looks;
    // Half a second.
    for _ in 0..5000 {
        later(100_000);
        d.region_begin(RegionKey { function: 7, caller: 9 });
        touch_by(&world, |page| halves(page.saturating_sub(object) / PAGE));
        d.region_end();
    }
    let looks = world.lock().unwrap().looks - before;
    assert!(looks < 50, "{looks}");
}
