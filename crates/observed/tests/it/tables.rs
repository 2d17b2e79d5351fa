//! A stream's facts are in the tables: homes, sightings, regions, iterations, moves with causes,
//! threads.

use homenode_dataset::tables::{
    Access, FirstTouch, GuardGroup, Interval, Iteration, IterationSource, Link, Migration, MigrationCause,
    MigrationOutcome, Node, Object, ObjectKind, OwnCost, Region, RegionKind, RegionTime, Residency, Sample,
    ThreadStay,
};
use homenode_dataset::{Basis, Dataset, SeenCount};
use homenode_model::{AccessKind, Bytes, MoveResult, NodeId, Ns};
use homenode_wire::facts::{FRAMES, LoadedFile, Origin};
use homenode_wire::live::{self, LiveRecord, ObjectNo, RegionIdentity, RegionNo, SourceAnswers, ThreadNo};

use crate::support::{Folder, MS, frames, home, migration, object, observe, pages, program, start};

fn set_of(name: &str, records: &[LiveRecord]) -> Dataset {
    let folder = Folder::new(name);
    folder.stream(7, &frames(records, 5));
    observe(folder.path()).0
}

#[test]
fn a_whole_stream_is_a_data_set_that_lacks_nothing() {
    let folder = Folder::new("whole");
    folder.stream(7, &frames(&program(7, 0), 5));
    let (set, summary) = observe(folder.path());
    assert_eq!(set.missing(), []);
    let meta = set.meta();
    assert_eq!((meta.source.as_str(), meta.basis.as_str()), ("samples", "sampled, one in 100"));
    assert_eq!((meta.policy.as_deref(), meta.page_bytes, meta.pretended), (Some("next-touch"), 4096, false));
    assert!(meta.coarsened.is_empty() && meta.notes.is_empty() && summary.early.is_empty());
    assert_eq!((summary.objects, summary.sightings, summary.seen_rows), (1, 12, 2));
    assert_eq!(summary.migrations, 2);
}

#[test]
fn the_machine_is_its_nodes_and_distances() {
    let set = set_of("machine", &program(7, 0));
    let nodes: Vec<_> = set.rows::<Node>().map(|n| (n.node.0, n.memory_bytes, n.cpus)).collect();
    assert_eq!(nodes, [(0, Some(Bytes(1 << 30)), 1), (1, Some(Bytes(1 << 30)), 1)]);
    let links: Vec<_> =
        set.rows::<Link>().map(|l| (l.from_node.0, l.to_node.0, l.distance.unwrap())).collect();
    assert_eq!(links, [(0, 0, 10), (0, 1, 21), (1, 0, 21), (1, 1, 10)]);
}

#[test]
fn moves_have_time_cause_region_and_what_came_of_them() {
    let set = set_of("moves", &program(7, 0));
    let rows: Vec<Migration> = set.rows().collect();
    let short: Vec<_> = rows
        .iter()
        .map(|m| {
            (m.time_ns.0 / MS, m.interval.0, m.page, m.pages, m.from_node.0, m.to_node.0, m.cause, m.outcome)
        })
        .collect();
    assert_eq!(
        short,
        [
            (12, 1, 0, 8, 0, 1, MigrationCause::NextTouch, MigrationOutcome::Moved),
            (25, 2, 2, 4, 1, 0, MigrationCause::Undo, MigrationOutcome::PingPong),
        ]
    );
    assert!(
        rows.iter().all(|m| m.region.is_some_and(|r| r.0 == 0) && m.policy.as_deref() == Some("next-touch"))
    );
    assert_eq!(rows.iter().map(|m| m.cost_ns.unwrap().0).collect::<Vec<_>>(), [8000, 4000]);
}

#[test]
fn pages_live_somewhere_in_every_interval() {
    let set = set_of("homes", &program(7, 0));
    let mut rows: Vec<_> =
        set.rows::<Residency>().map(|r| (r.page, r.pages, r.interval.0, r.until.0, r.home.0)).collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        [
            (0, 2, 1, 3, 1),
            (0, 8, 0, 0, 0),
            (2, 4, 1, 1, 1),
            (2, 4, 2, 3, 0),
            (6, 2, 1, 3, 1),
            (8, 8, 0, 3, 0)
        ]
    );
    // Together they are each page in each interval, once.
    let places: u64 = rows.iter().map(|(_, pages, from, until, _)| pages * u64::from(until - from + 1)).sum();
    assert_eq!(places, 16 * 4);
}

#[test]
fn sightings_keep_their_basis_place_and_kind() {
    let set = set_of("seen", &program(7, 0));
    let rows: Vec<Access> = set.rows().collect();
    let short: Vec<_> = rows.iter().map(|a| (a.interval.0, a.page, a.node.0, a.home.0, a.kind)).collect();
    assert_eq!(short, [(0, 3, 1, 0, Some(AccessKind::Write)), (2, 9, 1, 0, Some(AccessKind::Write))]);
    let sampled = Basis::Sampled { one_in: 100 };
    assert_eq!(rows[0].tally, SeenCount::new(5, sampled));
    assert_eq!(rows[1].tally, SeenCount::new(7, sampled));
}

#[test]
fn who_cannot_count_has_no_counts() {
    let mut records = program(7, 0);
    records[3] = LiveRecord::Source { name: "faults".into(), says: SourceAnswers::Presence };
    let set = set_of("presence", &records);
    assert_eq!(set.meta().basis, "presence");
    assert!(
        set.rows::<Access>().all(|a| a.tally == SeenCount::new(5, Basis::Presence)
            || a.tally == SeenCount::new(7, Basis::Presence))
    );
    // A sample that stands for no access is none.
    records[3] = LiveRecord::Source { name: "samples".into(), says: SourceAnswers::Sampled { one_in: 0 } };
    assert_eq!(set_of("presence-0", &records).meta().basis, "presence");
}

#[test]
fn regions_have_runs_times_and_a_kind() {
    let mut records = program(7, 0);
    records.insert(
        10,
        LiveRecord::Region { number: RegionNo(1), key: RegionIdentity { function: 12, caller: 0x40_2000 } },
    );
    let set = set_of("regions", &records);
    let rows: Vec<_> = set.rows::<Region>().map(|r| (r.region.0, r.kind, r.runs, r.time_ns.0)).collect();
    assert_eq!(rows, [(0, RegionKind::Parallel, 2, 3 * MS)], "a barrier that never ended is none");
    let times: Vec<_> =
        set.rows::<RegionTime>().map(|t| (t.interval.0, t.region.0, t.runs, t.time_ns.0)).collect();
    assert_eq!(times, [(0, 0, 2, 3 * MS)]);
}

#[test]
fn iterations_tell_which_intervals_are_timed() {
    let set = set_of("iterations", &program(7, 0));
    let rows: Vec<_> =
        set.rows::<Iteration>().map(|i| (i.iteration, i.begin_ns.0 / MS, i.source, i.process)).collect();
    let told = IterationSource::Told;
    assert_eq!(rows, [(1, 10, told, 7), (2, 20, told, 7), (3, 30, told, 7)]);
    let timed = |set: &Dataset| set.rows::<Interval>().map(|i| i.timed).collect::<Vec<_>>();
    assert_eq!(timed(&set), [false, true, true, true], "the initialisation is left out");
    // Without iterations nothing can be left out.
    let without: Vec<LiveRecord> = program(7, 0)
        .into_iter()
        .filter(|r| !matches!(r, LiveRecord::Iteration { .. }))
        .map(|r| match r {
            LiveRecord::Interval { index, begin, end, .. } => {
                LiveRecord::Interval { index, begin, end, iteration: None }
            }
            other => other,
        })
        .collect();
    assert_eq!(timed(&set_of("no-iterations", &without)), [true; 4]);
}

#[test]
fn slots_are_given_in_the_order_of_birth() {
    // Something happened to the second array first; both live at once. The third takes the place of
    // the first.
    let born = |number, bytes, ms| LiveRecord::Object {
        number: ObjectNo(number),
        origin: Origin::Allocated([0x1001; FRAMES]),
        address: 0x10_0000 * u64::from(number + 1),
        bytes: Bytes(bytes),
        birth: Ns(ms * MS),
        python: None,
    };
    let gone = LiveRecord::ObjectGone { number: ObjectNo(0), death: Ns(5 * MS) };
    let records = [
        start(7, 0),
        born(1, 4096, 1),
        born(0, 8192, 1),
        gone,
        born(2, 8192, 6),
        LiveRecord::End { whole: true },
    ];
    let ids: Vec<_> =
        set_of("slots", &records).rows::<Object>().map(|o| (o.bytes.0, o.id, o.allocations)).collect();
    let [(4096, second, 1), (8192, first, 2)] = &ids[..] else { panic!("{ids:?}") };
    assert!(first.ends_with(" #0") && second.ends_with(" #1"), "{ids:?}");
}

#[test]
fn threads_first_touches_and_own_cost_are_there() {
    let set = set_of("threads", &program(7, 0));
    let threads: Vec<_> =
        set.rows::<ThreadStay>().map(|t| (t.process, t.cpu, t.node, t.to_ns.0 / MS, t.bound)).collect();
    assert_eq!(threads, [(7, Some(1), Some(NodeId(1)), 30, Some(true))]);
    let touches: Vec<_> = set.rows::<FirstTouch>().map(|t| (t.page, t.pages, t.node.0)).collect();
    assert_eq!(touches, [(0, 16, 0)]);
    let own: Vec<_> = set.rows::<OwnCost>().map(|o| (o.own_ns.0 / MS, o.cpu_ns.0 / MS)).collect();
    assert_eq!(own, [(1, 40)]);
    // On pretended nodes nobody is known to have touched first.
    let mut records = program(7, 0);
    if let LiveRecord::Start { pretended, .. } = &mut records[0] {
        *pretended = true;
    }
    assert_eq!(set_of("pretended", &records).rows::<FirstTouch>().count(), 0);
}

#[test]
fn a_page_fault_tells_thread_time_and_code_of_a_first_touch() {
    // The test's own file has symbols.
    let own = std::env::current_exe().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let first = maps.lines().find(|line| line.ends_with(own.to_str().unwrap())).unwrap();
    let base = u64::from_str_radix(first.split('-').next().unwrap(), 16).unwrap();
    let code = a_page_fault_tells_thread_time_and_code_of_a_first_touch as fn() as usize as u64;
    for pretended in [false, true] {
        let mut records = program(7, 0);
        if let LiveRecord::Start { pretended: p, .. } = &mut records[0] {
            *p = pretended;
        }
        let (base, path) = (base, own.to_str().unwrap().to_owned());
        records.insert(1, LiveRecord::Module(LoadedFile { base, low: 0, high: 1 << 30, path }));
        let home = records.iter().position(|r| matches!(r, LiveRecord::Home { .. })).unwrap();
        let told = |first, count, node, ms| LiveRecord::FirstTouch {
            object: ObjectNo(0),
            pages: pages(first, count),
            thread: Some(ThreadNo(1)),
            node: NodeId(node),
            time: Ns(ms * MS),
            pc: code,
        };
        records.insert(home, told(2, 4, 1, 3));
        records.insert(home + 1, told(4, 4, 0, 4));
        let rows: Vec<FirstTouch> = set_of("faults", &records).rows().collect();
        let known: Vec<_> =
            rows.iter().map(|t| (t.page, t.pages, t.thread.map(|t| t.0), t.node.0, t.time_ns)).collect();
        let (a, b) = (Some(Ns(3 * MS)), Some(Ns(4 * MS)));
        let mut expected = vec![(2, 4, Some(1), 1, a), (6, 2, Some(1), 0, b)];
        if !pretended {
            // The others had no fault. They are where somebody touched them first.
            expected.extend([(0, 2, None, 0, None), (8, 8, None, 0, None)]);
        }
        assert_eq!(known, expected);
        for touch in &rows[..2] {
            assert!(touch.function.as_ref().is_some_and(|f| f.contains("a_page_fault_tells")), "{touch:?}");
        }
        assert!(rows[2..].iter().all(|t| (t.function.as_ref(), t.line) == (None, None)));
    }
}

#[test]
fn the_guards_samples_are_of_a_group() {
    let mut records = program(7, 0);
    for (page, held_back, node) in [(1, true, 1), (2, false, 0)] {
        let (object, node, home) = (ObjectNo(0), NodeId(node), NodeId(0));
        records.insert(9, LiveRecord::Sample { time: Ns(MS), object, page, held_back, node, home });
    }
    let set = set_of("samples", &records);
    let rows: Vec<_> = set.rows::<Sample>().map(|s| (s.page, s.group, s.remote)).collect();
    assert_eq!(rows, [(2, GuardGroup::Moved, false), (1, GuardGroup::HeldBack, true)]);
}

#[test]
fn refused_moves_change_no_home() {
    let refused = |outcome| match migration(5, pages(0, 4), 0, 1, live::MoveOrigin::Plan) {
        LiveRecord::Migration { time, object, pages, from, to, cause, region, cost, .. } => {
            LiveRecord::Migration { time, object, pages, from, to, cause, region, cost, outcome }
        }
        other => other,
    };
    let records = [
        start(7, 0),
        object(0, 4 * 4096, 0x4000),
        home(0, pages(0, 4), 0),
        refused(MoveResult::NoMemory),
        refused(MoveResult::AlreadyThere),
        LiveRecord::End { whole: true },
    ];
    let set = set_of("refused", &records);
    let rows: Vec<_> = set.rows::<Migration>().map(|m| (m.cause, m.outcome)).collect();
    assert_eq!(rows, [(MigrationCause::Plan, MigrationOutcome::Refused)]);
    assert!(set.rows::<Residency>().all(|r| r.home == NodeId(0)));
}

#[test]
fn an_object_that_comes_again_is_the_same() {
    let mut records = vec![start(7, 0)];
    for number in 0..3 {
        records.push(LiveRecord::Object {
            number: ObjectNo(number),
            origin: homenode_wire::facts::Origin::Allocated([0x40_0000, 0x40_1000, 0, 0, 0, 0]),
            address: 0x1000 * u64::from(number),
            bytes: Bytes(4096 * u64::from(number + 1)),
            birth: Ns(u64::from(number) * MS),
            python: None,
        });
        records
            .push(LiveRecord::ObjectGone { number: ObjectNo(number), death: Ns(u64::from(number) * MS + 5) });
    }
    records.push(LiveRecord::End { whole: true });
    let set = set_of("again", &records);
    let rows: Vec<Object> = set.rows().collect();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (rows[0].allocations, rows[0].bytes, rows[0].kind),
        (3, Bytes(3 * 4096), ObjectKind::Allocated)
    );
    assert_eq!(rows[0].death_ns, Some(Ns(2 * MS + 5)));
}
