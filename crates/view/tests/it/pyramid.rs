//! A picture from the pyramid is the picture from the tables.

use std::fs;
use std::path::Path;

use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::{
    Access, Interval, IntervalNo, Migration, MigrationOutcome, Object, Residency,
};
use homenode_dataset::{Basis, Dataset, MemoryDataset, RowSink as _, SeenCount, TableRow as _};
use homenode_model::{NodeId, ObjectId};
use homenode_report::Unit;
use homenode_report::time::Timeline;
use homenode_view::cache;
use homenode_view::opened::{OpenedRecordings, load};
use homenode_view::tiles::build::{Finer, PyramidBudget, Window, finer};
use homenode_view::tiles::nodes::RecordedNodes;
use homenode_view::tiles::pyramid::{Pyramid, PyramidError, PyramidWriter, Recipe};

use crate::support::{fresh, number_of, synthetic, tables};

/// What there is to draw from.
struct Sources {
    set: Dataset,
    timeline: Timeline,
    nodes: RecordedNodes,
    pyramid: Pyramid,
    pages: u64,
    unit: Unit,
    object: ObjectId,
}

impl Sources {
    /// A pyramid whose buffers are as small as they can be: it has many runs.
    fn of(set: &Dataset, object: ObjectId) -> Self {
        let mut begin = |_: &Dataset, recipe| PyramidWriter::in_memory(Recipe { buffered: [0; 3], ..recipe });
        let OpenedRecordings { model, opened, mut pyramids } =
            load(vec![set.clone()], None, PyramidBudget::SERVER, &mut begin, &mut |_, _| true).unwrap();
        let pyramid = Pyramid::of(pyramids.remove(0).unwrap().finish("", &mut |_| true).unwrap()).unwrap();
        let of = |o: &&homenode_view::model::ObjectModel| o.report.object == Some(object);
        let drawn = model.objects.iter().find(of).unwrap();
        Self {
            set: set.clone(),
            timeline: Timeline::of(set),
            nodes: RecordedNodes::of(set, &opened[0].report),
            pyramid,
            pages: drawn.pages,
            unit: drawn.report.remote.of,
            object,
        }
    }

    fn draw(&self, window: Window, pyramid: Option<&Pyramid>) -> Finer {
        finer(&self.set, &self.timeline, &self.nodes, self.unit, window, pyramid)
    }

    /// Windows of all sizes all over the object and the time.
    fn windows(&self) -> Vec<Window> {
        let intervals = self.timeline.intervals().len() as u64;
        let size = |n: u64, all: u64| (all >> (2 * n)).max(1);
        let mut random = 7_u64;
        let mut place = |free: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % (free + 1)
        };
        let mut all = Vec::new();
        for (wide, long) in (0..5).flat_map(|w| (0..4).map(move |l| (w, l))) {
            let (pages, long) = (size(wide, self.pages), size(long, intervals));
            let page = place(self.pages - pages);
            let first = place(intervals - long) as usize;
            all.push(Window { object: self.object, page, pages, first, intervals: long as usize });
        }
        all
    }

    /// Compares all windows. `exact`: rows lie in one band each, so that nothing is rounded.
    fn compare(&self, exact: bool) {
        for window in self.windows() {
            let (tables, sums) = (self.draw(window, None), self.draw(window, Some(&self.pyramid)));
            assert_eq!((&tables.begin_ns, tables.end_ns), (&sums.begin_ns, sums.end_ns));
            let [tables, sums] = [&tables.levels[0], &sums.levels[0]];
            if exact {
                assert!(tables == sums, "{window:?}\n{tables:?}\n{sums:?}");
                continue;
            }
            assert_eq!(tables.moves, sums.moves, "{window:?}");
            assert_eq!(tables.home, sums.home, "{window:?}");
            assert_eq!(tables.home_percent, sums.home_percent, "{window:?}");
            assert_eq!(tables.who_nodes, sums.who_nodes, "{window:?}");
            for (a, b) in tables.who_percent.values().iter().zip(sums.who_percent.values()) {
                assert!(a.abs_diff(b) <= 1, "{a} and {b} percent in {window:?}");
            }
            for (a, b) in tables.remote.values().iter().zip(sums.remote.values()) {
                assert!(a.abs_diff(b) <= 1, "{a} and {b} percent in {window:?}");
            }
        }
    }
}

#[test]
fn windows_of_a_solver_are_those_of_the_tables() {
    let set = synthetic(100, 200);
    for name in ["grid_old", "queue", "halo"] {
        Sources::of(&set, number_of(&set, name)).compare(false);
    }
}

/// One object of single pages that move to and fro; two residencies overlap at times, and rows are
/// in no order of time.
fn restless(pages: u64, intervals: u32) -> Dataset {
    let set = synthetic(8, 64);
    let mut memory = MemoryDataset::default();
    let old = tables(&set, |_| {});
    let mut object = Dataset::of_memory(set.meta().clone(), old).rows::<Object>().next().unwrap();
    object.bytes = homenode_model::Bytes(pages * 4096);
    memory.push(&object).unwrap();
    for n in 0..intervals {
        let at = |n: u32| homenode_model::Ns(u64::from(n) * 1000);
        let interval = IntervalNo(n);
        let row = Interval { interval, begin_ns: at(n), end_ns: at(n + 1), iteration: Some(n), timed: true };
        memory.push(&row).unwrap();
    }
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) % below
    };
    let object = Some(object.object);
    for _ in 0..20_000 {
        let (page, interval) = (next(pages), IntervalNo(next(intervals.into()) as u32));
        let [node, home] = [next(3), next(3)].map(|n| NodeId(n as u16));
        let tally = SeenCount::new(next(1000), Basis::Exact);
        let access = Access { interval, region: None, object, page, pages: 1, node, home, kind: None, tally };
        memory.push(&access).unwrap();
    }
    for _ in 0..1000 {
        let (page, interval) = (next(pages), next(intervals.into()) as u32);
        let until = IntervalNo((interval + next(200) as u32).min(intervals - 1));
        let (interval, home) = (IntervalNo(interval), NodeId(next(3) as u16));
        let run = next(50) + 1;
        let pages = run.min(pages - page);
        memory.push(&Residency { object, page, pages, interval, until, home }).unwrap();
        let outcome = if home.0 == 0 { MigrationOutcome::PingPong } else { MigrationOutcome::Moved };
        let moved = set.rows::<Migration>().next().unwrap();
        memory.push(&Migration { interval, object, page, pages, outcome, ..moved }).unwrap();
    }
    Dataset::of_memory(set.meta().clone(), memory)
}

#[test]
fn windows_of_restless_pages_are_those_of_the_tables() {
    let set = restless(5000, 1100);
    Sources::of(&set, set.rows::<Object>().next().unwrap().object).compare(true);
}

#[test]
fn one_ping_pong_is_there_at_every_resolution() {
    let set = synthetic(150, 64);
    let queue = number_of(&set, "queue");
    let of = |m: &Migration| m.object == Some(queue) && m.outcome == MigrationOutcome::PingPong;
    let told: u64 = set.rows::<Migration>().filter(of).map(|m| m.pages).sum();
    assert!(told > 100);
    let sources = Sources::of(&set, queue);
    let intervals = sources.timeline.intervals().len();
    for pages in [1, 4, 16, sources.pages] {
        let window = Window { object: queue, page: 0, pages, first: 0, intervals };
        let drawn = sources.draw(window, Some(&sources.pyramid));
        let back: u64 = drawn.levels[0].moves.iter().map(|m| m[3]).sum();
        assert_eq!(back, told * pages.min(16) / 16, "{pages} pages");
    }
}

/// A recording in a folder, with its pyramid beside it.
fn kept(folder: &Path) -> Dataset {
    let spec = SyntheticSpec { iterations: 30, blocks: 300, nodes: 4, seed: 7, rank: None };
    let mut writer = homenode_dataset::DatasetWriter::create(folder, spec.meta()).unwrap();
    let ended = spec.fill(&mut writer, &mut |_, _| true).unwrap();
    writer.finish(ended).unwrap();
    let set = Dataset::open(folder).unwrap();
    let new = folder.join("view.pyramid.new");
    let mut begin = |_: &Dataset, recipe| PyramidWriter::create(recipe, &new);
    let mut loaded =
        load(vec![set.clone()], None, PyramidBudget::SERVER, &mut begin, &mut |_, _| true).unwrap();
    cache::finish(&set, loaded.pyramids.remove(0).unwrap(), &mut |_| true).unwrap();
    set
}

#[test]
fn a_pyramid_is_kept_and_a_damaged_one_is_not_believed() {
    let folder = fresh("pyramid-kept").join("set.hnrec");
    let set = kept(&folder);
    let file = folder.join(cache::PYRAMID);
    let good = fs::read(&file).unwrap();
    assert!(cache::pyramid(&set).is_some());
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        fs::write(&file, bytes).unwrap();
        cache::pyramid(&set)
    };
    assert!(changed(&|b| b.truncate(b.len() - 1)).is_none(), "cut off");
    assert!(changed(&|b| b.clear()).is_none(), "empty");
    let foot = good.len() - 28;
    assert!(changed(&|b| b[foot] ^= 1).is_none(), "another place of the index");
    assert!(changed(&|b| b[foot - 3] ^= 1).is_none(), "another index");
    // A damaged block is found when it is read: the tables are read instead.
    let index = u64::from_le_bytes(good[foot..foot + 8].try_into().unwrap()) as usize;
    let damaged = changed(&|b| b[8..index].iter_mut().step_by(50).for_each(|b| *b ^= 1)).unwrap();
    let object = set.rows::<Access>().find_map(|a| a.object).unwrap();
    let all = Window { object, page: 0, pages: 1 << 20, first: 0, intervals: 1000 };
    let (timeline, nodes) = (Timeline::of(&set), RecordedNodes::of_list((0..4).map(NodeId)));
    let draw = |p: Option<&Pyramid>| finer(&set, &timeline, &nodes, Unit::Accesses, all, p);
    assert_eq!(draw(Some(&damaged)), draw(None));
    fs::write(&file, &good).unwrap();
    let table = folder.join("tables").join(format!("{}.hntable", Migration::NAME));
    let mut bytes = fs::read(&table).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&table, bytes).unwrap();
    assert!(cache::pyramid(&Dataset::open(&folder).unwrap()).is_none(), "the tables are others");
    homenode_dataset::folder::remove(&folder).unwrap();
}

#[test]
fn a_pyramid_is_made_where_the_pictures_are_kept_alone() {
    let folder = fresh("pyramid-later").join("set.hnrec");
    let set = kept(&folder);
    let opened = crate::support::opened(set.clone());
    let model = opened.model(PyramidBudget::SERVER, &mut |_| true);
    cache::save(&opened, &model).unwrap();
    let (_, drawn) = cache::load(&set, None).unwrap();
    let object = number_of(&set, "grid_old");
    let (timeline, nodes) = (Timeline::of(&set), RecordedNodes::of(&set, &opened.report));
    let window = Window { object, page: 0, pages: 512, first: 0, intervals: 61 };
    let draw = |p: Option<&Pyramid>| finer(&set, &timeline, &nodes, Unit::Accesses, window, p);
    let built = cache::build(&set, &drawn, &mut |_| true).unwrap().unwrap();
    assert!(built.has(object));
    assert_eq!(draw(Some(&built)), draw(cache::pyramid(&set).as_ref()));
    assert!(cache::build(&set, &drawn, &mut |_| false).unwrap().is_none(), "somebody asks to stop");
}

#[test]
fn what_a_pyramid_cannot_hold_is_told() {
    let mut begin = |_: &Dataset, recipe: Recipe| {
        PyramidWriter::in_memory(Recipe { objects: vec![(ObjectId(0), 1); 1 << 16], ..recipe })
    };
    let set = synthetic(8, 64);
    let loaded = load(vec![set], None, PyramidBudget::SERVER, &mut begin, &mut |_, _| true).unwrap();
    assert!(matches!(loaded.pyramids[0], Err(PyramidError::TooMany("objects"))));
    assert!(loaded.model.objects.len() > 3, "the page is there");
}
