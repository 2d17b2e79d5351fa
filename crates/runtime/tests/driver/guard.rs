//! What becomes of pages that moved: by the blocks that were held back.

use homenode_wire::settings::MoveWhile;

use super::*;

#[test]
fn what_moving_made_worse_is_moved_back() {
    let (mut d, world, object, pages) = next_touch_with_object(&[Set::MoveWhile(MoveWhile::Asleep)]);
    a_region(&mut d);
    let moved = touch_armed(&world, 1, |_| 1);
    assert!((pages / 2..pages).contains(&moved), "{moved} of {pages}: some are held back");
    d.region_end();
    // From now on the first node alone uses all of it: what moved is remote, what was held back is
    // not.
    for _ in 0..200 {
        a_region(&mut d);
        touch_armed(&world, 1, |_| 0);
        d.region_end();
        if d.stopped().is_some() {
            break;
        }
    }
    assert!(d.stopped().unwrap().contains("made it worse"), "{:?}", d.stopped());
    let world = world.lock().unwrap();
    assert!((0..pages).all(|i| world.homes[&(object + i * PAGE)] == NodeId(0)), "all is back");
    assert!(world.calls.iter().sum::<usize>() > pages / 2, "by moving it");
}

/// Both nodes use every page, as often the one as the other, once it has come to the node that
/// `first` names.
fn with_pages_that_both_use(first: impl Fn(usize) -> u16) -> (Driver, Shared, std::ops::Range<usize>) {
    let (mut d, world, object, pages) = next_touch_with_object(&[Set::MoveWhile(MoveWhile::Asleep)]);
    let (turn, whole) = (Cell::new(0), object..object + pages * PAGE);
    for _ in 0..200 {
        a_region(&mut d);
        let mut w = world.lock().unwrap();
        for (at, bytes, _) in std::mem::take(&mut w.arms) {
            turn.set(turn.get() + 1);
            for address in (at..at + bytes).step_by(PAGE) {
                let node = NodeId(if bytes == PAGE { turn.get() % 2 } else { first(address) });
                w.touches.push(Touch { address, pages: 1, node, moved: true });
                w.homes.insert(address, node);
            }
        }
        drop(w);
        d.region_end();
        if d.hold_back().1 != Verdict::Open {
            break;
        }
    }
    (d, world, whole)
}

#[test]
fn what_made_no_difference_is_moved_back() {
    let (mut d, world, object) = with_pages_that_both_use(|_| 1);
    assert_eq!(d.hold_back().1, Verdict::NoGain, "{:?}", d.hold_back().0.samples());
    assert!(d.stopped().unwrap().contains("made no difference"), "{:?}", d.stopped());
    let is_back = |page| world.lock().unwrap().homes[&page] == NodeId(0);
    assert!(object.clone().step_by(PAGE).all(is_back), "all is back");
    // Huge pages come back, too, and what the program asks for it gets.
    let restored = world.lock().unwrap().restored;
    for _ in 0..3 {
        a_region(&mut d);
        d.region_end();
    }
    assert!(world.lock().unwrap().restored > restored);
    assert!(d.next_touch(object.start, 16 * PAGE));
    let asked = Span::new(object.start, 16 * PAGE);
    assert!(world.lock().unwrap().arms.iter().any(|(at, ..)| asked.contains(*at)));
}

#[test]
fn what_is_spread_more_evenly_stays_though_it_is_as_remote() {
    let (d, world, object) =
        with_pages_that_both_use(|page| u16::from(page >= BASE + (1 << 24) + 8192 * PAGE));
    assert_eq!((d.hold_back().1, d.stopped()), (Verdict::Evener, None), "{:?}", d.hold_back().0.samples());
    let world = world.lock().unwrap();
    let second = object.step_by(PAGE).filter(|page| world.homes[page] == NodeId(1)).count();
    assert!((7000..9200).contains(&second), "{second} of 16384 pages");
}

#[test]
fn what_was_held_back_follows_and_nothing_else_is_armed_for_it() {
    let (mut d, world, object, pages) = next_touch_with_object(&[Set::MoveWhile(MoveWhile::Asleep)]);
    let armed = |world: &Shared| {
        let world = world.lock().unwrap();
        let blocks = world.arms.iter().filter(|(.., manner)| *manner == Manner::Around);
        blocks.flat_map(|(at, bytes, _)| (*at..at + bytes).step_by(PAGE)).collect::<BTreeSet<usize>>()
    };
    a_region(&mut d);
    let moved = armed(&world);
    touch_armed(&world, 1, |_| 1);
    d.region_end();
    // From now on the second node uses all of it: what was held back is remote.
    for _ in 0..200 {
        a_region(&mut d);
        if d.hold_back().1 == Verdict::Pays {
            break;
        }
        touch_armed(&world, 1, |_| 1);
        d.region_end();
    }
    assert_eq!(d.hold_back().1, Verdict::Pays);
    let follows = armed(&world);
    assert!(!follows.is_empty() && follows.is_disjoint(&moved), "{} pages", follows.len());
    assert_eq!(follows.len() + moved.len(), pages);
    touch_armed(&world, 1, |_| 1);
    let world = world.lock().unwrap();
    assert!((0..pages).all(|i| world.homes[&(object + i * PAGE)] == NodeId(1)), "all is where it is used");
}

/// Of a large object the first node uses the front and the second the rest: what is held back
/// anywhere is judged, not that of the front alone.
#[test]
fn what_is_judged_is_judged_for_all_of_an_object() {
    let (mut d, world) = driver("next-touch", None, &[Set::Force(false)]);
    let (object, pages) = (BASE + (1 << 24), 1 << 17);
    d.born(object, pages * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    (0..pages).for_each(|i| _ = world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(0)));
    for _ in 0..200 {
        a_region(&mut d);
        if d.hold_back().1 != Verdict::Open {
            break;
        }
        let mut world = world.lock().unwrap();
        for (at, bytes, _) in std::mem::take(&mut world.arms) {
            for page in (at..at + bytes).step_by(PAGE) {
                let node = NodeId(u16::from(page >= object + pages / 2 * PAGE));
                world.touches.push(Touch { address: page, pages: 1, node, moved: true });
                world.homes.insert(page, node);
            }
        }
        drop(world);
        d.region_end();
    }
    let ((moved, held), verdict) = (d.hold_back().0.samples(), d.hold_back().1);
    assert_eq!(verdict, Verdict::Pays, "{moved:?} {held:?}");
    assert!(held.remote > 0 && held.remote < held.all, "{held:?}");
}

const LARGE: usize = BASE + (1 << 24);
const TWO: Set = Set::Machine(2, 2);
const FOUR: Set = Set::Machine(4, 1);

/// A program with one object: the user of each page, by the page's number.
struct Program<'a> {
    machine: Set,
    arming: Arming,
    pages: usize,
    /// Where its pages are at first.
    home: &'a dyn Fn(usize) -> u16,
    /// Who uses each first.
    first: &'a dyn Fn(usize) -> u16,
    /// Number of pages that the program then places itself, where they are.
    placed: usize,
    /// Who uses it then, by a random number below 1000.
    then: &'a dyn Fn(usize, u64) -> u16,
}

impl Program<'_> {
    /// Runs it until there is a verdict.
    fn run(&self, seed: u64) -> (Driver, Shared) {
        let mut set = vec![Set::Force(false), Set::Budget(1000, 60000)];
        set.extend([self.machine.clone(), Set::Arming(self.arming)]);
        let (mut d, world) = driver("next-touch", None, &set);
        d.born(LARGE, self.pages * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
        for i in 0..self.pages {
            world.lock().unwrap().homes.insert(LARGE + i * PAGE, NodeId((self.home)(i)));
        }
        if self.arming == Arming::Asked {
            assert!(d.next_touch(LARGE, self.pages * PAGE));
        }
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        a_region(&mut d);
        self.touch(&world, |i| (self.first)(i));
        d.region_end();
        if self.placed > 0 {
            d.placed(Span::new(LARGE, self.placed * PAGE), true);
        }
        for _ in 0..200 {
            a_region(&mut d);
            self.touch(&world, |i| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (self.then)(i, (random >> 33) % 1000)
            });
            d.region_end();
            if d.hold_back().1 != Verdict::Open {
                break;
            }
        }
        (d, world)
    }

    fn touch(&self, world: &Shared, mut by: impl FnMut(usize) -> u16) {
        let mut world = world.lock().unwrap();
        let arms = std::mem::take(&mut world.arms);
        let armed: BTreeSet<usize> = arms.iter().flat_map(|(at, n, _)| (*at..at + n).step_by(PAGE)).collect();
        for address in armed {
            // There is another object, of a few pages.
            let node = NodeId(by((address.saturating_sub(LARGE) / PAGE).min(self.pages - 1)));
            world.touches.push(Touch { address, pages: 1, node, moved: true });
            world.homes.insert(address, node);
        }
    }

    /// In how many of 40 runs what moved went back.
    fn undone(&self) -> usize {
        (0..40).filter(|seed| self.run(*seed).0.stopped().is_some()).count()
    }
}

/// A page belongs to the node that uses it most; all were elsewhere.
#[test]
fn a_small_gain_is_rarely_taken_for_none() {
    for (mib, share) in [(4, 600), (64, 600), (64, 650)] {
        let pages = mib << 8;
        let own = |i: usize| u16::from(i < pages / 2);
        let [home, then] = [&|i, _| 1 - own(i), &|i, r| if r < share { own(i) } else { 1 - own(i) }]
            as [&dyn Fn(usize, u64) -> u16; 2];
        let home = |i| home(i, 0);
        let p =
            Program { machine: TWO, arming: Arming::First, pages, home: &home, first: &own, placed: 0, then };
        let undone = p.undone();
        println!("{mib} MiB, {share}: {undone}");
        assert!(undone <= 2, "{mib} MiB, used by its own in {share} of 1000: undone in {undone} of 40");
    }
}

/// Half of the pages moved and are used by the node that has them in half of the touches, by each
/// other in a sixth; the rest had been in place, and are used by their own alone.
#[test]
fn what_had_been_in_place_does_not_speak_against_what_moved() {
    let (pages, rest) = (1 << 13, 1 << 14);
    let own = |i: usize| {
        if i < pages { (i * 4 / pages) as u16 } else { (i - pages) as u16 * 4 / (rest - pages) as u16 % 4 }
    };
    let home = |i: usize| if i < pages { (own(i) + 1) % 4 } else { own(i) };
    let then =
        |i: usize, r: u64| if i >= pages || r < 500 { own(i) } else { (own(i) + 1 + (r % 3) as u16) % 4 };
    let p = Program {
        machine: FOUR,
        arming: Arming::First,
        pages: rest,
        home: &home,
        first: &own,
        placed: 0,
        then: &then,
    };
    assert_eq!(p.undone(), 0);
}

#[test]
fn what_the_program_asked_for_itself_is_not_undone() {
    let pages = 1 << 14;
    let own = |i: usize| u16::from(i < pages / 2);
    let (home, then) = (|i| 1 - own(i), |_, r| (r % 2) as u16);
    let p = Program {
        machine: TWO,
        arming: Arming::Asked,
        pages,
        home: &home,
        first: &own,
        placed: 0,
        then: &then,
    };
    assert_eq!(p.undone(), 0);
    let (mut d, _) = p.run(1);
    assert!(d.hold_back().0.off && d.next_touch(LARGE, pages * PAGE), "and it may ask again");
}

#[test]
fn what_the_program_has_placed_since_stays_when_the_rest_goes_back() {
    let pages = 1 << 14;
    let then = |_, r| (r % 2) as u16;
    let placed = pages / 4;
    let p = Program {
        machine: TWO,
        arming: Arming::First,
        pages,
        home: &|_| 0,
        first: &|_| 1,
        placed,
        then: &then,
    };
    let (d, world) = p.run(1);
    assert_eq!(d.hold_back().1, Verdict::NoGain, "{:?}", d.hold_back().0.samples());
    let world = world.lock().unwrap();
    // What was held back of it has not moved before, and is not sampled.
    let held = |i| d.hold_back().0.was_held(LARGE + i * PAGE, 1 << 20);
    let is_on = |i, node| world.homes[&(LARGE + i * PAGE)] == NodeId(node);
    assert!((0..placed).all(|i| is_on(i, u16::from(!held(i)))));
    assert!((placed..pages).all(|i| is_on(i, 0)));
}

/// The source that was left gets nothing back when its pages have moved.
#[test]
fn what_goes_back_is_not_watched_again() {
    let (mut d, world) = driver("competitive", Some(SAMPLED), &[Set::Force(false)]);
    let pages = 1 << 12;
    d.born(LARGE, pages * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    (0..pages).for_each(|i| _ = world.lock().unwrap().homes.insert(LARGE + i * PAGE, NodeId(0)));
    let see = |d: &Driver, is_back: bool| {
        let page = |i: usize| LARGE + i * PAGE;
        // Too little for the policy to move most of it back by itself.
        let some =
            (0..pages).filter(|i| !is_back || i % 80 == 0 || d.hold_back().0.was_held(page(*i), 1 << 18));
        let node = NodeId(u16::from(!is_back));
        let seen = some.map(|i| Seen { address: page(i), node, time: Ns(0), kind: Some(AccessKind::Read) });
        world.lock().unwrap().seen.extend(seen);
    };
    let on_the_second =
        |world: &Shared| world.lock().unwrap().homes.values().filter(|n| **n == NodeId(1)).count();
    let mut has_moved = false;
    for _ in 0..60 {
        // As soon as it has moved to the second node the first one alone uses it again.
        see(&d, has_moved);
        later(20_000_000);
        round(&mut d, &world, &[]);
        has_moved |= on_the_second(&world) > pages / 2;
        if d.stopped().is_some() {
            break;
        }
    }
    assert!(has_moved, "{:?}", d.hold_back().0.samples());
    assert_eq!((d.hold_back().1, on_the_second(&world)), (Verdict::Harms, 0));
    assert!(world.lock().unwrap().watched.is_empty(), "{:?}", world.lock().unwrap().watched);
}
