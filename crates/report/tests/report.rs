//! What a report says of data sets of every kind.

mod support;

use homenode_dataset::tables::{Access, IntervalNo, Object, ObjectKind};
use homenode_dataset::{
    Basis, Dataset, DatasetMeta, MemoryDataset, Missing, RecordingKind, RowSink, SeenCount,
};
use homenode_model::{Bytes, NodeId, Ns, ObjectId, Ps};
use homenode_report::summary::Scope;
use homenode_report::{RecordingReport, Unit};
use support::{Heat, Placement};

fn names(report: &RecordingReport) -> Vec<&str> {
    report.objects.iter().map(|o| o.name.as_str()).collect()
}

#[test]
fn what_is_remote_is_counted_over_the_timed_part() {
    let report = RecordingReport::of(&Heat::default().dataset());
    let s = &report.summary;
    // 20 iterations, 512 pages of two grids; the small objects: 4 nodes × 8, and 100 that nobody
    // knows.
    let grids = 20 * 512 * (320 + 64);
    assert_eq!(s.remote.whole, grids + 20 * (4 * 8 + 100));
    assert_eq!(s.remote.part, grids * 3 / 4 + 20 * 3 * 8);
    assert_eq!((s.remote.of, s.remote.basis), (Unit::Accesses, Some(Basis::Exact)));
    assert_eq!((s.scope, s.whole, s.threads), (Scope::Timed, true, 4));
    assert_eq!(s.accesses_left_out.seen(), 512 * 384, "those of the initialisation");
    let left = s.left_out.unwrap();
    assert_eq!((left.initialisation.intervals, left.initialisation.time_ns), (1, Ns(412_000_000)));
    assert_eq!((left.between.intervals, left.end.intervals), (0, 1));
    let iterations = s.iterations.unwrap();
    assert_eq!((iterations.count, iterations.median_ns), (20, Ns(21_020_000)));
    assert!(report.moves.is_none());
}

#[test]
fn objects_come_in_the_order_of_their_remote_accesses() {
    let report = RecordingReport::of(&Heat::default().dataset());
    assert_eq!(names(&report), ["temperature_old", "temperature_new", "residual", ""]);
    let old = &report.objects[0];
    assert_eq!((old.accesses.seen(), old.remote.per_million()), (20 * 512 * 320, Some(750_000)));
    let used: Vec<_> = old.used_by.iter().map(|n| (n.node.0, n.units())).collect();
    assert_eq!(used, [0, 1, 2, 3].map(|n| (n, 20 * 128 * 320)));
    assert_eq!(old.accessed_on.len(), 1);
    let touch = &old.first_touch[..];
    assert_eq!((touch.len(), touch[0].node, touch[0].line, touch[0].pages), (1, NodeId(0), Some(41), 512));
    let lives: Vec<_> = old.residency.iter().map(|n| (n.node, n.pages)).collect();
    assert_eq!(lives, [(NodeId(0), 512)]);
    let nobody = &report.objects[3];
    assert_eq!((nobody.object, nobody.id.as_str(), nobody.accesses.seen()), (None, "", 2000));
}

#[test]
fn avoidable_is_what_the_best_home_of_each_page_would_save() {
    let report = RecordingReport::of(&Heat::default().dataset());
    let old = &report.objects[0];
    let (local, remote) = (96_000, 220_000);
    let accesses = 20 * 512 * 320;
    assert_eq!(old.memory_time, Some(Ps(accesses / 4 * (local + 3 * remote))));
    assert_eq!(old.avoidable, Some(Ps(accesses * 3 / 4 * (remote - local))));
    // All four nodes use its one page alike: no home is better than another.
    let residual = report.objects.iter().find(|o| o.name == "residual").unwrap();
    assert_eq!(residual.avoidable, Some(Ps(0)));
    assert_eq!(report.summary.block_pages, 1);
    let without = RecordingReport::of(&Heat { latencies: false, ..Heat::default() }.dataset());
    assert_eq!((without.summary.memory_time, without.summary.avoidable), (None, None));
}

#[test]
fn a_moved_array_says_when_where_why_and_whether_it_paid() {
    let heat = Heat { placement: Placement::NextTouch, ..Heat::default() };
    let report = RecordingReport::of(&heat.dataset());
    let all = report.moves.as_ref().unwrap();
    assert_eq!((all.pages, all.ping_pongs, all.refused), (2 * 384 + 2, 1, 0));
    let most: Vec<_> = report.moved_most.iter().map(|m| (m.name.as_str(), m.pages)).collect();
    assert_eq!(most, [("temperature_old", 386), ("temperature_new", 384)]);
    let old = report.objects.iter().find(|o| o.name == "temperature_old").unwrap();
    let moves = old.moves.as_ref().unwrap();
    assert_eq!((moves.pages, moves.ping_pongs), (386, 1));
    assert_eq!(moves.routes.len(), 4);
    assert_eq!(
        (moves.routes[0].from_node, moves.routes[0].to_node, moves.routes[0].pages),
        (NodeId(0), NodeId(1), 129)
    );
    let reason = &moves.reasons[0];
    assert_eq!(
        (reason.cause.as_str(), reason.policy.as_deref(), reason.pages),
        ("next touch", Some("next-touch"), 386)
    );
    assert_eq!(moves.first_ns, Some(Ns(412_000_000 + 21_020_000 + 1000)));
    let median =
        |times: Option<homenode_report::time::RoundTime>| times.map(|t| (t.count, t.median_ns.0 / 1_000_000));
    assert_eq!(median(moves.iterations_before), Some((1, 21)));
    assert_eq!(median(moves.iterations_during), Some((1, 34)));
    assert_eq!(median(moves.iterations_after), Some((18, 12)), "the ping-pong does not prolong the moving");
    assert_eq!(moves.remote_before.and_then(|s| s.per_million()), Some(750_000));
    assert_eq!(moves.remote_after.and_then(|s| s.per_million()), Some(0));
    let guard = moves.guard.unwrap();
    assert_eq!((guard.moved.samples, guard.moved.remote), (24, 0));
    assert_eq!((guard.held_back.samples, guard.held_back.remote), (8, 4));
}

#[test]
fn presence_has_shares_of_sightings_and_no_counts() {
    let heat = Heat { basis: Basis::Presence, kind: RecordingKind::Live, ..Heat::default() };
    let report = RecordingReport::of(&heat.dataset());
    let s = &report.summary;
    assert_eq!((s.remote.of, s.remote.basis), (Unit::Sightings, Some(Basis::Presence)));
    assert_eq!((s.accesses.count(), s.memory_time, s.avoidable), (None, None, None));
    for object in &report.objects {
        assert_eq!((object.accesses.count(), object.memory_time), (None, None), "{}", object.name);
        assert!(object.used_by.iter().chain(&object.accessed_on).all(|n| n.count.is_none()));
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["objects"][0]["accesses"]["count"], serde_json::Value::Null);
    assert_eq!(json["objects"][0]["remote"]["of"], "sightings");
}

#[test]
fn samples_stand_for_their_accesses() {
    let heat = Heat { basis: Basis::Sampled { one_in: 64 }, kind: RecordingKind::Live, ..Heat::default() };
    let report = RecordingReport::of(&heat.dataset());
    let old = report.objects.iter().find(|o| o.name == "temperature_old").unwrap();
    let (accesses, basis) = old.accesses.count().unwrap().parts();
    assert_eq!((accesses, basis), (20 * 512 * 320, Basis::Sampled { one_in: 64 }));
    assert_eq!(old.accesses.seen(), 20 * 512 * 5);
    assert!(old.avoidable.is_some_and(|t| t.0 > 0));
}

#[test]
fn nothing_at_all_is_a_report_too() {
    let meta = DatasetMeta::new(RecordingKind::Run, Basis::Presence, Vec::new());
    let report = RecordingReport::of(&Dataset::of_memory(meta, MemoryDataset::default()));
    assert_eq!((report.objects.len(), report.moves.is_none()), (0, true));
    assert_eq!((report.summary.remote.percent(), report.summary.iterations), (None, None));
    assert_eq!((report.summary.scope, report.summary.left_out), (Scope::Everything, None));
    assert_eq!(report.summary.missing, [Missing::CutOff]);
}

#[test]
fn without_a_timed_interval_everything_counts() {
    let report = RecordingReport::of(&Heat { iterations: 0, ..Heat::default() }.dataset());
    assert_eq!((report.summary.scope, report.summary.left_out), (Scope::Everything, None));
    assert_eq!(report.summary.accesses.seen(), 512 * 384);
    assert_eq!(report.summary.accesses_left_out.seen(), 0);
}

#[test]
fn a_cut_off_recording_says_so_and_shows_what_there_is() {
    let report = RecordingReport::of(&Heat { ended: false, ..Heat::default() }.dataset());
    assert_eq!((report.summary.whole, &report.summary.missing[..]), (false, &[Missing::CutOff][..]));
    assert_eq!(report.objects[0].name, "temperature_old");
    let json = serde_json::to_value(&report.summary).unwrap();
    assert_eq!(json["missing"][0], "the recording was cut off: it has no end");
}

#[test]
fn a_thousand_nodes_are_as_good_as_four() {
    let heat =
        Heat { nodes: 1000, pages: 4000, iterations: 3, placement: Placement::NextTouch, ..Heat::default() };
    let report = RecordingReport::of(&heat.dataset());
    let old = report.objects.iter().find(|o| o.name == "temperature_old").unwrap();
    assert_eq!((old.used_by.len(), old.residency.len()), (1000, 1000));
    let moves = report.moves.unwrap();
    assert_eq!(moves.pages, 2 * 3996);
    assert!(moves.routes.len() <= 256 && moves.routes[0].pages == 8);
}

/// An object that somebody made up.
fn object(number: u32, pages: u64) -> Object {
    Object {
        object: ObjectId(number),
        id: format!("a{number}"),
        process: 0,
        name: format!("a{number}"),
        kind: ObjectKind::Static,
        element_type: None,
        element_bytes: None,
        dimensions: Vec::new(),
        fields: homenode_dataset::fields::Fields::default(),
        file: None,
        line: None,
        function: None,
        stack: Vec::new(),
        bytes: Bytes(pages.saturating_mul(4096)),
        address: 0,
        allocations: 1,
        birth_ns: None,
        death_ns: None,
    }
}

fn access(object: Option<u32>, page: u64, node: u16, home: u16) -> Access {
    Access {
        interval: IntervalNo(0),
        region: None,
        object: object.map(ObjectId),
        page,
        pages: 1,
        node: NodeId(node),
        home: NodeId(home),
        kind: None,
        tally: SeenCount::new(10, Basis::Exact),
    }
}

fn of(fill: impl FnOnce(&mut MemoryDataset)) -> RecordingReport {
    let mut memory = MemoryDataset::default();
    fill(&mut memory);
    RecordingReport::of(&Dataset::of_memory(
        DatasetMeta::new(RecordingKind::Simulated, Basis::Exact, Vec::new()),
        memory,
    ))
}

#[test]
fn a_hundred_thousand_objects_are_told_apart() {
    let report = of(|m| {
        for n in 0..100_000 {
            m.push(&object(n, 1)).unwrap();
            m.push(&access(Some(n), 0, 1, u16::from(n % 2 == 0))).unwrap();
        }
    });
    assert_eq!(report.objects.len(), 100_000);
    assert!(report.objects[..50_000].iter().all(|o| o.remote.part == 10));
    assert!(report.objects[50_000..].iter().all(|o| o.remote.part == 0));
    assert_eq!(report.objects[0].name, "a1", "ids break ties");
}

#[test]
fn what_is_not_listed_belongs_to_nobody() {
    let report = of(|m| {
        m.push(&object(3, 1)).unwrap();
        m.push(&object(3, 9)).unwrap();
        for number in [Some(3), Some(4), None, Some(u32::MAX)] {
            m.push(&access(number, u64::MAX - 3, u16::MAX, 0)).unwrap();
        }
    });
    let found: Vec<_> = report.objects.iter().map(|o| (o.object, o.accesses.seen(), o.bytes.0)).collect();
    assert_eq!(found, [(None, 30, 0), (Some(ObjectId(3)), 10, 4096)]);
}

#[test]
fn sizes_of_strangers_do_not_take_their_memory() {
    use homenode_dataset::tables::{Link, Node};
    let report = of(|m| {
        for n in [0, 1] {
            m.push(&Node { node: NodeId(n), memory_bytes: None, cpus: 1 }).unwrap();
            for home in [0, 1] {
                let latency_ps = Some(Ps(if n == home { 100 } else { 300 }));
                let (from_node, to_node) = (NodeId(n), NodeId(home));
                m.push(&Link { from_node, to_node, distance: None, latency_ps, bandwidth_mb_per_s: None })
                    .unwrap();
            }
        }
        m.push(&object(0, u64::MAX)).unwrap();
        m.push(&object(1, 1)).unwrap();
        for page in [0, 1 << 40, u64::MAX] {
            m.push(&access(Some(0), page, 1, 0)).unwrap();
            m.push(&access(Some(1), page, 1, 0)).unwrap();
        }
    });
    assert!(report.summary.block_pages > 1 << 20, "{}", report.summary.block_pages);
    assert_eq!(report.objects.iter().map(|o| o.avoidable).collect::<Vec<_>>(), [Some(Ps(6000)); 2]);
}

#[test]
fn the_same_rows_in_another_order_give_the_same_report() {
    let rows = |backwards: bool| {
        of(|m| {
            (0..50).for_each(|n| m.push(&object(n, 4)).unwrap());
            let mut all: Vec<_> = (0..400_u32)
                .map(|i| access(Some(i * 7 % 50), u64::from(i % 4), (i % 3) as u16, (i % 2) as u16))
                .collect();
            if backwards {
                all.reverse();
            }
            all.iter().for_each(|a| m.push(a).unwrap());
        })
    };
    let json = |report: &RecordingReport| serde_json::to_string(report).unwrap();
    assert_eq!(json(&rows(false)), json(&rows(true)));
}
