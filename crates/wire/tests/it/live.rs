//! The live stream: records survive any batching, and damage stops the reader where it is.

use homenode_model::{AccessKind, Bytes, CpuId, MoveResult, NodeId, Ns};
use homenode_wire::facts::{LoadedFile, Origin};
use homenode_wire::frame::HEADER;
use homenode_wire::live::*;
use homenode_wire::{Conversation, Error, FrameFault};
use proptest::prelude::*;

fn record() -> impl Strategy<Value = LiveRecord> {
    let n = any::<[u64; 4]>();
    let numbers = any::<[u32; 6]>();
    let nodes = any::<[u16; 2]>();
    let yes = any::<[bool; 3]>();
    (0..19_u32, n, numbers, nodes, yes, ".{0,30}").prop_map(of_drawn)
}

/// Which kind of record, and values for its fields.
type Drawn = (u32, [u64; 4], [u32; 6], [u16; 2], [bool; 3], String);

fn of_drawn((which, n, m, [a, b], yes, text): Drawn) -> LiveRecord {
    let (a, b) = (NodeId(a), NodeId(b));
    let (object, pages) = (ObjectNo(m[0]), Pages { first: m[1], count: m[2] });
    let region = yes[0].then_some(RegionNo(m[3]));
    let interval = IntervalNo(m[4]);
    let iteration = IterationNo(m[5]);
    let (begin, end) = (Ns(n[0]), Ns(n[1]));
    let results = [MoveResult::Moved, MoveResult::Busy, MoveResult::NoMemory, MoveResult::NoPage];
    let dropped = [Dropped::Touches, Dropped::Samples, Dropped::Homes, Dropped::Intervals];
    match which {
        0 => LiveRecord::Start {
            clock: begin,
            pid: m[0],
            nodes: a.0,
            pretended: yes[0],
            page: Bytes(n[2]),
            policy: text,
        },
        1 => LiveRecord::Node { node: a, memory: Bytes(n[0]), cpus: m.to_vec(), distances: n.to_vec() },
        2 => LiveRecord::Module(LoadedFile { base: n[0], low: n[1], high: n[2], path: text }),
        3 => LiveRecord::Interval { index: interval, begin, end, iteration: yes[1].then_some(iteration) },
        4 => LiveRecord::Region {
            number: RegionNo(m[0]),
            key: RegionIdentity { function: n[0], caller: n[1] },
        },
        5 => LiveRecord::RegionTime { interval, region: RegionNo(m[0]), runs: m[1], time: begin },
        6 => LiveRecord::Iteration { number: iteration, begin, end, told: yes[0] },
        7 => LiveRecord::Object {
            number: object,
            origin: Origin::Library(text.as_str().into(), n[0]),
            address: n[1],
            bytes: Bytes(n[2]),
            birth: Ns(n[3]),
            python: yes[0].then_some(text),
        },
        8 => LiveRecord::ObjectGone { number: object, death: end },
        9 | 10 => LiveRecord::Migration {
            time: begin,
            object,
            pages,
            from: a,
            to: b,
            cause: MoveOrigin::ALL[n[1] as usize % MoveOrigin::ALL.len()],
            region,
            cost: yes[1].then_some(end),
            outcome: results[n[2] as usize % results.len()],
        },
        11 => LiveRecord::Sample { time: begin, object, page: m[1], held_back: yes[0], node: a, home: b },
        12 => LiveRecord::Seen {
            interval,
            region,
            object,
            pages,
            node: a,
            home: b,
            kind: yes[1].then_some(AccessKind::Write),
            told: m[5],
        },
        13 => LiveRecord::Home { interval, object, pages, node: yes[1].then_some(a) },
        14 => LiveRecord::Thread {
            thread: ThreadNo(m[0]),
            cpu: CpuId(m[1]),
            node: a,
            from: begin,
            to: end,
            bound: yes[0],
        },
        15 => LiveRecord::FirstTouch {
            object,
            pages,
            thread: yes[0].then_some(ThreadNo(m[3])),
            node: a,
            time: begin,
            pc: n[1],
        },
        16 => LiveRecord::Own { time: begin, own: end, cpu: Ns(n[2]) },
        17 => LiveRecord::Dropped { what: dropped[n[0] as usize % dropped.len()], how_many: n[1] },
        _ => LiveRecord::End { whole: yes[0] },
    }
}

/// The stream of these records in frames of at most `room` bytes, and where each frame ends with
/// how many records so far.
fn stream(records: &[LiveRecord], room: usize) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (mut bytes, mut ends) = (Vec::new(), vec![(0, 0)]);
    let mut buffer = vec![0; room];
    let mut written = 0;
    while written < records.len() {
        let mut writer = Writer::new(&mut buffer).unwrap();
        for record in &records[written..] {
            let before = writer.len();
            match writer.add(record) {
                Ok(()) => written += 1,
                Err(error) => {
                    assert_eq!(error.fault, FrameFault::Room);
                    assert_eq!(writer.len(), before);
                    break;
                }
            }
        }
        assert!(!writer.is_empty(), "a record does not fit into {room} bytes");
        bytes.extend(writer.finish());
        ends.push((bytes.len(), written));
    }
    (bytes, ends)
}

/// What a reader gets, and where it stops.
fn read(bytes: &[u8]) -> (Vec<LiveRecord>, Option<Error>, u64) {
    let mut reader = LiveReader::new(bytes);
    let (mut records, mut error) = (Vec::new(), None);
    for next in reader.by_ref() {
        match next {
            Ok(record) => records.push(record),
            Err(e) => error = Some(e),
        }
    }
    assert!(reader.next().is_none(), "nothing comes behind the end");
    (records, error, reader.whole())
}

/// A frame of the stream around any payload, with a checksum that holds.
fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = b"hnwf".to_vec();
    frame.extend((Conversation::Live as u16).to_le_bytes());
    frame.extend(VERSION.to_le_bytes());
    frame.extend((payload.len() as u32).to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&frame);
    sum.update(payload);
    frame.extend(sum.finalize().to_le_bytes());
    frame.extend(payload);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_survive_any_batching(records in proptest::collection::vec(record(), 0..60), room in 512..2000_usize) {
        let (bytes, _) = stream(&records, room);
        let (back, error, whole) = read(&bytes);
        prop_assert_eq!(error, None);
        prop_assert_eq!(back, records);
        prop_assert_eq!(whole, bytes.len() as u64);
    }

    #[test]
    fn whatever_was_written_whole_is_read(records in proptest::collection::vec(record(), 1..12)) {
        let (bytes, ends) = stream(&records, 600);
        for at in 0..bytes.len() {
            let (end, count) = ends[ends.partition_point(|(end, _)| *end <= at) - 1];
            let (back, error, whole) = read(&bytes[..at]);
            prop_assert_eq!(&back[..], &records[..count]);
            prop_assert_eq!(whole, end as u64);
            match error {
                None => prop_assert_eq!(at, end),
                Some(e) => {
                    prop_assert!(matches!(e.fault, FrameFault::CutOff { .. }), "{e}");
                    let within = if at - end < HEADER { 0 } else { HEADER };
                    prop_assert_eq!((e.kind, e.offset), (Conversation::Live, (end + within) as u64));
                }
            }
        }
    }

    #[test]
    fn a_flipped_bit_ends_the_stream_at_its_frame(records in proptest::collection::vec(record(), 1..12)) {
        let (bytes, ends) = stream(&records, 600);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            let (end, count) = ends[ends.partition_point(|(end, _)| *end <= at) - 1];
            let (back, error, whole) = read(&bad);
            prop_assert_eq!(&back[..], &records[..count], "flipped at {}", at);
            prop_assert_eq!(whole, end as u64);
            let error = error.unwrap();
            prop_assert!((end as u64..=(end + HEADER) as u64).contains(&error.offset), "{error}");
        }
    }

    #[test]
    fn pieces_of_another_stream_are_survived(
        records in proptest::collection::vec(record(), 1..6), others in proptest::collection::vec(record(), 1..6),
        cuts in proptest::collection::vec((any::<usize>(), 0..40_usize, any::<usize>(), 0..40_usize), 1..4),
    ) {
        let payload = |records: &[LiveRecord]| stream(records, PAYLOAD).0[HEADER..].to_vec();
        let (mut spliced, other) = (payload(&records), payload(&others));
        for (at, gone, from, taken) in cuts {
            let (at, from) = (at % (spliced.len() + 1), from % (other.len() + 1));
            let piece = &other[from..(from + taken).min(other.len())];
            spliced.splice(at..(at + gone).min(at.max(spliced.len())), piece.iter().copied());
        }
        // A whole frame stands behind it: what is damaged ends the stream, and is told with its
        // place.
        let good = framed(&payload(&records));
        let bytes = [framed(&spliced), good].concat();
        let (back, error, whole) = read(&bytes);
        match error {
            None => {
                prop_assert_eq!(whole, bytes.len() as u64);
                prop_assert!(back.ends_with(&records));
            }
            Some(error) => {
                prop_assert!(matches!(error.fault, FrameFault::Payload(_)), "{error}");
                prop_assert!((HEADER as u64..=whole).contains(&error.offset), "{error} {whole}");
            }
        }
    }

    #[test]
    fn any_payload_behind_a_true_checksum_is_survived(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let frame = framed(&payload);
        let (_, error, whole) = read(&frame);
        prop_assert_eq!(whole, frame.len() as u64);
        if let Some(error) = error {
            prop_assert!((HEADER as u64..=whole).contains(&error.offset), "{error}");
            prop_assert!(matches!(error.fault, FrameFault::Payload(_)), "{error}");
        }
    }
}

#[test]
fn another_version_and_a_hostile_length_are_refused() {
    let (good, _) = stream(&[LiveRecord::End { whole: true }], 64);
    let error = |at: usize, to: [u8; 2]| {
        let mut bytes = good.clone();
        bytes[at..at + 2].copy_from_slice(&to);
        read(&bytes).1.unwrap().fault
    };
    assert_eq!(error(6, [7, 0]), FrameFault::Version { found: 7, known: VERSION });
    assert_eq!(error(4, [1, 0]), FrameFault::Kind(1));
    let length = u64::from(u32::from_le_bytes([good[8], good[9], 0xff, 0xff]));
    assert_eq!(error(10, [0xff, 0xff]), FrameFault::TooLong { length, most: PAYLOAD as u64 });
}

#[test]
fn a_full_buffer_leaves_the_frame_as_it_was() {
    let own = LiveRecord::Own { time: Ns(1), own: Ns(2), cpu: Ns(3) };
    let mut buffer = [0; HEADER + 9];
    let mut writer = Writer::new(&mut buffer).unwrap();
    writer.add(&own).unwrap();
    writer.add(&own).unwrap();
    assert_eq!(writer.add(&own).unwrap_err().fault, FrameFault::Room);
    let frame = writer.finish().to_vec();
    assert_eq!(read(&frame).0, [own.clone(), own]);
    assert!(Writer::new(&mut [0; HEADER]).is_err());
    assert!(Writer::new(&mut [0; 64]).unwrap().finish().is_empty(), "an empty frame is nothing");
}

#[test]
fn the_largest_record_fits_into_a_frame() {
    use homenode_wire::bounded::{CPUS, NODES, TEXT};
    let node = LiveRecord::Node {
        node: NodeId(u16::MAX),
        memory: Bytes::MAX,
        cpus: vec![u32::MAX; CPUS],
        distances: vec![u64::MAX; NODES],
    };
    let text = "x".repeat(TEXT);
    let object = LiveRecord::Object {
        number: ObjectNo(u32::MAX),
        origin: Origin::Library(text.as_str().into(), u64::MAX),
        address: u64::MAX,
        bytes: Bytes::MAX,
        birth: Ns::MAX,
        python: Some(text),
    };
    for record in [node, object] {
        let (bytes, _) = stream(std::slice::from_ref(&record), BUFFER);
        assert_eq!(read(&bytes).0, [record]);
    }
    let too_long =
        LiveRecord::Node { node: NodeId(0), memory: Bytes(0), cpus: vec![0; CPUS + 1], distances: vec![] };
    let mut buffer = vec![0; BUFFER];
    let error = Writer::new(&mut buffer).unwrap().add(&too_long).unwrap_err();
    assert!(matches!(error.fault, FrameFault::Payload(_)), "{error}");
}
