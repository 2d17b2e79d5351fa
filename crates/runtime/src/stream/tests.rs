//! What a reader of the stream gets: in which order, how soon, how much, and what is said of the
//! rest.

use std::collections::BTreeSet;

use homenode_model::{AccessKind, MoveResult, NodeId, Ns};
use homenode_wire::facts::{LoadedFile, Origin};
use homenode_wire::frame::HEADER;
use homenode_wire::live::{Dropped, LiveReader, LiveRecord, MoveOrigin, Pages};

use super::budget::{PER_PAGE, PER_SECOND};
use super::frames::{Frames, LONGEST_WAIT, PENDING};
use super::{MovedPage, Stream};
use crate::watch::numbers::PAGE;
use crate::watch::objects::WatchedObjects;

const START: Ns = Ns(5_000_000_000);
const MS: Ns = Ns(1_000_000);
const AT: usize = 0x7000_0000;

/// Milliseconds after the recording began.
fn at(ms: u64) -> Ns {
    START + MS.times(ms)
}

/// Objects with these numbers of whole pages, each behind a gap.
fn objects(pages: &[usize]) -> WatchedObjects {
    let mut all = WatchedObjects::default();
    for (i, pages) in pages.iter().enumerate() {
        let object = all.born(address(i), pages * PAGE, Origin::Static(i as u64));
        assert_eq!(object.pages.count, *pages as u64);
    }
    all
}

fn address(object: usize) -> usize {
    AT + object * (1 << 32)
}

const fn to_node(node: u16, from: u16) -> MovedPage {
    let (from, to) = (NodeId(from), NodeId(node));
    MovedPage { from, to, cause: MoveOrigin::NextTouch, cost: None, outcome: MoveResult::Moved }
}

fn records(bytes: &[u8]) -> Vec<LiveRecord> {
    LiveReader::new(bytes).map(|r| r.expect("what was written is whole")).collect()
}

fn count(records: &[LiveRecord], is_one: impl Fn(&LiveRecord) -> bool) -> usize {
    records.iter().filter(|r| is_one(r)).count()
}

/// What was dropped of a kind, as the stream says it.
fn dropped(records: &[LiveRecord], of: Dropped) -> u64 {
    let n = |r: &LiveRecord| match r {
        LiveRecord::Dropped { what, how_many } if *what == of => Some(*how_many),
        _ => None,
    };
    records.iter().filter_map(n).sum()
}

/// A program with three regions and rounds, in a stream that is not ended yet.
fn program(rounds: u64) -> Stream {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[64, 64]));
    stream.know_modules(&[LoadedFile { base: 0x1000, low: 0, high: 0x100, path: "/app".into() }]);
    for round in 0..rounds {
        for region in 0..3 {
            let now = at(round * 30 + u64::from(region) * 10);
            stream.region_begins(region, 0x40_0000 + u64::from(region), 0x41_0000);
            let object = all.at(address(region as usize % 2)).unwrap();
            let page = (round + u64::from(region)) % 64;
            stream.moved(object, page, to_node(round as u16 % 2, 1 - round as u16 % 2), now);
            stream.saw(object, page, (NodeId(1), NodeId(0)), Some(AccessKind::Read));
            stream.region_ends(MS.times(9));
        }
        let now = at(round * 30 + 30);
        stream.round(round + 1, true, now);
        if stream.is_interval_due(now, true) {
            stream.end_interval(Ns(10), Ns(1000), now);
        }
        if stream.is_flush_due(now) {
            stream.flush(now);
        }
    }
    stream
}

/// Every number is defined before it is used, and intervals follow each other.
fn check_order(records: &[LiveRecord]) {
    let (mut known_objects, mut known_regions) = (BTreeSet::new(), BTreeSet::new());
    let (mut index, mut begin) = (0, Ns::ZERO);
    for record in records {
        let (mut uses_object, mut uses_region, mut interval_of) = (None, None, None);
        match record {
            LiveRecord::Object { number, .. } => assert!(known_objects.insert(*number), "{record:?} twice"),
            LiveRecord::ObjectGone { number, .. } => assert!(known_objects.remove(number), "{record:?}"),
            LiveRecord::Region { number, .. } => assert!(known_regions.insert(*number), "{record:?} twice"),
            LiveRecord::Migration { object, region, .. } => {
                (uses_object, uses_region) = (Some(object), *region)
            }
            LiveRecord::Sample { object, .. } => uses_object = Some(object),
            LiveRecord::Seen { object, region, interval, .. } => {
                (uses_object, uses_region, interval_of) = (Some(object), *region, Some(interval));
            }
            LiveRecord::Home { object, interval, .. } => {
                (uses_object, interval_of) = (Some(object), Some(interval))
            }
            LiveRecord::RegionTime { region, interval, .. } => {
                (uses_region, interval_of) = (Some(*region), Some(interval));
            }
            LiveRecord::Interval { index: i, begin: b, end, .. } => {
                assert_eq!((i.0, *b), (index, begin), "no gap between intervals");
                assert!(end > b);
                (index, begin) = (index + 1, *end);
            }
            _ => {}
        }
        assert!(uses_object.is_none_or(|o| known_objects.contains(o)), "{record:?}");
        assert!(uses_region.is_none_or(|r| known_regions.contains(&r)), "{record:?}");
        assert!(interval_of.is_none_or(|i| i.0 == index), "of the interval that goes on: {record:?}");
    }
}

#[test]
fn numbers_are_defined_before_they_are_used_and_the_end_comes_last() {
    let mut stream = program(40);
    stream.end(true, at(1210));
    let all = records(stream.bytes());
    check_order(&all);
    assert_eq!(all.last(), Some(&LiveRecord::End { whole: true }));
    assert_eq!(count(&all, |r| matches!(r, LiveRecord::Region { .. })), 3);
    assert_eq!(count(&all, |r| matches!(r, LiveRecord::Object { .. })), 2);
    assert_eq!(count(&all, |r| matches!(r, LiveRecord::Migration { .. })), 40 * 3, "each page by itself");
    let iterations: Vec<u32> = all
        .iter()
        .filter_map(|r| if let LiveRecord::Iteration { number, .. } = r { Some(number.0) } else { None })
        .collect();
    assert_eq!(iterations, (1..40).collect::<Vec<_>>(), "the first round's beginning is not known");
    let runs: u32 = all
        .iter()
        .filter_map(|r| if let LiveRecord::RegionTime { runs, .. } = r { Some(*runs) } else { None })
        .sum();
    assert_eq!(runs, 40 * 3);
}

/// Otherwise a reader would take the home for a later one: the page would be where it was.
#[test]
fn a_home_is_told_before_the_page_moves_and_a_move_before_its_new_home() {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[8]));
    let object = all.at(AT).unwrap();
    (0..4).for_each(|page| stream.home(object, page, NodeId(0)));
    stream.moved(object, 2, to_node(1, 0), at(1));
    stream.home(object, 2, NodeId(1));
    stream.end(true, at(2));
    let what = |r: &LiveRecord| match r {
        LiveRecord::Home { pages, node, .. } => Some((pages.first, *node)),
        LiveRecord::Migration { pages, .. } => Some((pages.first, None)),
        _ => None,
    };
    let told: Vec<_> = records(stream.bytes()).iter().filter_map(what).collect();
    assert_eq!(told, [(0, Some(NodeId(0))), (2, None), (2, Some(NodeId(1)))]);
}

#[test]
fn times_count_from_the_start_of_the_recording() {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[8]));
    let object = all.at(AT).unwrap();
    object.born = START + Ns(7);
    stream.moved(object, 0, to_node(1, 0), START + Ns(12));
    stream.gone(object, START + Ns(30));
    // An object that is older than the recording was born at its start.
    let mut older = objects(&[8]);
    stream.moved(older.at(AT).unwrap(), 0, to_node(1, 0), Ns(1));
    stream.flush(at(1));
    let all = records(stream.bytes());
    assert!(all.iter().any(|r| matches!(r, LiveRecord::Object { birth: Ns(7), .. })), "{all:?}");
    assert!(all.iter().any(|r| matches!(r, LiveRecord::Migration { time: Ns(12), .. })), "{all:?}");
    assert!(all.iter().any(|r| matches!(r, LiveRecord::ObjectGone { death: Ns(30), .. })), "{all:?}");
    assert!(all.iter().any(|r| matches!(r, LiveRecord::Migration { time: Ns(0), .. })), "{all:?}");
}

#[test]
fn an_object_is_written_once_and_only_if_something_is_told_of_it() {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[8, 8]));
    for page in [0, 4, 2] {
        stream.sample(all.at(address(1)).unwrap(), page, (NodeId(0), NodeId(1)), page == 4, at(1));
    }
    stream.gone(all.at(address(0)).unwrap(), at(2));
    stream.flush(at(3));
    let found = records(stream.bytes());
    assert_eq!(count(&found, |r| matches!(r, LiveRecord::Object { .. })), 1);
    assert_eq!(count(&found, |r| matches!(r, LiveRecord::ObjectGone { .. })), 0, "nobody knows of it");
    let held: Vec<bool> = found
        .iter()
        .filter_map(|r| if let LiveRecord::Sample { held_back, .. } = r { Some(*held_back) } else { None })
        .collect();
    assert_eq!(held, [false, true, false]);
}

#[test]
fn neighbours_with_one_fate_are_one_record() {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[100]));
    let object = all.at(AT).unwrap();
    (0..50).for_each(|page| stream.moved(object, page, to_node(1, 0), at(1)));
    (50..60).for_each(|page| stream.moved(object, page, to_node(0, 1), at(1)));
    stream.moved(object, 70, to_node(0, 1), at(1));
    (0..100).for_each(|page| stream.home(object, page, NodeId((page / 60) as u16)));
    stream.flush(at(2));
    let found = records(stream.bytes());
    let moved: Vec<Pages> = found
        .iter()
        .filter_map(|r| if let LiveRecord::Migration { pages, .. } = r { Some(*pages) } else { None })
        .collect();
    let pages = |first, count| Pages { first, count };
    assert_eq!(moved, [pages(0, 50), pages(50, 10), pages(70, 1)]);
    let homes: Vec<Pages> = found
        .iter()
        .filter_map(|r| if let LiveRecord::Home { pages, .. } = r { Some(*pages) } else { None })
        .collect();
    assert_eq!(homes, [pages(0, 60), pages(60, 40)]);
}

#[test]
fn pages_count_from_the_one_with_the_first_byte() {
    let mut all = WatchedObjects::default();
    all.born(AT + 100, 5 * PAGE, Origin::Static(0));
    let mut stream = Stream::kept(START);
    let object = all.at(AT + 100).unwrap();
    stream.moved(object, 0, to_node(1, 0), at(1));
    stream.flush(at(2));
    let found = records(stream.bytes());
    let first =
        |r: &LiveRecord| matches!(r, LiveRecord::Migration { pages: Pages { first: 1, count: 1 }, .. });
    assert!(found.iter().any(first), "whole page 0 is the second that the object lies in: {found:?}");
}

#[test]
fn records_wait_for_a_flush_but_never_for_long() {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[64]));
    let object = all.at(AT).unwrap();
    stream.moved(object, 1, to_node(1, 0), at(1));
    assert!(stream.bytes().is_empty(), "a write for each record would be dear");
    assert!(!stream.is_flush_due(at(100)));
    assert!(stream.is_flush_due(START + LONGEST_WAIT));
    stream.flush(START + LONGEST_WAIT);
    assert_eq!(count(&records(stream.bytes()), |r| matches!(r, LiveRecord::Migration { .. })), 1);
    assert!(!stream.is_flush_due(START + LONGEST_WAIT + MS), "it was just flushed");
    // Many records wait no longer either, and never more than fit.
    for i in 0..PENDING as u64 * 3 {
        stream.put(LiveRecord::Own { time: Ns(i), own: Ns(1), cpu: Ns(2) });
    }
    assert!(stream.is_flush_due(START + LONGEST_WAIT + MS));
    let written = count(&records(stream.bytes()), |r| matches!(r, LiveRecord::Own { .. }));
    assert!((PENDING..PENDING * 3).contains(&written), "{written} before the flush");
    stream.flush(at(300));
    assert_eq!(count(&records(stream.bytes()), |r| matches!(r, LiveRecord::Own { .. })), PENDING * 3);
}

#[test]
fn a_cut_off_stream_gives_the_frames_that_are_whole() {
    let mut stream = program(40);
    stream.end(true, at(1210));
    let bytes = stream.bytes();
    let all = records(bytes);
    let mut frames = vec![0];
    while *frames.last().unwrap() < bytes.len() {
        let from = frames.last().unwrap();
        let length = u32::from_le_bytes(bytes[from + 8..from + 12].try_into().unwrap()) as usize;
        frames.push(from + HEADER + length);
    }
    assert!(frames.len() > 4, "it was flushed several times: {frames:?}");
    for cut in 0..bytes.len() {
        let mut reader = LiveReader::new(&bytes[..cut]);
        let found: Vec<_> = reader.by_ref().collect();
        let whole = found.iter().filter(|r| r.is_ok()).count();
        let is_border = frames.contains(&cut);
        assert_eq!(found.len() - whole, usize::from(!is_border), "an error says it, cut off at {cut}");
        assert_eq!(reader.whole(), *frames.iter().rfind(|f| **f <= cut).unwrap() as u64);
        let found: Vec<LiveRecord> = found.into_iter().flatten().collect();
        assert_eq!(found, all[..found.len()], "cut off at {cut}");
        assert!(!matches!(found.last(), Some(LiveRecord::End { .. })), "nothing says that it is whole");
        check_order(&found);
    }
}

#[test]
fn a_recording_given_up_is_not_whole() {
    let mut stream = program(3);
    stream.end(false, at(100));
    assert_eq!(records(stream.bytes()).last(), Some(&LiveRecord::End { whole: false }));
}

/// `moves` page moves over a second, of which no two are joined.
fn storm(moves: u64) -> Stream {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[1000]));
    let object = all.at(AT).unwrap();
    for i in 0..moves {
        let now = START + Ns(i * 1_000_000_000 / moves);
        stream.moved(object, i * 7 % 1000, to_node(1, 0), now);
        if stream.is_flush_due(now) {
            stream.flush(now);
        }
    }
    stream
}

#[test]
fn the_file_stays_within_its_room_and_says_what_found_none() {
    let mut stream = storm(400_000);
    let fixed = 64 << 10;
    let most = fixed + 1000 * PER_PAGE + PER_SECOND;
    stream.end(true, at(1000));
    let bytes = stream.bytes().len() as u64;
    assert!(bytes <= most + 4096, "{bytes} bytes of {most}");
    assert!(bytes > most / 2, "{bytes}: it keeps as much as it may");
    let all = records(stream.bytes());
    let kept = count(&all, |r| matches!(r, LiveRecord::Migration { .. })) as u64;
    assert!(kept > 10_000);
    assert_eq!(kept + dropped(&all, Dropped::Migrations), 400_000, "each is kept or counted");
    assert_eq!(all.last(), Some(&LiveRecord::End { whole: true }), "the end always finds room");
}

#[test]
fn pages_that_take_part_give_room_and_so_does_time() {
    let bytes = |pages: usize, seconds: u64| {
        let (mut stream, mut all) = (Stream::kept(START), objects(&[pages]));
        let object = all.at(AT).unwrap();
        for i in 0..200_000 {
            stream.moved(object, i * 7 % pages as u64, to_node(1, 0), START);
        }
        stream.flush(at(seconds * 1000));
        for i in 0..200_000 {
            stream.moved(object, i * 7 % pages as u64, to_node(1, 0), at(seconds * 1000));
        }
        stream.flush(at(seconds * 1000));
        stream.bytes().len() as u64
    };
    let small = bytes(1000, 0);
    assert!((60 << 10..100 << 10).contains(&small), "{small}");
    let by_pages = bytes(11_000, 0) - small;
    assert!(by_pages.abs_diff(10_000 * PER_PAGE) < 4096, "{by_pages}");
    let by_time = bytes(1000, 1) - small;
    assert!(by_time.abs_diff(PER_SECOND) < 4096, "{by_time}");
}

/// Rounds of 2 ms with a thousand pages seen in each: as much as a page's room and more.
fn busy(seconds: u64, seen: u64) -> Vec<LiveRecord> {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[4096]));
    let object = all.at(AT).unwrap();
    for round in 0..seconds * 500 {
        let now = at(round * 2);
        (0..seen).for_each(|i| stream.saw(object, (i * 3 + round) % 4096, (NodeId(1), NodeId(0)), None));
        stream.round(round + 1, true, now);
        if stream.is_interval_due(now, true) {
            stream.end_interval(Ns(1), Ns(2), now);
        }
        if stream.is_flush_due(now) {
            stream.flush(now);
        }
    }
    stream.end_interval(Ns(1), Ns(2), at(seconds * 1000));
    stream.end(true, at(seconds * 1000));
    records(stream.bytes())
}

#[test]
fn intervals_become_longer_before_anything_is_lost() {
    let calm = busy(4, 2);
    let intervals = |all: &[LiveRecord]| count(all, |r| matches!(r, LiveRecord::Interval { .. }));
    assert!(intervals(&calm) > 1000, "a round is an interval where there is room: {}", intervals(&calm));
    let all = busy(4, 1000);
    assert!(intervals(&all) < intervals(&calm) / 4, "{}", intervals(&all));
    assert_eq!(dropped(&all, Dropped::Seen), 0, "coarser, and all of it there");
    let told: u64 = all
        .iter()
        .filter_map(|r| if let LiveRecord::Seen { told, .. } = r { Some(u64::from(*told)) } else { None })
        .sum();
    assert_eq!(told, 4 * 500 * 1000, "each sighting is in a row");
    check_order(&all);
}

#[test]
fn intervals_become_shorter_again() {
    let (mut stream, mut all) = (Stream::kept(START), objects(&[64]));
    let object = all.at(AT).unwrap();
    (0..40_000).for_each(|i| stream.moved(object, i * 7 % 64, to_node(1, 0), at(1)));
    stream.flush(at(1));
    let doublings = stream.frames.room.doublings();
    assert!(doublings > 0);
    for second in 1..20 {
        stream.flush(at(second * 1000));
    }
    assert_eq!(stream.frames.room.doublings(), 0);
}

#[test]
fn rounds_shorter_than_an_interval_are_joined_and_counted() {
    let mut stream = Stream::kept(START);
    for round in 0..1000 {
        stream.round(round + 1, false, START + Ns(round * 10_000));
    }
    stream.end(true, at(20));
    let all = records(stream.bytes());
    assert_eq!(count(&all, |r| matches!(r, LiveRecord::Iteration { .. })), 0);
    assert_eq!(dropped(&all, Dropped::Intervals), 999);
}

#[test]
fn without_rounds_an_interval_ends_with_a_region() {
    let mut stream = Stream::kept(START);
    assert!(!stream.is_interval_due(at(10), false));
    assert!(stream.is_interval_due(at(60), false));
    // While rounds end, regions do not end intervals.
    stream.round(1, true, at(58));
    assert!(!stream.is_interval_due(at(60), false) && stream.is_interval_due(at(60), true));
    // Rounds that stay away do not keep an interval for ever.
    assert!(stream.is_interval_due(at(300), false));
}

#[test]
fn a_file_that_cannot_grow_ends_the_recording_and_nothing_else() {
    let folder = std::env::temp_dir().join(format!("homenode-stream-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut stream = Stream::create(&folder, START).unwrap();
    stream.put(LiveRecord::End { whole: false });
    stream.flush(at(1));
    let file = folder.join(LiveRecord::file_name(std::process::id()));
    assert_eq!(records(&std::fs::read(&file).unwrap()), [LiveRecord::End { whole: false }]);
    let again = Stream::create(&folder, START).unwrap_err();
    assert!(again.contains("cannot make") && again.contains("exists"), "never over another's: {again}");
    let gone = Stream::create(&folder.join("none"), START).unwrap_err();
    assert!(gone.contains("No such file"), "{gone}");
    std::fs::remove_dir_all(&folder).unwrap();

    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut stream = Stream::to(Frames::to_file(full, START), START);
    stream.put(LiveRecord::End { whole: true });
    stream.flush(at(1));
    assert!(stream.frames.is_full(), "nothing more is tried");
    stream.put(LiveRecord::End { whole: true });
    stream.flush(at(2));
}

#[test]
fn memory_is_bounded_whatever_is_told() {
    let mut stream = storm(100_000);
    let bytes = stream.state_bytes();
    assert!(bytes < 2 << 20, "{bytes}");
    stream.flush(at(1000));
    assert!(stream.state_bytes() <= bytes);
}
