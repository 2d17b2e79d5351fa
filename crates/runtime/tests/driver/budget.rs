//! What moves cost, while a team waits for them, and where the budget stops them.

use homenode_wire::settings::MoveWhile;

use super::*;

/// An object of 64 MiB on node 0, and a driver that tells its policy what the second node does, or
/// places by address.
fn large_object(
    policy: &str,
    says: Option<AnswerKind>,
    budget: (u64, u64),
) -> (Driver, Shared, usize, usize) {
    let (mut d, world) =
        driver(policy, says, &[Set::Budget(budget.0, budget.1), Set::MoveWhile(MoveWhile::Asleep)]);
    let (object, pages) = (BASE + (1 << 24), 1 << 14);
    d.born(object, pages * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    (0..pages).for_each(|i| _ = world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(0)));
    (d, world, object, pages)
}

/// Pages of the object that the second node has.
fn on_the_second(world: &Shared, object: usize, pages: usize) -> usize {
    let world = world.lock().unwrap();
    (0..pages).filter(|i| world.homes[&(object + i * PAGE)] == NodeId(1)).count()
}

fn allowed(d: &Driver) -> Ns {
    d.settings().budget.allows(d.cpu_time())
}

#[test]
fn what_a_policy_moves_at_one_boundary_keeps_within_the_budget_and_it_decides_anew() {
    // 20 ms, and 10 ms more a second.
    let (mut d, world, object, _) = large_object("out-u", Some(SAMPLED), (10, 20));
    world.lock().unwrap().move_ns = 10_000;
    let (used, mut at_home) = (4000, vec![0]);
    for i in 0..3 {
        later(1_000_000_000);
        d.region_begin(RegionKey { function: 7, caller: 9 });
        // What is still on the first node is used by the second.
        let mut w = world.lock().unwrap();
        let far = (0..used).map(|p| object + p * PAGE).filter(|a| w.homes[a] == NodeId(0));
        let seen: Vec<Seen> =
            far.map(|address| Seen { address, node: NodeId(1), time: Ns(0), kind: None }).collect();
        w.seen.extend(seen);
        drop(w);
        later(2_000_000);
        d.region_end();
        assert!(d.own_time() <= allowed(&d) && d.stopped().is_none(), "{i}: {:?}", d.own_time());
        at_home.push(on_the_second(&world, object, used));
    }
    let moved = *at_home.last().unwrap();
    let turns = at_home.windows(2).filter(|w| w[1] > w[0]).count();
    assert!(turns > 1 && moved > used / 2 && moved < used, "{at_home:?}");
    d.end();
    let left = format!("{} MiB were not moved: the budget", ((used - moved) * PAGE) >> 20);
    assert!(d.notes().iter().any(|n| n.starts_with(&left)), "{left}: {:?}", d.notes());
}

#[test]
fn what_is_placed_by_address_follows_as_there_is_room() {
    let (mut d, world, object, pages) = large_object("block", None, (10, 40));
    world.lock().unwrap().move_ns = 30_000;
    let mut at_home = vec![0];
    for i in 0..40 {
        round(&mut d, &world, &[]);
        assert!(d.own_time() <= allowed(&d) && d.stopped().is_none(), "{i}: {:?}", d.own_time());
        at_home.push(on_the_second(&world, object, pages));
        later(1_000_000_000);
    }
    let turns = at_home.windows(2).filter(|w| w[1] > w[0]).count();
    assert!(turns > 3 && *at_home.last().unwrap() == pages / 2, "{at_home:?}");
    let is_home =
        |i: usize| world.lock().unwrap().homes[&(object + i * PAGE)] == NodeId((2 * i / pages) as u16);
    assert!((0..pages).all(is_home));
    d.end();
    assert!(!d.notes().iter().any(|n| n.contains("no room")), "{:?}", d.notes());
}

#[test]
fn what_dies_before_its_turn_is_not_moved_and_is_told() {
    let (mut d, world, object, pages) = large_object("block", None, (10, 40));
    world.lock().unwrap().move_ns = 30_000;
    for _ in 0..4 {
        later(1_000_000_000);
        round(&mut d, &world, &[]);
    }
    let moved = on_the_second(&world, object, pages);
    assert!((1..pages / 2).contains(&moved), "{moved}");
    d.dies(object);
    for _ in 0..20 {
        later(1_000_000_000);
        round(&mut d, &world, &[]);
    }
    assert_eq!(on_the_second(&world, object, pages), moved);
    d.end();
    assert!(d.notes().iter().any(|n| n.contains("were not moved: the budget")), "{:?}", d.notes());
}

#[test]
fn moving_back_keeps_within_the_budget() {
    let (mut d, world, object, pages) =
        next_touch_with_object(&[Set::Budget(10, 100), Set::MoveWhile(MoveWhile::Asleep)]);
    world.lock().unwrap().move_ns = 40_000;
    for _ in 0..300 {
        a_region(&mut d);
        touch_armed(&world, u16::from(d.stopped().is_none()), |_| 0);
        d.region_end();
        assert!(d.own_time() <= allowed(&d), "{:?} {:?}", d.own_time(), d.stopped());
        if d.stopped().is_some() {
            break;
        }
    }
    let told = |d: &Driver| {
        let text = d.stopped().unwrap();
        let (what, rest) = text.split_once("; ").unwrap();
        assert_eq!(what, "moving made it worse (presence samples)");
        rest.split_once(' ').unwrap().0.parse::<usize>().unwrap()
    };
    let (first, far) = (told(&d), on_the_second(&world, object, pages));
    assert!(first > 0 && far > pages / 2, "{first} back, {far} far");
    for _ in 0..20 {
        later(1_000_000_000);
        a_region(&mut d);
        d.region_end();
        assert!(d.own_time() <= allowed(&d), "{:?}", d.own_time());
    }
    let far = on_the_second(&world, object, pages);
    assert!(told(&d) > first && far > 0, "{} back, {far} far", told(&d));
    d.end();
    let left = format!("{} MiB were not moved back: the budget", (far * PAGE) >> 20);
    assert!(d.notes().iter().any(|n| n.starts_with(&left)), "{left}: {:?}", d.notes());
}

/// A second in which a hundred threads compute.
fn a_second_of_a_hundred_threads() {
    later(1_000_000_000);
    PROCESS.set(PROCESS.get() + 99_000_000_000);
}

#[test]
fn a_large_team_does_not_wait_longer_than_the_budget_allows_of_the_time_that_passes() {
    // 40 ms, and 10 ms more a second; a second more by the CPU time of all threads.
    let (mut d, world, object, pages) = large_object("block", None, (10, 40));
    world.lock().unwrap().move_ns = 10_000;
    let begin = CPU.get();
    let mut at_home = vec![0];
    for _ in 0..20 {
        a_second_of_a_hundred_threads();
        round(&mut d, &world, &[]);
        let waited = Ns(CPU.get() - begin);
        assert!(waited <= d.settings().budget.allows(d.elapsed()) && d.stopped().is_none(), "{waited:?}");
        assert!(d.serial_time() >= waited && d.own_time() < Ns(allowed(&d).0 / 4), "{:?}", d.serial_time());
        at_home.push(on_the_second(&world, object, pages));
    }
    let turns = at_home.windows(2).filter(|w| w[1] > w[0]).count();
    assert!(turns > 2 && *at_home.last().unwrap() == pages / 2, "{at_home:?}");
}

#[test]
fn what_a_large_team_waited_too_long_for_ends_the_arming_until_time_has_passed() {
    let (mut d, world, ..) = large_object("block", None, (10, 10));
    // What was known to be cheap comes to be dear.
    for cost in [4_000, 4_000, 200_000, 200_000] {
        world.lock().unwrap().move_ns = cost;
        a_second_of_a_hundred_threads();
        round(&mut d, &world, &[]);
    }
    d.next_touch(BASE, 64 * PAGE);
    let why = d.stopped().unwrap().to_owned();
    assert!(why.starts_with("the budget ran out: 0.") && why.contains("the team waited for in "), "{why}");
    (0..60).for_each(|_| a_second_of_a_hundred_threads());
    d.next_touch(BASE, 64 * PAGE);
    assert!(d.stopped().is_none(), "{:?}", d.stopped());
}

#[test]
fn what_the_start_took_is_own_time_and_the_processs() {
    for (took, allowed) in [(30_000_000, true), (60_000_000, false)] {
        later(1_000_000_000);
        let (mut d, _) = driver("next-touch", None, &[Set::Budget(10, 40)]);
        d.started_up(Ns(PROCESS.get() - took));
        assert_eq!([d.own_time(), d.serial_time(), d.cpu_time()], [Ns(took); 3]);
        assert_eq!(d.next_touch(BASE, 64 * PAGE), allowed);
    }
}

#[test]
fn what_a_thread_of_homenodes_does_beside_the_team_nobody_waits_for() {
    let (mut d, world) = driver("daemon", Some(PRESENCE), &[]);
    round(&mut d, &world, &[]);
    let waited = d.serial_time();
    world.lock().unwrap().move_ns = 1_000_000;
    for i in 0..40 {
        later(11_000_000);
        let touch = Seen { address: BASE + i % 16 * PAGE, node: NodeId(1), time: Ns(0), kind: None };
        world.lock().unwrap().seen.push(touch);
        assert!(d.tick().is_some());
    }
    assert_eq!(home(&world, 0), 1);
    assert!(d.own_time() >= Ns(16_000_000), "{:?}", d.own_time());
    assert_eq!(d.serial_time(), waited);
}

#[test]
fn a_run_too_short_for_a_decision_says_so() {
    for (samples, says) in [(3, true), (40, false)] {
        let (mut d, world) = driver("daemon", Some(PRESENCE), &[]);
        round(&mut d, &world, &[]);
        for i in 0..samples {
            later(11_000_000);
            let touch = Seen { address: BASE + i % 16 * PAGE, node: NodeId(1), time: Ns(0), kind: None };
            world.lock().unwrap().seen.push(touch);
            d.tick();
        }
        d.end();
        let note = |n: &String| n.contains("none had as many (3 samples in all): a longer run or a larger");
        assert_eq!(d.notes().iter().any(note), says, "{:?}", d.notes());
    }
}

/// 64 MiB that are watched, and what asking for a page takes.
fn watched(ask_ns: u64, ask_said_ns: Option<u64>, more: &[Set]) -> (Driver, Shared) {
    let (mut d, world) = driver("competitive", Some(PRESENCE), more);
    let object = BASE + (1 << 24);
    d.born(object, 64 << 20, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    let pages = (object..object + (64 << 20)).step_by(PAGE);
    pages.for_each(|page| _ = world.lock().unwrap().homes.insert(page, NodeId(0)));
    (world.lock().unwrap().ask_ns, world.lock().unwrap().ask_said_ns) = (ask_ns, ask_said_ns);
    a_region(&mut d);
    (d, world)
}

#[test]
fn the_thread_that_asks_takes_no_more_from_one_cpu_because_there_are_many() {
    let machine = Set::Machine(2, 64);
    let (mut d, world) = watched(10_000, None, &[machine]);
    for _ in 0..100 {
        later(1_000_000);
        d.tick();
    }
    // A fiftieth of 0.1 s; of the CPUs' time it would be 1.28 s, enough for each of the 1024 times
    // 64 KiB.
    let asked = world.lock().unwrap().asked.len();
    assert!((100..=210).contains(&asked), "{asked}");
}

#[test]
fn asking_that_is_dearer_than_thought_is_made_up_for() {
    // Four CPUs: 20 ms a second.
    let (mut d, world) = watched(500_000, Some(1_000), &[]);
    let mut most = 0;
    for i in 1..=3000 {
        later(1_000_000);
        d.tick();
        let asked = world.lock().unwrap().asked.len();
        most = most.max(asked * 500 - (20 * i).min(asked * 500));
    }
    let asked = world.lock().unwrap().asked.len();
    assert!((100..=140).contains(&asked), "{asked} pages, of half a millisecond each, in three seconds");
    assert!(most <= 8_000, "{most} us too much at one time");
}

#[test]
fn few_are_asked_for_while_nobody_knows_what_one_takes() {
    let (mut d, world) = watched(10_000, Some(1), &[]);
    // The first time there is nothing to ask for yet.
    let asked: [usize; 3] = std::array::from_fn(|_| {
        later(1_000_000_000);
        d.tick();
        world.lock().unwrap().asked.len()
    });
    assert!(asked[1] == 16 && asked[2] > 100, "{asked:?}");
}
