//! The picture of where pages lived.

mod support;

use homenode_dataset::tables::{Interval, IntervalNo, Object, ObjectKind, Residency};
use homenode_dataset::{Basis, Dataset, DatasetMeta, MemoryDataset, RecordingKind, RowSink};
use homenode_model::{Bytes, NodeId, Ns, ObjectId};
use homenode_report::RecordingReport;
use homenode_report::map::{Map, MapObject, MapSize, MapSource};
use proptest::prelude::*;
use support::{Heat, Placement};

fn map(set: &Dataset, width: usize, height: usize) -> Map {
    Map::of(set, &RecordingReport::of(set), MapSize { width, height })
}

/// A band as text: the home's number, `~` where it is mixed, `.` where nobody lives.
fn text(object: &MapObject) -> Vec<String> {
    let letter = |c: &homenode_report::map::MapCell| match c.home {
        None => ".".into(),
        Some(_) if c.is_mixed() => "~".into(),
        Some(home) => home.0.to_string(),
    };
    object.bands.iter().map(|b| b.cells.iter().map(letter).collect()).collect()
}

#[test]
fn each_quarter_goes_to_its_user() {
    let heat = Heat { placement: Placement::NextTouch, iterations: 6, ..Heat::default() };
    let map = map(&heat.dataset(), 80, 11);
    assert_eq!((map.source, map.columns.len(), map.objects_left_out), (MapSource::Residency, 8, 0));
    assert_eq!(map.homes, [0, 1, 2, 3].map(NodeId));
    let names: Vec<_> = map.objects.iter().map(|o| (o.name.as_str(), o.bands.len())).collect();
    assert_eq!(names, [("temperature_old", 4), ("temperature_new", 4), ("residual", 1)]);
    assert_eq!(text(&map.objects[0]), ["00000000", "00111111", "00222222", "00333333"]);
    assert_eq!(map.objects[0].bands.iter().map(|b| (b.page, b.pages)).collect::<Vec<_>>()[1], (128, 128));
    let timed: Vec<bool> = map.columns.iter().map(|c| c.timed).collect();
    assert_eq!(timed, [false, true, true, true, true, true, true, false]);
    let moved: Vec<_> = map.objects[0].bands.iter().map(|b| (b.cells[2].moved, b.cells[4].moved)).collect();
    assert_eq!(moved, [(0, 0), (128, 2), (128, 0), (128, 0)]);
    assert_eq!(map.objects[0].bands[1].cells[4].ping_pongs, 1);
    assert_eq!(map.columns[2].iteration, Some(1));
}

#[test]
fn few_columns_hold_many_intervals() {
    let heat = Heat { placement: Placement::NextTouch, iterations: 20, ..Heat::default() };
    let map = map(&heat.dataset(), 5, 6);
    assert_eq!(map.columns.len(), 5);
    assert_eq!(
        map.columns.iter().map(|c| (c.interval.0, c.until.0)).collect::<Vec<_>>(),
        [(0, 3), (4, 7), (8, 12), (13, 16), (17, 21)]
    );
    // Two of the first four intervals were spent on node 0.
    let second = &map.objects[0].bands[1].cells;
    assert_eq!((second[0].is_mixed(), second[1].is_mixed()), (true, true), "half of the band is node 1's");
    let moved: u64 = map.objects.iter().flat_map(|o| &o.bands).flat_map(|b| &b.cells).map(|c| c.moved).sum();
    assert_eq!(moved, 770);
}

#[test]
fn without_residency_the_homes_of_accesses_are_drawn() {
    let full = Heat { placement: Placement::Parallel, iterations: 3, ..Heat::default() };
    let mut memory = MemoryDataset::default();
    full.fill(&mut memory);
    let complete = Dataset::of_memory(full.meta(), memory);
    let mut without = MemoryDataset::default();
    complete.rows::<Object>().for_each(|r| without.push(&r).unwrap());
    complete.rows::<Interval>().for_each(|r| without.push(&r).unwrap());
    complete
        .rows::<homenode_dataset::tables::Access>()
        .filter(|a| a.interval.0 > 0)
        .for_each(|r| without.push(&r).unwrap());
    let map = map(&Dataset::of_memory(full.meta(), without), 80, 11);
    assert_eq!(map.source, MapSource::Accesses);
    assert_eq!(text(&map.objects[0]), [".000.", ".111.", ".222.", ".333."]);
}

#[test]
fn a_recording_without_anything_has_an_empty_picture() {
    let meta = DatasetMeta::new(RecordingKind::Run, Basis::Presence, Vec::new());
    let map = map(&Dataset::of_memory(meta, MemoryDataset::default()), 80, 20);
    assert_eq!((map.columns.len(), map.objects.len(), map.homes.len()), (1, 0, 0));
}

#[test]
fn one_interval_is_one_column() {
    let map = map(&Heat { iterations: 0, ..Heat::default() }.dataset(), 80, 4);
    // The initialisation and the end, and no iteration.
    assert_eq!(map.columns.len(), 2);
    assert_eq!(text(&map.objects[0]), ["00", "00"]);
}

#[test]
fn what_has_no_room_is_counted() {
    let map = map(&Heat::default().dataset(), 10, 2);
    assert_eq!((map.objects.len(), map.objects_left_out), (1, 2));
    let wide = Heat { nodes: 1000, pages: 4000, iterations: 3, ..Heat::default() };
    let map = self::map(&wide.dataset(), 120, 30);
    assert_eq!(map.homes, [NodeId(0)]);
}

fn object(pages: u64) -> Object {
    Object {
        object: ObjectId(0),
        id: "a".into(),
        process: 0,
        name: "a".into(),
        kind: ObjectKind::Static,
        element_type: None,
        element_bytes: None,
        dimensions: Vec::new(),
        fields: homenode_dataset::fields::Fields::default(),
        file: None,
        line: None,
        function: None,
        stack: Vec::new(),
        bytes: Bytes(pages * 4096),
        address: 0,
        allocations: 1,
        birth_ns: None,
        death_ns: None,
    }
}

proptest! {
    /// Against the sum over every page and interval.
    #[test]
    fn a_cell_has_the_home_of_most_pages(
        pages in 1_u64..40, intervals in 1_u32..30, width in 1_usize..40, height in 1_usize..12,
        runs in prop::collection::vec((0_u64..40, 1_u64..20, 0_u32..30, 0_u32..30, 0_u16..3), 1..20),
    ) {
        let mut memory = MemoryDataset::default();
        memory.push(&object(pages)).unwrap();
        for n in 0..intervals {
            let (begin_ns, end_ns) = (Ns(n.into()), Ns(u64::from(n) + 1));
            let interval = IntervalNo(n);
            memory.push(&Interval { interval, begin_ns, end_ns, iteration: None, timed: true }).unwrap();
        }
        let runs: Vec<_> = runs
            .into_iter()
            .filter(|r| r.0 < pages)
            .map(|(page, n, from, len, home)| {
                let from = from % intervals;
                (page, n.min(pages - page), from, (from + len).min(intervals - 1), home)
            })
            .collect();
        for (page, pages, from, until, home) in &runs {
            memory.push(&Residency {
                object: Some(ObjectId(0)),
                page: *page,
                pages: *pages,
                interval: IntervalNo(*from),
                until: IntervalNo(*until),
                home: NodeId(*home),
            }).unwrap();
        }
        let set = Dataset::of_memory(DatasetMeta::new(RecordingKind::Simulated, Basis::Exact, Vec::new()), memory);
        let map = map(&set, width, height);
        let covered: u32 = map.columns.iter().map(|c| c.until.0 - c.interval.0 + 1).sum();
        prop_assert_eq!(covered, intervals);
        for band in map.objects.iter().flat_map(|o| &o.bands) {
            for (cell, column) in band.cells.iter().zip(&map.columns) {
                let weight = |home: u16| -> u64 {
                    let overlap = |a: u64, b: u64, c: u64, d: u64| b.min(d).saturating_sub(a.max(c));
                    let one = |(page, n, from, until, h): &(u64, u64, u32, u32, u16)| {
                        let pages = overlap(*page, page + n, band.page, band.page + band.pages);
                        let (a, b) = (u64::from(column.interval.0), u64::from(column.until.0) + 1);
                        if *h == home { pages * overlap((*from).into(), u64::from(*until) + 1, a, b) } else { 0 }
                    };
                    runs.iter().map(one).sum()
                };
                let all: u64 = (0..3).map(weight).sum();
                let best = (0..3).max_by_key(|h| (weight(*h), std::cmp::Reverse(*h))).filter(|_| all > 0);
                prop_assert_eq!(cell.home, best.map(NodeId));
                prop_assert_eq!(u64::from(cell.percent), best.map_or(0, |h| weight(h) * 100 / all));
            }
        }
    }
}
