//! Pages with a known target that move while the team runs.

use homenode_wire::facts::KnownMoves;
use homenode_wire::settings::MoveWhile;

use super::*;

const OBJECT: usize = BASE + (1 << 24);
/// Pages of an object on the first node. `block` wants half of them on the second.
const PAGES: usize = 1 << 17;
/// Pages that move while the team sleeps.
const BULK: u64 = 8192;
const KEY: RegionKey = RegionKey { function: 7, caller: 9 };

fn large(when: MoveWhile) -> (Driver, Shared) {
    let (mut d, world) = driver("block", None, &[Set::MoveWhile(when), Set::Budget(1000, 1000)]);
    d.born(OBJECT, PAGES * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    (0..PAGES).for_each(|i| _ = world.lock().unwrap().homes.insert(OBJECT + i * PAGE, NodeId(0)));
    (d, world)
}

fn moved(world: &Shared) -> usize {
    let world = world.lock().unwrap();
    (0..PAGES).filter(|i| world.homes[&(OBJECT + i * PAGE)] == NodeId(1)).count()
}

/// A run of the region, with at most `turns` of the thread beside it. Each page that the thread
/// moves makes the region take `slower` longer.
fn region(d: &mut Driver, world: &Shared, turns: usize, slower: u64) -> usize {
    later(200_000_000);
    d.region_begin(KEY);
    let before = moved(world);
    let asleep = std::mem::take(&mut world.lock().unwrap().move_wall_ns);
    let mut wants = d.wants_mover();
    for _ in 0..turns {
        if !wants {
            break;
        }
        wants = d.move_beside().is_some_and(|rest| rest == Ns(0));
    }
    let beside = moved(world) - before;
    world.lock().unwrap().move_wall_ns = asleep;
    later(2_000_000 + slower * beside as u64);
    d.region_end();
    beside
}

fn known(d: &Driver) -> KnownMoves {
    report::facts(d, Vec::new()).known_moves
}

#[test]
fn a_thread_moves_what_is_too_much_for_the_start_of_a_region() {
    let (mut d, world) = large(MoveWhile::Auto);
    let beside = region(&mut d, &world, 3, 0);
    assert_eq!(beside, 3 * 512, "a huge page a turn");
    assert!((BULK..BULK + 4096).contains(&known(&d).asleep), "{:?}", known(&d));
    let at = moved(&world);
    assert!(d.move_beside().is_some_and(|rest| rest > Ns(0)), "pages wait, and no region runs");
    assert_eq!(moved(&world), at);
    while moved(&world) < PAGES / 2 {
        let at = moved(&world);
        region(&mut d, &world, 8, 0);
        assert!(moved(&world) > at, "each run moves something: {at}");
    }
    assert_eq!(d.move_beside(), None, "nothing waits");
    let k = known(&d);
    assert!(k.asleep >= 3 * BULK && k.beside >= 8 * 512, "{k:?}");
    assert!((0..PAGES).all(|i| home(&world, (1 << 12) + i) == (2 * i / PAGES) as u16));
    assert!(d.serial_time() <= d.own_time());
}

#[test]
fn what_costs_the_program_less_is_chosen() {
    for (slower, cheaper) in [(900, true), (1100, false)] {
        let (mut d, world) = large(MoveWhile::Auto);
        world.lock().unwrap().move_wall_ns = 1000;
        while known(&d).compared < 3 && moved(&world) < PAGES / 2 {
            region(&mut d, &world, 1, slower);
        }
        let k = known(&d);
        assert_eq!((k.compared, k.compared_pages), (3, 3 * 512), "{slower}");
        assert_eq!(k.longer, Ns(3 * 512 * slower), "{slower}");
        assert_eq!(k.waited, Ns(1000 * k.asleep));
        let beside: Vec<bool> = (0..3).map(|_| region(&mut d, &world, 1, slower) > 0).collect();
        assert_eq!(beside, [cheaper; 3]);
        assert_eq!(moved(&world) == PAGES / 2, !cheaper, "all of it at once, while the team sleeps");
    }
}

#[test]
fn who_asks_for_it_gets_all_of_it_beside_the_team_or_none() {
    let (mut d, world) = large(MoveWhile::Asleep);
    assert_eq!(region(&mut d, &world, 8, 0), 0);
    assert_eq!((moved(&world), known(&d).beside), (PAGES / 2, 0));
    let (mut d, world) = large(MoveWhile::Running);
    region(&mut d, &world, 8, 0);
    d.end();
    let told = d.notes().iter().any(|n| n.contains("were not moved: the program ended before their turn"));
    assert!(told, "{:?}", d.notes());
    let (mut d, world) = large(MoveWhile::Running);
    assert!(region(&mut d, &world, 8, 0) > 0);
    while moved(&world) < PAGES / 2 {
        assert!(region(&mut d, &world, 8, 0) > 0, "in every run");
    }
    let k = known(&d);
    assert!(k.asleep < 4096 && k.beside >= (PAGES / 2 - 4096) as u64, "{k:?}");
}

#[test]
fn without_a_thread_everything_moves_while_the_team_sleeps() {
    let (mut d, world) = large(MoveWhile::Auto);
    later(200_000_000);
    d.region_begin(KEY);
    assert!(d.wants_mover());
    d.has_no_mover();
    later(200_000_000);
    d.region_end();
    assert_eq!(region(&mut d, &world, 8, 0), 0);
    assert_eq!(moved(&world), PAGES / 2);
    assert!(d.notes().iter().any(|n| n.contains("no thread could be made")), "{:?}", d.notes());
}

#[test]
fn freed_memory_does_not_wait_for_a_move() {
    let (mut d, world) = large(MoveWhile::Auto);
    region(&mut d, &world, 1, 0);
    let at = moved(&world);
    d.dies(OBJECT);
    region(&mut d, &world, 8, 0);
    assert_eq!((moved(&world), d.move_beside()), (at, None));
}
