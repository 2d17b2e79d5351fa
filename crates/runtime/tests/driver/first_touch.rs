//! First touches of pages that are not there when a region begins, and on which nodes threads are
//! seen.

use super::*;

/// An object far from the others.
const FAR: usize = BASE + (1 << 30);
const PAGES: usize = 2048;

/// The node that touches a page of it, first and ever after.
fn user(page: usize) -> NodeId {
    NodeId(u16::from(page >= PAGES / 2))
}

/// Pages of the object that were armed, each once, and how; nothing is armed any more.
fn take_armed(world: &Shared) -> Vec<(usize, Manner)> {
    let arms = std::mem::take(&mut world.lock().unwrap().arms);
    let mine = arms.into_iter().filter(|(start, ..)| *start >= FAR);
    let mut pages: Vec<_> = mine
        .flat_map(|(start, bytes, manner)| (0..bytes / PAGE).map(move |i| ((start - FAR) / PAGE + i, manner)))
        .collect();
    pages.sort_unstable_by_key(|(page, _)| *page);
    let before = pages.len();
    pages.dedup_by_key(|(page, _)| *page);
    assert_eq!(before, pages.len(), "no page is armed twice");
    pages
}

fn region(d: &mut Driver, world: &Shared, function: usize) -> Vec<(usize, Manner)> {
    later(2_000_000);
    d.region_begin(RegionKey { function, caller: 9 });
    let armed = take_armed(world);
    for (page, _) in &armed {
        let (address, node) = (FAR + page * PAGE, user(*page));
        let mut world = world.lock().unwrap();
        // The mover notes where it is.
        world.homes.insert(address, node);
        world.touches.push(Touch { address, pages: 1, node, moved: true });
    }
    d.region_end();
    armed
}

#[test]
fn a_first_touch_is_seen_of_every_page_and_is_no_move() {
    for sees in [true, false] {
        let (mut d, world) = driver("next-touch", None, &[Set::Force(false)]);
        world.lock().unwrap().sees_first_touches = sees;
        d.born(FAR, PAGES * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
        let first = region(&mut d, &world, 7);
        assert_eq!(first.len(), if sees { PAGES } else { 0 }, "blocks that are held back later, too");
        if !sees {
            continue;
        }
        assert!(first.iter().all(|(_, manner)| *manner == Manner::Alone));
        let of = |d: &Driver| {
            let object = d.objects().get(FAR).unwrap();
            (
                object.took_part(),
                object.history.homes.clone(),
                object.history.touched.iter().sum::<u64>(),
                object.history.moved,
            )
        };
        assert_eq!(of(&d), (false, vec![], 0, 0), "whoever touches a page first has not come from elsewhere");
        // Now it follows its next touch, but for what is held back; that is where it is already.
        let second = region(&mut d, &world, 8);
        assert!(second.len() < PAGES && second.len() > PAGES * 9 / 10, "{}", second.len());
        let half = PAGES as u64 / 2;
        assert_eq!(of(&d), (true, vec![half, half], second.len() as u64, 0));
    }
}

#[test]
fn missing_pages_are_armed_until_their_object_dies() {
    let (mut d, world) = driver("next-touch", None, &[]);
    world.lock().unwrap().sees_first_touches = true;
    d.born(FAR, PAGES * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    d.region_begin(RegionKey { function: 7, caller: 9 });
    d.region_end();
    assert!(d.objects().get(FAR).unwrap().treatment.awaited);
    // The front end disarms what it frees: the driver only forgets it.
    d.dies(FAR);
    let arms = || world.lock().unwrap().arms.iter().filter(|(start, ..)| *start >= FAR).count();
    let before = arms();
    assert!(before > 0);
    d.region_begin(RegionKey { function: 7, caller: 9 });
    d.region_end();
    assert!(d.objects().get(FAR).is_none());
    assert_eq!(arms(), before, "what is gone is not armed again");
}

#[test]
fn threads_that_change_nodes_are_counted() {
    let (mut d, world) = driver("next-touch", None, &[]);
    for round in 0..40 {
        // CPUs 0 and 1 are node 0's. The second thread is bound, the third changes nodes.
        world.lock().unwrap().threads = vec![(1, round % 2, false), (2, 2, true), (3, round % 4, false)];
        later(25_000_000);
        d.region_begin(RegionKey { function: 7, caller: 9 });
        d.region_end();
    }
    let told = report::facts(&d, vec![]).threads;
    assert_eq!((told.threads, told.unbound, told.changed_nodes, told.nodes), (3, 2, 1, 2));
    assert!(told.looks >= 3 * 20, "{told:?}");
}
