//! What homenode spends before moving has shown a gain: a few pages of each object tell, and the
//! rest follows only if that lasts.

use homenode_wire::live::{LiveReader, LiveRecord};

use super::*;

/// What bringing a page costs.
const COST: u64 = 5_000;
const ALL: usize = 1 << 14;

fn halves(page: usize) -> u16 {
    u16::from(page >= ALL / 2)
}

/// A driver with an object of 64 MiB on the first node that may spend seconds once it has shown a
/// gain.
fn on_trial() -> (Driver, Shared, usize) {
    let (d, world, object, pages) = next_touch_with_object(&[Set::Budget(10, 2000), Set::Trial]);
    assert_eq!(pages, ALL);
    (d, world, object)
}

/// A region in which the team touches all that is armed, at its price, each page by the node that
/// `by` names. Pages of the object that were armed.
fn region(d: &mut Driver, world: &Shared, object: usize, by: impl Fn(usize) -> u16) -> usize {
    later(20_000_000);
    d.region_begin(RegionKey { function: 7, caller: 9 });
    let mut ours = 0;
    let mut w = world.lock().unwrap();
    for (address, bytes, _) in std::mem::take(&mut w.arms) {
        for address in (address..address + bytes).step_by(PAGE) {
            let is_ours = (object..object + ALL * PAGE).contains(&address);
            ours += usize::from(is_ours);
            let node = NodeId(if is_ours { by((address - object) / PAGE) } else { 0 });
            w.touches.push(Touch { address, pages: 1, node, moved: true });
            w.homes.insert(address, node);
            (w.own_ns, w.copies) = (w.own_ns + COST, w.copies + 1);
        }
    }
    drop(w);
    d.region_end();
    ours
}

fn elsewhere(world: &Shared, object: usize, by: fn(usize) -> u16) -> usize {
    let world = world.lock().unwrap();
    (0..ALL).filter(|page| world.homes[&(object + page * PAGE)].0 != by(*page)).count()
}

#[test]
fn what_is_used_where_it_is_costs_a_few_pages() {
    let (mut d, world, object) = on_trial();
    (0..ALL).for_each(|i| _ = world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(halves(i))));
    let armed: usize = (0..100).map(|_| region(&mut d, &world, object, halves)).sum();
    // 64 pilots, and half of them each time that the run has become twice as long.
    assert!((30..300).contains(&armed), "{armed} of {ALL}");
    assert!(d.own_time() < Ns(20_000_000) && d.stopped().is_none(), "{:?} {:?}", d.own_time(), d.stopped());
}

#[test]
fn what_one_thread_initialised_follows_as_a_whole() {
    let (mut d, world, object) = on_trial();
    for _ in 0..100 {
        region(&mut d, &world, object, halves);
    }
    assert_eq!((elsewhere(&world, object, halves), d.hold_back().1), (0, Verdict::Pays));
    // All of it was copied once, which is more than a trial may cost.
    assert!(d.own_time() > Ns(60_000_000), "{:?}", d.own_time());
}

#[test]
fn a_recording_changes_no_verdict_and_has_the_homes_of_all_pages() {
    let (mut d, world, object) = on_trial();
    d.record_in_memory();
    for _ in 0..100 {
        region(&mut d, &world, object, halves);
    }
    assert_eq!((elsewhere(&world, object, halves), d.hold_back().1), (0, Verdict::Pays));

    let (mut d, world, object) = on_trial();
    d.record_in_memory();
    (0..ALL).for_each(|i| _ = world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(halves(i))));
    let armed: usize = (0..100).map(|_| region(&mut d, &world, object, halves)).sum();
    assert!((30..300).contains(&armed), "{armed} of {ALL}");
    d.end();
    d.end_recording();
    let told = LiveReader::new(d.recorded_bytes()).flat_map(|r| match r.unwrap() {
        LiveRecord::Home { pages, node: Some(_), .. } => pages.first..pages.first + pages.count,
        _ => 0..0,
    });
    assert_eq!(told.collect::<std::collections::BTreeSet<u32>>().len(), ALL);
}

#[test]
fn what_other_nodes_use_each_time_stays() {
    let (mut d, world, object) = on_trial();
    let mut armed = 0;
    for round in 0..100_usize {
        // Whoever comes first takes it.
        let by = |page: usize| {
            let x = (page + round * ALL).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as u16 % 2
        };
        armed += region(&mut d, &world, object, by);
    }
    assert!((50..ALL / 16).contains(&armed), "{armed} of {ALL}");
    d.end();
    let note = "64 MiB were used by another node each time";
    assert!(d.notes().iter().any(|n| n.starts_with(note)), "{:?}", d.notes());
    assert_eq!(d.contested(), 64 << 20);
}

#[test]
fn without_a_gain_the_allowance_holds() {
    // Small objects have no pilots: each is armed as a whole.
    let (mut d, world) = driver("next-touch", None, &[Set::Force(false), Set::Budget(10, 2000), Set::Trial]);
    let before = d.cpu_time();
    for i in 0..3000 {
        let at = BASE + (1 << 30) + (i << 20);
        (0..32).for_each(|p| _ = world.lock().unwrap().homes.insert(at + p * PAGE, NodeId(0)));
        d.born(at, 32 * PAGE, Origin::Allocated([i as u64, 0, 0, 0, 0, 0]));
        if i % 100 == 0 {
            region(&mut d, &world, 0, |_| 0);
        }
        let allowed = Ns((d.cpu_time() - before).0 / 1000 * 30).max(Ns(50_000_000));
        assert!(d.own_time() <= allowed, "{i}: {:?} of {allowed:?}", d.own_time());
    }
    assert!(d.own_time() > Ns(25_000_000), "it tries: {:?}", d.own_time());
}

#[test]
fn what_is_freed_in_every_round_is_armed_in_the_first_ones_alone() {
    let (mut d, world) = driver("next-touch", None, &[Set::Force(false), Set::Budget(10, 2000), Set::Trial]);
    let mut armed = Vec::new();
    let at = BASE + (1 << 30);
    for _ in 0..50 {
        d.born(at, 32 * PAGE, Origin::Allocated([5, 0, 0, 0, 0, 0]));
        (0..32).for_each(|p| _ = world.lock().unwrap().homes.insert(at + p * PAGE, NodeId(0)));
        armed.push(region(&mut d, &world, at, |_| 1));
        d.dies(at);
    }
    assert!(armed[0] > 0 && armed[1] > 0, "{armed:?}");
    assert_eq!(armed[2..].iter().sum::<usize>(), 0, "{armed:?}");
}

#[test]
fn a_budget_of_the_users_own_is_used_at_once() {
    let (mut d, world, object, _) = next_touch_with_object(&[Set::Budget(10, 2000)]);
    let armed = region(&mut d, &world, object, halves);
    assert!(armed > ALL * 9 / 10, "{armed} of {ALL}");
}

#[test]
fn another_phase_is_found() {
    let (mut d, world, object) = on_trial();
    (0..ALL).for_each(|i| _ = world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(halves(i))));
    for _ in 0..100 {
        region(&mut d, &world, object, halves);
    }
    assert_eq!((elsewhere(&world, object, halves), d.hold_back().1), (0, Verdict::Open));
    // From now on each half is used by the other node.
    fn swapped(page: usize) -> u16 {
        1 - halves(page)
    }
    let mut armed = 0;
    for _ in 0..300 {
        armed += region(&mut d, &world, object, swapped);
    }
    assert_eq!((elsewhere(&world, object, swapped), d.hold_back().1), (0, Verdict::Pays));
    assert!(armed < 2 * ALL, "each page moves once: {armed} of {ALL}");
}

#[test]
fn parts_as_short_as_what_one_touch_brings_follow_page_by_page() {
    // A pipeline: parts of 64 KiB for two nodes in turn. The first thread reads the first page of
    // the other's parts before their owner, so all 16 pages would come to the first thread.
    fn owner(address: usize) -> u16 {
        u16::from(address / PAGE % 32 > 16)
    }
    let (mut d, world, object) = on_trial();
    for _ in 0..200 {
        later(20_000_000);
        d.region_begin(RegionKey { function: 7, caller: 9 });
        let mut w = world.lock().unwrap();
        for (address, bytes, manner) in std::mem::take(&mut w.arms) {
            let (mut at, all) = (address, address + bytes);
            while at < all {
                let next = if manner == Manner::Around { 16 * PAGE } else { PAGE };
                let end = (at + 1).next_multiple_of(next).min(all);
                let node = NodeId((at..end).step_by(PAGE).map(owner).min().unwrap());
                (at..end).step_by(PAGE).for_each(|at| _ = w.homes.insert(at, node));
                let pages = ((end - at) / PAGE) as u32;
                w.touches.push(Touch { address: at, pages, node, moved: true });
                (w.own_ns, w.copies) = (w.own_ns + COST, w.copies + u64::from(pages));
                at = end;
            }
        }
        drop(w);
        d.region_end();
    }
    let world = world.lock().unwrap();
    let pages = (0..ALL).map(|page| object + page * PAGE);
    let wrong = pages.filter(|at| world.homes[at].0 != owner(*at)).count();
    assert_eq!((wrong, d.hold_back().1), (0, Verdict::Pays), "of {ALL}");
}

#[test]
fn a_trial_goes_on_after_a_pause() {
    let (mut d, world, object) = on_trial();
    // The first pilots cost more than the allowance of a short run.
    region(&mut d, &world, object, halves);
    world.lock().unwrap().own_ns += 100_000_000;
    for _ in 0..20 {
        region(&mut d, &world, object, halves);
    }
    assert!(elsewhere(&world, object, halves) > ALL / 3, "it pauses");
    for _ in 0..400 {
        region(&mut d, &world, object, halves);
    }
    assert_eq!((elsewhere(&world, object, halves), d.hold_back().1), (0, Verdict::Pays));
}
