//! What is armed once more when the iteration is known: a little of a large object, and all of it if that tells that it is needed.

use super::*;

/// The first region touches all of an object of 64 MiB by the node that `first` names for each page, the others by the one that `then` names, ten
/// times. Pages that the others found armed.
fn armed_after(first: fn(usize) -> u16, then: fn(usize) -> u16) -> usize {
    let (mut d, world, object, pages) = next_touch_with_object(&[(settings::FORCE, "1")]);
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
