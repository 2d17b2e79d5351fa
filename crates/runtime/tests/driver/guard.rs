//! What becomes of pages that moved: by the blocks that were held back.

use super::*;

#[test]
fn what_moving_made_worse_is_moved_back() {
    let (mut d, world, object, pages) = next_touch_with_object(&[]);
    a_region(&mut d);
    let moved = touch_armed(&world, 1, |_| 1);
    assert!((pages / 2..pages).contains(&moved), "{moved} of {pages}: some are held back");
    d.region_end();
    // From now on the first node alone uses all of it: what moved is remote, what was held back is not.
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

/// Both nodes use every page, as often the one as the other, once it has come to the node that `first` names.
fn with_pages_that_both_use(first: impl Fn(usize) -> u16) -> (Driver, Shared, std::ops::Range<usize>) {
    let (mut d, world, object, pages) = next_touch_with_object(&[]);
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
    let (d, world, object) = with_pages_that_both_use(|_| 1);
    assert_eq!(d.hold_back().1, Verdict::NoGain, "{:?}", d.hold_back().0.samples());
    assert!(d.stopped().unwrap().contains("made no difference"), "{:?}", d.stopped());
    let world = world.lock().unwrap();
    assert!(object.step_by(PAGE).all(|page| world.homes[&page] == NodeId(0)), "all is back");
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
    let (mut d, world, object, pages) = next_touch_with_object(&[]);
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

/// Of a large object the first node uses the front and the second the rest: what is held back anywhere is judged, not that of the front
/// alone.
#[test]
fn what_is_judged_is_judged_for_all_of_an_object() {
    let (mut d, world) = driver("next-touch", None, &[(settings::FORCE, "0")]);
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
