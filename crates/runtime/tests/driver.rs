//! The driver with a mover and a source that a test holds in its hands: what a policy is told, what
//! is moved, what it costs.

#[path = "driver/budget.rs"]
mod budget;
#[path = "driver/every_policy.rs"]
mod every_policy;
#[path = "driver/first_touch.rs"]
mod first_touch;
#[path = "driver/guard.rs"]
mod guard;
#[path = "driver/overlap.rs"]
mod overlap;
#[path = "driver/probing.rs"]
mod probing;
#[path = "driver/recorded_firsts.rs"]
mod recorded_firsts;
#[path = "driver/regions.rs"]
mod regions;
#[path = "driver/trial.rs"]
mod trial;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use homenode_model::{AccessKind, Bytes, MoveResult, NodeId, Ns};
use homenode_policy::journal;
use homenode_runtime::driver::mover::Manner;
use homenode_runtime::driver::{Armed, Arming, Clocks, Driver, DriverSettings, Mover, MoverCounters, Touch};
use homenode_runtime::guard::Verdict;
use homenode_runtime::regions::RegionKey;
use homenode_runtime::report;
use homenode_runtime::watch::choice::Eyes;
use homenode_runtime::watch::{ChosenSource, Origin};
use homenode_sources::{AddressTouch as Seen, AnswerKind, Source};
use homenode_sys::Span;
use homenode_wire::facts::Budget;
use homenode_wire::settings as wire;

const PAGE: usize = 4096;
const BASE: usize = 0x1000_0000;

thread_local! {
    static WALL: Cell<u64> = const { Cell::new(1) };
    static CPU: Cell<u64> = const { Cell::new(1) };
    static PROCESS: Cell<u64> = const { Cell::new(1) };
}

const CLOCKS: Clocks =
    Clocks { wall: || Ns(WALL.get()), thread: || Ns(CPU.get()), process: || Ns(PROCESS.get()) };

#[derive(Default)]
struct World {
    homes: BTreeMap<usize, NodeId>,
    touches: Vec<Touch>,
    seen: Vec<Seen>,
    asked: Vec<usize>,
    watched: Vec<Span>,
    calls: Vec<usize>,
    pinned: Vec<usize>,
    arms: Vec<(usize, usize, Manner)>,
    settled: usize,
    restored: usize,
    own_ns: u64,
    copies: u64,
    nothing_can_be_armed: bool,
    /// Homes are only known of pages whose first touch is seen.
    sees_first_touches: bool,
    /// Threads: number, CPU, whether bound.
    threads: Vec<(u32, u32, bool)>,
    /// Looks for room.
    looks: usize,
    /// CPU time of the thread that moves a page.
    move_ns: u64,
    /// Wall time of a move.
    move_wall_ns: u64,
    /// Of the thread that asks for one.
    ask_ns: u64,
    /// What the source says that takes, if something else.
    ask_said_ns: Option<u64>,
}

type Shared = Arc<Mutex<World>>;

struct Hands(Shared);

impl Mover for Hands {
    fn arm(&mut self, spans: &[Span], manner: Manner) -> Armed {
        let arms = spans.iter().map(|s| (s.start, s.len(), manner));
        let mut world = self.0.lock().unwrap();
        world.arms.extend(arms);
        if world.nothing_can_be_armed {
            return Armed { pages: 0, skipped: spans.iter().map(|s| s.pages() as u64).sum() };
        }
        Armed { pages: spans.iter().map(|s| s.pages() as u64).sum(), skipped: 0 }
    }
    fn armed(&self) -> u64 {
        let mut world = self.0.lock().unwrap();
        world.looks += 1;
        world.arms.iter().map(|(_, bytes, _)| (bytes / PAGE) as u64).sum()
    }
    fn can_stay(&self) -> bool {
        !self.0.lock().unwrap().nothing_can_be_armed
    }
    fn disarm(&mut self) {}
    fn settle(&mut self) {
        self.0.lock().unwrap().settled += 1;
    }
    fn restore_huge_pages(&mut self, _: Ns) -> bool {
        let mut world = self.0.lock().unwrap();
        world.restored += 1;
        // The first time there is more to do.
        world.restored == 1
    }
    fn touches(&mut self, tell: &mut dyn FnMut(Touch)) {
        std::mem::take(&mut self.0.lock().unwrap().touches).into_iter().for_each(tell);
    }
    fn one_home(&mut self, _: usize, _: usize) -> Option<NodeId> {
        None
    }
    fn homes(&mut self, address: usize, pages: usize, _: Option<NodeId>, out: &mut Vec<Option<NodeId>>) {
        let world = self.0.lock().unwrap();
        out.extend((0..pages).map(|i| world.homes.get(&(address + i * PAGE)).copied()));
    }
    fn move_pages(&mut self, pages: &[(usize, NodeId)], out: &mut Vec<MoveResult>) {
        let mut world = self.0.lock().unwrap();
        CPU.set(CPU.get() + world.move_ns * pages.len() as u64);
        WALL.set(WALL.get() + world.move_wall_ns * pages.len() as u64);
        world.calls.push(pages.len());
        assert!(world.watched.iter().all(|s| !s.contains(pages[0].0)), "the source still has what moves");
        for (page, to) in pages {
            if world.pinned.contains(page) {
                out.push(MoveResult::Busy);
            } else {
                world.homes.insert(*page, *to);
                out.push(MoveResult::Moved);
            }
        }
    }
    fn moves_in_use(&self) -> bool {
        true
    }
    fn prefer(&mut self, _: usize, _: usize, _: Option<NodeId>) -> Result<bool, String> {
        Ok(false)
    }
    fn threads(&self, _node_of: &dyn Fn(u32) -> Option<NodeId>, tell: &mut dyn FnMut(u32, u32, bool)) {
        self.0.lock().unwrap().threads.iter().for_each(|(id, cpu, bound)| tell(*id, *cpu, *bound));
    }
    fn sees_first_touches(&self) -> bool {
        self.0.lock().unwrap().sees_first_touches
    }
    fn counters(&self) -> MoverCounters {
        let world = self.0.lock().unwrap();
        MoverCounters { own: Ns(world.own_ns), copies: world.copies, ..MoverCounters::default() }
    }
    fn cannot(&self) -> Vec<String> {
        Vec::new()
    }
}

struct Eye(Shared, AnswerKind);

impl Source for Eye {
    fn name(&self) -> &'static str {
        "a test"
    }
    fn says(&self) -> AnswerKind {
        self.1
    }
    fn watch(&mut self, span: Span, _: NodeId) {
        self.0.lock().unwrap().watched.push(span);
    }
    fn leave(&mut self, span: Span) {
        self.0.lock().unwrap().watched.retain(|s| !s.overlaps(span));
    }
    fn ask(&mut self, pages: &[usize]) -> usize {
        let mut world = self.0.lock().unwrap();
        CPU.set(CPU.get() + world.ask_ns * pages.len() as u64);
        world.asked.extend(pages);
        pages.len()
    }
    fn drain(&mut self, tell: &mut dyn FnMut(Seen)) {
        std::mem::take(&mut self.0.lock().unwrap().seen).into_iter().for_each(tell);
    }
    fn stop(&mut self) {
        self.0.lock().unwrap().watched.clear();
    }
    fn cannot(&self) -> Vec<String> {
        vec!["a test has its limits".into()]
    }
    fn cost(&self) -> Ns {
        Ns(1_000)
    }
    fn asking(&self) -> Ns {
        let world = self.0.lock().unwrap();
        Ns(world.ask_said_ns.unwrap_or(world.ask_ns))
    }
    fn lost(&self) -> u64 {
        0
    }
    fn state_bytes(&self) -> usize {
        0
    }
}

const SAMPLED: AnswerKind = AnswerKind::Sampled { one_in: 1000 };
const PRESENCE: AnswerKind = AnswerKind::Presence { writers_only: false };

/// A driver for a policy, on two nodes of two CPUs, with 64 pages at `BASE` on node 0; and a region
/// key. What a test sets otherwise.
#[derive(Clone)]
enum Set {
    Arming(Arming),
    /// Permille, milliseconds.
    Budget(u64, u64),
    Force(bool),
    MoveWhile(wire::MoveWhile),
    /// No budget of the user's.
    Trial,
    Journal(std::path::PathBuf),
    /// Nodes of a GiB, and CPUs of each.
    Machine(u32, u32),
}

fn driver(policy: &str, says: Option<AnswerKind>, more: &[Set]) -> (Driver, Shared) {
    driver_with(policy, |world| says.map(|s| Eyes::Source(Box::new(Eye(world.clone(), s)))), more)
}

fn driver_with(policy: &str, eyes: impl FnOnce(&Shared) -> Option<Eyes>, more: &[Set]) -> (Driver, Shared) {
    let world = Shared::default();
    let eyes = eyes(&world).map(|eyes| ChosenSource { eyes, refused: vec![] });
    let mut asked = wire::Settings {
        policy: policy.into(),
        arming: if eyes.is_some() { Arming::Watch } else { Arming::First },
        machine: wire::MachineNodes::even(2, 2, Bytes::gib(1), 20),
        force: true,
        ..wire::Settings::default()
    };
    for set in more.iter().cloned() {
        match set {
            Set::Arming(arming) => asked.arming = arming,
            Set::Budget(permille, ms) => asked.budget = Budget { permille, fixed: Ns(ms * 1_000_000) },
            Set::Force(force) => asked.force = force,
            Set::MoveWhile(when) => asked.move_while = when,
            Set::Trial => asked.trial = true,
            Set::Journal(folder) => asked.journal = Some(folder),
            Set::Machine(nodes, cpus) => {
                asked.machine = wire::MachineNodes::even(nodes, cpus, Bytes::gib(1), 20)
            }
        }
    }
    let settings = DriverSettings::of("/nowhere".as_ref(), asked).unwrap();
    let mut d = Driver::new(settings, Box::new(Hands(world.clone())), eyes, CLOCKS).unwrap();
    for i in 0..64 {
        world.lock().unwrap().homes.insert(BASE + i * PAGE, NodeId(0));
    }
    d.born(BASE, 64 * PAGE, Origin::Allocated([1, 0, 0, 0, 0, 0]));
    (d, world)
}

fn later(ns: u64) {
    WALL.set(WALL.get() + ns);
    PROCESS.set(PROCESS.get() + ns);
}

/// A round of the program's loop: a region, in which these pages are seen.
fn round(d: &mut Driver, world: &Shared, seen: &[(usize, u16)]) {
    d.region_begin(RegionKey { function: 7, caller: 9 });
    for (page, node) in seen {
        let touch = Seen { address: BASE + page * PAGE + 8, node: NodeId(*node), time: Ns(0), kind: None };
        world.lock().unwrap().seen.push(touch);
    }
    later(2_000_000);
    d.region_end();
}

fn home(world: &Shared, page: usize) -> u16 {
    world.lock().unwrap().homes[&(BASE + page * PAGE)].0
}

#[test]
fn counts_move_pages_after_an_iteration() {
    let (mut d, world) = driver("competitive", Some(SAMPLED), &[]);
    let seen: Vec<_> = (0..64).map(|p| (p, u16::from(p >= 32))).collect();
    for _ in 0..6 {
        round(&mut d, &world, &seen);
    }
    assert_eq!([0, 31, 32, 63].map(|p| home(&world, p)), [0, 0, 1, 1]);
    let times = d.times();
    assert!(!times.before.is_empty() && !times.after.is_empty(), "{times:?}");
    let world = world.lock().unwrap();
    assert_eq!(world.calls, [32], "in one call");
    assert_eq!(world.watched, [Span::new(BASE, 64 * PAGE)], "watched again after the move");
}

/// Regions of which none repeats, long enough to be looked at.
fn different_regions(d: &mut Driver, world: &Shared, seen: &[(usize, u16)], regions: std::ops::Range<usize>) {
    for number in regions {
        d.region_begin(RegionKey { function: 100 + number, caller: 9 });
        for (page, node) in seen {
            let touch =
                Seen { address: BASE + page * PAGE + 8, node: NodeId(*node), time: Ns(0), kind: None };
            world.lock().unwrap().seen.push(touch);
        }
        later(200_000_000);
        d.region_end();
    }
}

#[test]
fn until_an_iteration_is_known_pages_move_after_a_region() {
    let other = |from| (from..64).map(|p| (p, 1)).collect::<Vec<_>>();
    for (policy, says) in
        [("competitive", SAMPLED), ("competitive-balanced", SAMPLED), ("competitive", PRESENCE)]
    {
        let (mut d, world) = driver(policy, Some(says), &[]);
        different_regions(&mut d, &world, &other(32), 0..4);
        assert_eq!([0, 31, 32, 63].map(|p| home(&world, p)), [0, 0, 1, 1], "{policy} {says}");
        assert_eq!(d.times().rounds, 0);
        // That nothing moved does not end it.
        different_regions(&mut d, &world, &other(32), 4..10);
        different_regions(&mut d, &world, &other(16), 10..14);
        assert_eq!([0, 15, 16, 31].map(|p| home(&world, p)), [0, 0, 1, 1], "{policy} {says}");
        // Once the program says so, iterations count, and the end of a region is that of no
        // interval.
        d.iteration(0);
        different_regions(&mut d, &world, &other(0), 14..18);
        assert_eq!(home(&world, 0), 0, "{policy} {says}");
        assert!(!world.lock().unwrap().seen.is_empty(), "nobody looks at the end of regions any more");
        d.iteration(1);
        assert_eq!(home(&world, 0), 1, "{policy} {says}");
    }
}

#[test]
fn what_a_source_could_not_do_is_told_once() {
    let (mut d, world) = driver("competitive", Some(PRESENCE), &[Set::Budget(10, 0)]);
    (0..3).for_each(|_| round(&mut d, &world, &[]));
    assert!(!d.notes().iter().any(|n| n.contains("its limits")), "{:?}", d.notes());
    d.end();
    let notes = report::facts(&d, Vec::new()).notes;
    assert_eq!(notes.iter().filter(|n| *n == "a test has its limits").count(), 1, "{notes:?}");
}

#[test]
fn presence_moves_by_proportion_and_is_called_presence() {
    let (mut d, world) = driver("competitive", Some(PRESENCE), &[]);
    for _ in 0..4 {
        round(&mut d, &world, &[]);
    }
    // Eight draws of the second block: all of the other node.
    let draws: Vec<_> = (0..8).map(|i| (16 + i, 1)).collect();
    for _ in 0..3 {
        round(&mut d, &world, &draws);
    }
    assert_eq!([0, 15, 16, 31, 32].map(|p| home(&world, p)), [0, 0, 1, 1, 0]);
    let watch = report::facts(&d, Vec::new()).watch.unwrap();
    assert_eq!(watch.source, "a test; presence (order only)");
    assert!(!watch.source.contains("sampled"), "{watch:?}");
}

#[test]
fn a_policy_that_needs_counts_decides_nothing_by_presence() {
    let (mut d, world) = driver("out-w", Some(PRESENCE), &[]);
    let seen: Vec<_> = (0..64).cycle().take(640).map(|p| (p, 1)).collect();
    for _ in 0..4 {
        round(&mut d, &world, &seen);
    }
    assert_eq!(home(&world, 5), 0);
    assert!(d.notes().iter().any(|n| n.contains("needs counts")), "{:?}", d.notes());
    let (mut d, world) = driver("out-w", Some(SAMPLED), &[]);
    for _ in 0..4 {
        round(&mut d, &world, &seen);
    }
    assert_eq!(home(&world, 5), 1, "with counts it does");
}

#[test]
fn a_page_that_stays_is_an_outcome_for_the_policy() {
    let (mut d, world) = driver("competitive:quiet=0", Some(SAMPLED), &[]);
    world.lock().unwrap().pinned.push(BASE + 40 * PAGE);
    let seen: Vec<_> = (32..64).map(|p| (p, 1)).collect();
    for _ in 0..6 {
        round(&mut d, &world, &seen);
    }
    assert_eq!([39, 40, 41].map(|p| home(&world, p)), [1, 0, 1]);
    // It goes on trying the one, and that one alone: the policy knows what became of the others.
    let world = world.lock().unwrap();
    assert_eq!(world.calls[0], 32);
    assert!(world.calls.len() > 1 && world.calls[1..].iter().all(|n| *n == 1), "{:?}", world.calls);
}

#[test]
fn a_touch_that_brought_nothing_is_no_move() {
    let (mut d, world) = driver("next-touch", None, &[]);
    let touch = |page: usize, moved| Touch { address: BASE + page * PAGE, pages: 4, node: NodeId(1), moved };
    round(&mut d, &world, &[]);
    world.lock().unwrap().touches.extend([touch(0, false), touch(8, true)]);
    round(&mut d, &world, &[]);
    let object = d.objects().live().next().unwrap();
    assert_eq!((object.history.moved, object.history.touched.iter().sum::<u64>()), (4, 4));
    let home = |page| object.home(homenode_model::PageNo(object.pages.first.0 + page));
    assert_eq!([0, 3, 8, 11].map(home), [0, 0, 1, 1].map(|n| Some(NodeId(n))));
}

#[test]
fn pages_are_asked_for_from_a_thread_within_the_budget() {
    let (mut d, world) = driver("competitive", Some(PRESENCE), &[]);
    round(&mut d, &world, &[]);
    assert!(d.wants_ticks());
    let mut asked = Vec::new();
    for _ in 0..50 {
        later(1_000_000);
        assert!(d.tick().is_some());
        asked.push(world.lock().unwrap().asked.len());
    }
    let last = *asked.last().unwrap();
    assert!(last > 0 && last <= 50 * 10_000 * 4 / 1_000 + 256, "{asked:?}");
    let all_ours = world.lock().unwrap().asked.iter().all(|a| (BASE..BASE + 64 * PAGE).contains(a));
    assert!(all_ours);
}

#[test]
fn watching_by_blocks_ends_when_nothing_can_be_taken_away_any_more() {
    let (mut d, world) = driver_with("competitive", |_| Some(Eyes::Armed), &[]);
    round(&mut d, &world, &[]);
    let mut tick = |times: usize| {
        for _ in 0..times {
            later(1_000_000);
            assert!(d.tick().is_some());
        }
        (std::mem::take(&mut world.lock().unwrap().arms).len(), d.notes().concat())
    };
    let (asked, notes) = tick(50);
    assert!(asked > 0 && !notes.contains("ended"), "{notes}");
    world.lock().unwrap().nothing_can_be_armed = true;
    let (asked, notes) = tick(50);
    assert_eq!(asked, 0);
    assert_eq!(notes.matches("source blocks ended").count(), 1, "{notes}");
    // The rest goes on: regions are seen, and the report says what was used.
    round(&mut d, &world, &[]);
    let watch = report::facts(&d, Vec::new()).watch.unwrap();
    assert!(watch.source.starts_with("pages taken away"), "{watch:?}");
}

#[test]
fn the_journal_replays_to_the_same_decisions() {
    let folder = std::env::temp_dir().join(format!("homenode-journal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (policy, says) in
        [("competitive", SAMPLED), ("competitive", PRESENCE), ("presence", PRESENCE), ("daemon", PRESENCE)]
    {
        let (mut d, world) = driver(policy, Some(says), &[Set::Journal(folder.clone())]);
        for i in 0..40 {
            let seen: Vec<_> = (0..64).map(|p| (p, u16::from((p + i) % 5 > 1))).collect();
            round(&mut d, &world, &seen);
            d.tick();
        }
        d.dies(BASE);
        d.end();
        let file = folder.join(format!("{}.hnpj", std::process::id()));
        let bytes = std::fs::read(&file).unwrap();
        let checked = journal::check(&bytes).unwrap();
        assert!(checked.complete && checked.difference.is_none() && checked.decisions > 0, "{checked:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn moves_that_are_decided_at_the_end_of_a_region_are_own_time() {
    for (policy, says) in
        [("out-u", SAMPLED), ("out-w", SAMPLED), ("in-w:at=region", SAMPLED), ("presence", PRESENCE)]
    {
        let (mut d, world) = driver(policy, Some(says), &[]);
        // Long calls, so that there is nothing else of that length.
        world.lock().unwrap().move_ns = 1_000_000;
        let seen: Vec<_> = (0..64).cycle().take(64 * 40).map(|p| (p, 1)).collect();
        for _ in 0..4 {
            round(&mut d, &world, &seen);
        }
        let moved: usize = world.lock().unwrap().calls.iter().sum();
        assert!(moved > 0, "{policy}: nothing moved");
        assert!(d.own_time() >= Ns(moved as u64 * 1_000_000), "{policy}: {:?} for {moved}", d.own_time());
    }
}

#[test]
fn time_that_others_had_the_cpu_is_not_homenodes() {
    let (mut d, world) = driver("competitive", Some(SAMPLED), &[]);
    // Every look at the clock on the wall takes a second: somebody else runs all the time.
    let slow = Clocks {
        wall: || {
            WALL.set(WALL.get() + 1_000_000_000);
            Ns(WALL.get())
        },
        ..CLOCKS
    };
    let settings = d.settings().clone();
    drop(d);
    d = Driver::new(settings, Box::new(Hands(world.clone())), None, slow).unwrap();
    for _ in 0..10 {
        round(&mut d, &world, &[]);
    }
    assert!(d.own_time() < Ns(1_000_000), "{:?}", d.own_time());
}

#[test]
fn the_budget_is_of_cpu_time_and_ends_the_watching() {
    let (mut d, world) = driver("competitive", Some(PRESENCE), &[Set::Budget(10, 0)]);
    CPU.set(1);
    later(1_000_000_000);
    round(&mut d, &world, &[]);
    // 20 samples of 1 µs are more than 1 % of 1 ms.
    let seen: Vec<_> = (0..64).cycle().take(64 * 400).map(|p| (p, 1)).collect();
    for _ in 0..3 {
        round(&mut d, &world, &seen);
    }
    assert!(d.tick().is_none());
    assert!(d.stopped().unwrap().contains("budget ran out"), "{:?}", d.stopped());
}

#[test]
fn small_objects_come_page_by_page() {
    let (mut d, world) = driver("next-touch", None, &[]);
    d.region_begin(RegionKey { function: 7, caller: 9 });
    let arms = std::mem::take(&mut world.lock().unwrap().arms);
    assert_eq!(arms, [(BASE, 64 * PAGE, Manner::Alone)], "a block would be half of a node's part");
}

#[test]
fn seams_are_armed_page_by_page() {
    let (mut d, world) = driver("next-touch", None, &[]);
    let object = BASE + (1 << 24);
    d.born(object, 512 * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    for i in 0..512 {
        world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(0));
    }
    // All arms of the object since the last time.
    let arms = |world: &Shared| -> Vec<_> {
        std::mem::take(&mut world.lock().unwrap().arms).into_iter().filter(|a| a.0 >= object).collect()
    };
    let whole = (object, 512 * PAGE, Manner::Around);
    let region = |d: &mut Driver| {
        later(2_000_000);
        d.region_begin(RegionKey { function: 7, caller: 9 });
    };
    region(&mut d);
    assert_eq!(arms(&world), [whole]);
    for i in 16..32 {
        let address = object + i * 16 * PAGE;
        world.lock().unwrap().touches.push(Touch { address, pages: 16, node: NodeId(1), moved: true });
    }
    d.region_end();
    region(&mut d);
    // The iteration is known now, and all comes once more.
    let seam = (object + 15 * 16 * PAGE, 32 * PAGE, Manner::Alone);
    assert_eq!(arms(&world), [whole, seam]);
    d.region_end();
    region(&mut d);
    assert_eq!(arms(&world), [seam], "the seams of the second time");
    d.region_end();
    region(&mut d);
    assert_eq!(arms(&world), []);
}

#[test]
fn the_daemon_moves_what_draws_agree_on_whatever_the_program_does() {
    let (mut d, world) = driver("daemon", Some(PRESENCE), &[]);
    round(&mut d, &world, &[]);
    for i in 0..40 {
        later(11_000_000);
        let touch = Seen { address: BASE + i % 16 * PAGE, node: NodeId(1), time: Ns(0), kind: None };
        world.lock().unwrap().seen.push(touch);
        assert!(d.tick().is_some());
    }
    assert_eq!([0, 15, 16].map(|p| home(&world, p)), [1, 1, 0]);
}

#[test]
fn reads_and_writes_are_told_as_such() {
    let (mut d, world) = driver("daemon:replicate=yes,least=1", Some(SAMPLED), &[]);
    round(&mut d, &world, &[]);
    for i in 0..40 {
        later(11_000_000);
        let touch =
            |node: u16, kind| Seen { address: BASE, node: NodeId(node), time: Ns(0), kind: Some(kind) };
        world.lock().unwrap().seen.extend([touch(0, AccessKind::Read), touch(1, AccessKind::Read)]);
        if i > 20 {
            world.lock().unwrap().seen.push(touch(1, AccessKind::Write));
        }
        assert!(d.tick().is_some());
    }
    // Copies are what Linux cannot do: the policy is told so, and nothing breaks.
    assert!(d.stopped().is_none());
}

/// A driver for next touch that holds blocks back, with an object of 64 MiB on node 0; and the
/// object.
fn next_touch_with_object(more: &[Set]) -> (Driver, Shared, usize, usize) {
    let mut set = vec![Set::Force(false)];
    set.extend_from_slice(more);
    let (mut d, world) = driver("next-touch", None, &set);
    let (object, pages) = (BASE + (1 << 24), 1 << 14);
    d.born(object, pages * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    for i in 0..pages {
        world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(0));
    }
    (d, world, object, pages)
}

/// Has all that was armed be touched: what was armed for a whole by `node`, samples of one page by
/// the node that `sample` names. How many pages.
fn touch_armed(world: &Shared, node: u16, sample: impl Fn(u16) -> u16) -> usize {
    let mut world = world.lock().unwrap();
    let arms = std::mem::take(&mut world.arms);
    for (address, bytes, _) in &arms {
        let at = world.homes.get(address).map_or(0, |n| n.0);
        let by = NodeId(if *bytes == PAGE { sample(at) } else { node });
        for page in (*address..address + bytes).step_by(16 * PAGE) {
            let pages = ((address + bytes - page) / PAGE).min(16) as u32;
            world.touches.push(Touch { address: page, pages, node: by, moved: true });
        }
        for page in (*address..address + bytes).step_by(PAGE) {
            world.homes.insert(page, by);
        }
    }
    arms.iter().map(|a| a.1 / PAGE).sum()
}

fn a_region(d: &mut Driver) {
    later(20_000_000);
    d.region_begin(RegionKey { function: 7, caller: 9 });
}

#[test]
fn without_budget_nothing_is_armed_any_more() {
    let (mut d, world, ..) = next_touch_with_object(&[Set::Budget(10, 100)]);
    PROCESS.set(1_000_000);
    a_region(&mut d);
    assert!(touch_armed(&world, 1, |_| 1) > 0);
    // A thread of the program's has spent a second for homenode, by the mover's own account.
    world.lock().unwrap().own_ns = 1_000_000_000;
    d.region_end();
    for _ in 0..5 {
        a_region(&mut d);
        d.region_end();
    }
    assert!(d.stopped().unwrap().contains("budget ran out"), "{:?}", d.stopped());
    world.lock().unwrap().arms.clear();
    assert!(!d.next_touch(BASE + (1 << 24), 1 << 20));
    assert_eq!(world.lock().unwrap().arms, [], "not even when asked");
    // The process has used so much by now that there is budget again.
    later(200_000_000_000);
    assert!(d.next_touch(BASE + (1 << 24), 1 << 20) && d.stopped().is_none());
}

#[test]
fn nothing_is_held_back_of_what_the_program_asks_for() {
    let (mut d, world, object, pages) = next_touch_with_object(&[Set::Arming(Arming::Asked)]);
    assert!(d.next_touch(object, pages * PAGE));
    assert_eq!(touch_armed(&world, 1, |_| 1), pages);
}

#[test]
fn what_was_touched_is_tidied_up_though_nothing_moved() {
    let (mut d, world, ..) = next_touch_with_object(&[Set::Force(true)]);
    a_region(&mut d);
    assert!(touch_armed(&world, 0, |_| 0) > 0);
    d.region_end();
    let counts = |world: &Shared| {
        let world = world.lock().unwrap();
        (world.settled, world.restored)
    };
    assert_eq!(counts(&world), (1, 0), "more may be touched at once");
    // There were more huge pages to bring back; then there were none.
    for _ in 0..4 {
        a_region(&mut d);
        world.lock().unwrap().arms.clear();
        d.region_end();
    }
    assert_eq!(counts(&world), (1, 2));
}

/// What bringing a page costs in the tests below.
const COST: u64 = 1_500;

/// A region in which the team touches all that is armed, at its price. Pages that were armed.
fn a_region_with_a_price(d: &mut Driver, world: &Shared, cpu: u64) -> Vec<usize> {
    later(cpu);
    d.region_begin(RegionKey { function: 7, caller: 9 });
    let armed: Vec<usize> = {
        let world = world.lock().unwrap();
        world.arms.iter().flat_map(|(at, bytes, _)| (*at..at + bytes).step_by(PAGE)).collect()
    };
    let pages = touch_armed(world, 1, |_| 1) as u64;
    let mut w = world.lock().unwrap();
    (w.own_ns, w.copies) = (w.own_ns + pages * COST, w.copies + pages);
    drop(w);
    d.region_end();
    armed
}

#[test]
fn no_more_is_armed_than_there_is_room_for_and_the_rest_follows() {
    let set = [Set::Budget(10, 10), Set::Force(true)];
    let (mut d, world, object, pages) = next_touch_with_object(&set);
    let allowed = |d: &Driver| d.settings().budget.allows(d.cpu_time());
    let ours = |armed: &[usize]| armed.iter().filter(|p| **p >= object).count();
    // Ten milliseconds are some thousand pages at most.
    let first = a_region_with_a_price(&mut d, &world, 1_000_000);
    assert!(first.len() < 10_000_000 / COST as usize, "{}", first.len());
    assert!(d.own_time() <= allowed(&d), "{:?}", d.own_time());
    // A second of CPU time is ten milliseconds more; each page comes once.
    let mut seen: BTreeSet<usize> = first.iter().copied().collect();
    let mut turns = vec![ours(&first)];
    for _ in 0..10 {
        let armed = a_region_with_a_price(&mut d, &world, 1_000_000_000);
        turns.push(ours(&armed));
        // The seams are armed once more.
        seen.extend(armed);
        assert!(d.own_time() <= allowed(&d) && d.stopped().is_none(), "{:?}", d.stopped());
    }
    assert!((object..object + pages * PAGE).step_by(PAGE).all(|p| seen.contains(&p)), "{turns:?}");
    assert!(turns.iter().filter(|n| **n > 0).count() > 1, "{turns:?}");
    d.end();
    assert!(!d.notes().iter().any(|n| n.contains("no room")), "{:?}", d.notes());
}

#[test]
fn what_the_budget_had_no_room_for_is_said() {
    let set = [Set::Budget(10, 40), Set::Force(true)];
    let (mut d, world, object, pages) = next_touch_with_object(&set);
    let armed = a_region_with_a_price(&mut d, &world, 1_000_000).into_iter().filter(|p| *p >= object).count();
    assert!((1..pages).contains(&armed), "{armed}");
    d.end();
    let left = format!("{} MiB were not armed", ((pages - armed) * PAGE) >> 20);
    assert!(d.notes().iter().any(|n| n.starts_with(&left)), "{left}: {:?}", d.notes());
}

#[test]
fn an_object_that_dies_waits_no_longer() {
    let set = [Set::Budget(10, 40), Set::Force(true)];
    let (mut d, world, object, pages) = next_touch_with_object(&set);
    a_region_with_a_price(&mut d, &world, 1_000_000);
    d.dies(object);
    // Another one is there now, of which nobody has touched anything yet.
    world.lock().unwrap().homes.clear();
    d.born(object, pages * PAGE, Origin::Allocated([3, 0, 0, 0, 0, 0]));
    for _ in 0..10 {
        let armed = a_region_with_a_price(&mut d, &world, 1_000_000_000);
        assert!(armed.iter().all(|p| *p < object));
    }
    d.end();
    // That of the first one is told.
    let told: Vec<&String> = d.notes().iter().filter(|n| n.contains("no room")).collect();
    assert!(told.len() == 1 && !told[0].starts_with("64 MiB"), "{told:?}");
}

#[test]
fn a_large_object_is_watched_once_there_was_room_for_all_of_it() {
    let (mut d, world) = driver("competitive", Some(SAMPLED), &[Set::Budget(10, 10)]);
    let (object, pages) = (BASE + (1 << 24), 1 << 15);
    d.born(object, pages * PAGE, Origin::Allocated([2, 0, 0, 0, 0, 0]));
    (0..pages).for_each(|i| _ = world.lock().unwrap().homes.insert(object + i * PAGE, NodeId(0)));
    let watched = |world: &Shared| world.lock().unwrap().watched.iter().any(|s| s.contains(object));
    later(1_000_000);
    round(&mut d, &world, &[]);
    assert!(!watched(&world));
    for _ in 0..10 {
        later(1_000_000_000);
        round(&mut d, &world, &[]);
    }
    assert!(watched(&world) && d.stopped().is_none(), "{:?}", d.stopped());
}
