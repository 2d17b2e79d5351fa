//! Streams that somebody made up: no panic, no waiting, bounded memory, and words for what is
//! wrong.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Instant;

use homenode_dataset::Dataset;
use homenode_dataset::tables::{ALL, Migration, Object, Region, Residency};
use homenode_model::{Bytes, MoveResult, NodeId, Ns};
use homenode_wire::bounded::TEXT;
use homenode_wire::facts::{LoadedFile, Origin};
use homenode_wire::frame::HEADER;
use homenode_wire::live::{
    IntervalNo, IterationNo, LiveRecord, MoveOrigin, ObjectNo, Pages, RegionIdentity, RegionNo, VERSION,
};

use crate::support::{Folder, frame, frames, home, migration, object, observe, pages, program, start};

fn missing(set: &Dataset) -> Vec<String> {
    set.missing().iter().map(ToString::to_string).collect()
}

/// Reads every row of every table.
fn read_all(set: &Dataset) -> u64 {
    ALL.iter().flat_map(|t| set.checked_chunks(t)).map(|c| c.rows() as u64).sum()
}

#[test]
fn fifos_symlinks_and_folders_are_not_opened() {
    let folder = Folder::new("fifo");
    folder.stream(7, &frames(&program(7, 0), 5));
    let fifo = folder.path().join("live.1");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    symlink(folder.path().join("live.7"), folder.path().join("live.2")).unwrap();
    symlink("/dev/zero", folder.path().join("live.3")).unwrap();
    fs::create_dir(folder.path().join("live.4")).unwrap();
    fs::write(folder.path().join("live.\u{1b}[31m"), "x").unwrap();
    let (set, _) = observe(folder.path());
    let missing = missing(&set);
    for (pid, why) in [(1, "regular"), (2, "symbolic link"), (3, "symbolic link"), (4, "regular")] {
        let told = |m: &String| m.contains(&format!("process {pid} cannot be read")) && m.contains(why);
        assert!(missing.iter().any(told), "{pid}: {missing:?}");
    }
    assert_eq!(set.rows::<Object>().count(), 1, "the sound one is read");
}

#[test]
fn a_folder_of_streams_that_is_a_link_is_refused() {
    let folder = Folder::new("link");
    folder.stream(7, &frames(&program(7, 0), 5));
    let link = folder.path().join("streams");
    symlink(folder.path(), &link).unwrap();
    let (set, _) = observe(&link);
    assert_eq!(set.rows::<Object>().count(), 0);
    assert!(missing(&set).iter().any(|m| m.contains("symbolic link")), "{:?}", missing(&set));
    assert!(!missing(&observe(&folder.path().join("none")).0).is_empty());
}

#[test]
fn other_versions_and_kinds_are_refused_in_words() {
    let sound = frames(&program(7, 0), 5);
    for (at, value, what) in
        [(6, VERSION as u8 + 1, "version"), (4, 0x7f, "live"), (0, b'X', "something else")]
    {
        let folder = Folder::new(&format!("version-{at}"));
        let mut bytes = sound.clone();
        bytes[at] = value;
        folder.stream(7, &bytes);
        let (set, _) = observe(folder.path());
        let missing = missing(&set);
        assert!(missing[0].contains("process 7 cannot be read"), "{missing:?}");
        assert!(missing[0].to_lowercase().contains(what), "{missing:?}");
    }
    // Behind a sound beginning the offset is said.
    let folder = Folder::new("version-later");
    let second = u32::from_le_bytes(sound[8..12].try_into().unwrap()) as usize + HEADER;
    let mut bytes = sound;
    bytes[second + 6] = 99;
    folder.stream(7, &bytes);
    let missing = missing(&observe(folder.path()).0);
    assert!(missing.iter().any(|m| m.contains(&second.to_string()) && m.contains("99")), "{missing:?}");
}

#[test]
fn pages_of_an_impossible_size_are_refused() {
    for bytes in [0, 1, 4095, 1 << 40] {
        let folder = Folder::new(&format!("page-{bytes}"));
        let policy = String::new();
        let start = LiveRecord::Start {
            clock: Ns(0),
            pid: 7,
            nodes: 1,
            pretended: false,
            page: Bytes(bytes),
            policy,
        };
        folder.stream(7, &frame(&[start, LiveRecord::End { whole: true }]));
        let missing = missing(&observe(folder.path()).0);
        assert!(missing[0].contains(&format!("pages of {bytes} bytes")), "{missing:?}");
    }
}

#[test]
fn names_with_escapes_newlines_and_megabytes_stay_bounded_text() {
    let evil = "\u{1b}]0;x\u{7}\u{202e}\n\r\tname".to_owned();
    let long = "x".repeat(10 << 20);
    let mut records = program(7, 0);
    for (i, name) in [&evil, &long].into_iter().enumerate() {
        if let LiveRecord::Start { policy, .. } = &mut records[0] {
            policy.clone_from(name);
        }
        let path = format!("/{name}");
        records.insert(
            5,
            LiveRecord::Module(LoadedFile { base: 0, low: 0, high: u64::MAX, path: path.clone() }),
        );
        records.insert(6, LiveRecord::Source { name: name.clone(), says: Default::default() });
        records.insert(7, LiveRecord::Note { text: name.clone() });
        let (number, bytes, python) = (ObjectNo(50 + i as u32), Bytes(4096), Some(name.clone()));
        let origin = Origin::Allocated([0x1000, 0x2000, 0, 0, 0, 0]);
        records.insert(8, LiveRecord::Object { number, origin, address: 0, bytes, birth: Ns(0), python });
        let origin = Origin::Library(path.into(), 64);
        let (number, python) = (ObjectNo(60 + i as u32), None);
        records.insert(9, LiveRecord::Object { number, origin, address: 0, bytes, birth: Ns(0), python });
    }
    let folder = Folder::new("names");
    folder.stream(7, &frames(&records, 4));
    let (set, summary) = observe(folder.path());
    assert_eq!(set.rows::<Object>().count(), 5);
    let meta = set.meta();
    let said = [&meta.source, meta.policy.as_ref().unwrap()];
    for text in said.into_iter().chain(&meta.notes).chain(&summary.notes).chain(&missing(&set)) {
        assert!(text.len() <= TEXT + 3 && !text.contains(['\u{1b}', '\n', '\u{202e}']), "{text:?}");
    }
    for o in set.rows::<Object>() {
        assert!(o.name.len() <= 2 * TEXT && o.id.len() <= 4 * TEXT, "{} {}", o.name.len(), o.id.len());
    }
}

/// Numbers as large as they can be, in every field.
#[test]
fn the_largest_numbers_are_survived() {
    let (max, all) = (Ns(u64::MAX), Pages { first: u32::MAX, count: u32::MAX });
    let (object, region, interval) = (ObjectNo(u32::MAX), RegionNo(u32::MAX), IntervalNo(u32::MAX));
    let node = NodeId(u16::MAX);
    let origin = Origin::Static(u64::MAX);
    let hostile = [
        start(7, u64::MAX),
        LiveRecord::Region { number: region, key: RegionIdentity { function: u64::MAX, caller: 0 } },
        LiveRecord::Object {
            number: object,
            origin,
            address: u64::MAX,
            bytes: Bytes(u64::MAX),
            birth: max,
            python: None,
        },
        LiveRecord::Home { interval, object, pages: all, node: Some(node) },
        LiveRecord::Home {
            interval,
            object,
            pages: Pages { first: 0, count: u32::MAX },
            node: Some(NodeId(0)),
        },
        LiveRecord::Migration {
            time: max,
            object,
            pages: all,
            from: node,
            to: NodeId(64),
            cause: MoveOrigin::Kernel,
            region: Some(region),
            cost: Some(max),
            outcome: MoveResult::Moved,
        },
        LiveRecord::Interval {
            index: interval,
            begin: max,
            end: max,
            iteration: Some(IterationNo(u32::MAX)),
        },
        LiveRecord::Interval { index: interval, begin: max, end: Ns(0), iteration: None },
        LiveRecord::RegionTime { interval, region, runs: u32::MAX, time: max },
        LiveRecord::RegionTime { interval, region, runs: u32::MAX, time: max },
        LiveRecord::Own { time: max, own: max, cpu: max },
        LiveRecord::ObjectGone { number: object, death: max },
        LiveRecord::ObjectGone { number: object, death: max },
        LiveRecord::Sample {
            time: max,
            object: ObjectNo(3),
            page: u32::MAX,
            held_back: true,
            node,
            home: node,
        },
        LiveRecord::End { whole: true },
    ];
    let folder = Folder::new("largest");
    folder.stream(7, &frames(&hostile, 4));
    folder.stream(8, &frames(&hostile, 100));
    folder.stream(9, &frames(&program(9, 0), 100));
    let (set, _) = observe(folder.path());
    assert!(read_all(&set) > 0);
    assert_eq!(set.rows::<Object>().count(), 3);
    assert_eq!(set.rows::<Region>().filter(|r| r.runs > 0).count(), 3);
}

#[test]
fn a_few_bytes_cannot_ask_for_memory_or_time() {
    // Each record speaks of all pages that there can be: 16 TiB.
    let mut records = vec![start(7, 0), object(0, u64::MAX, 0x4000)];
    for i in 0..20_000_u32 {
        records.push(home(0, pages(i * 3, u32::MAX), (i % 5) as u16));
        records.push(migration(1, pages(0, u32::MAX - i), 0, (i % 3) as u16, MoveOrigin::Policy));
    }
    records.push(LiveRecord::End { whole: true });
    let folder = Folder::new("all-pages");
    folder.stream(7, &frames(&records, 2000));
    let begin = Instant::now();
    let (set, _) = observe(folder.path());
    let rows = set.rows::<Residency>().count() + set.rows::<Migration>().count();
    assert!(rows < 1_000_000, "{rows} rows of {} records", records.len());
    println!("{rows} rows in {:?}", begin.elapsed());
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

/// The frame with its checksum made right again.
fn sealed(payload: &[u8]) -> Vec<u8> {
    let mut frame = frame(&[LiveRecord::End { whole: true }])[..8].to_vec();
    frame.extend((payload.len() as u32).to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&frame);
    sum.update(payload);
    frame.extend(sum.finalize().to_le_bytes());
    frame.extend(payload);
    frame
}

fn smoke(rounds: u64) {
    let sound = program(7, 0);
    let folder = Folder::new("smoke");
    let (mut rng, mut with_rows, mut damaged) = (Rng(11), 0, 0);
    for round in 0..rounds {
        let mut bytes = Vec::new();
        for records in sound.chunks(1 + rng.below(8)) {
            let mut payload = frame(records)[HEADER..].to_vec();
            if rng.below(4) == 0 {
                for _ in 0..=rng.below(3) {
                    let at = rng.below(payload.len());
                    match rng.below(5) {
                        0 => payload[at] ^= 1 << rng.below(8),
                        1 => payload[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)],
                        2 => payload.truncate(at.max(1)),
                        3 => payload.insert(at, 0xff),
                        _ => {
                            let end = (at + rng.below(9)).min(payload.len());
                            let again = payload[at..end].to_vec();
                            payload.splice(at..at, again);
                        }
                    }
                }
            }
            bytes.extend(sealed(&payload));
        }
        if round % 3 == 0 {
            // Damage that no checksum hides.
            let at = rng.below(bytes.len());
            match rng.below(3) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => bytes.truncate(at),
                _ => drop(bytes.drain(at..(at + rng.below(40)).min(bytes.len()))),
            }
        }
        folder.stream(7, &bytes);
        let (set, _) = observe(folder.path());
        with_rows += u64::from(read_all(&set) > 0);
        damaged += u64::from(!set.missing().is_empty());
        assert!(missing(&set).iter().all(|m| !m.contains('\u{1b}') && m.len() <= 5000));
    }
    assert!(with_rows > rounds / 4 && damaged > rounds / 4, "{with_rows} with rows, {damaged} damaged");
}

#[test]
fn damaged_streams_end_in_words() {
    smoke(1000);
}

#[test]
#[ignore = "minutes"]
fn damaged_streams_for_longer() {
    smoke(1_000_000);
}
