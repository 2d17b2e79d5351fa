//! Hostile tables: what `fuzz/` does for hours, here for seconds and always with the same
//! mutations. And what a reader of a damaged table still finds: every chunk that is whole.

use std::io::Write as _;

use homenode_dataset::file::Appender;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::{ALL, TableInfo};
use homenode_dataset::{Dataset, MemoryDataset};

/// The fuzzer's own body and its way to make damaged chunks pass the checksums.
#[allow(dead_code)] // Each test uses a part of it.
#[path = "../../../fuzz/fuzz_targets/table.rs"]
mod table;

/// Rows of a chunk in these tests.
const ROWS: usize = 7;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }
}

/// Every table with rows, as files of small chunks.
fn tables() -> Vec<(&'static TableInfo, Vec<u8>)> {
    let spec = SyntheticSpec { iterations: 8, blocks: 32, nodes: 4, seed: 1, rank: None };
    let mut memory = MemoryDataset::default();
    spec.fill(&mut memory, &mut |_, _| true).unwrap();
    let set = Dataset::of_memory(spec.meta(), memory);
    let file = |table: &'static TableInfo| {
        let mut out = Vec::new();
        let mut appender = Appender::begin(&mut out, table.name, &(table.columns)()).unwrap();
        for chunk in set.chunks_of(table.name, &(table.columns)()) {
            for from in (0..chunk.rows().min(140)).step_by(ROWS) {
                appender.append(&mut out, &chunk.slice(from..from + ROWS)).unwrap();
            }
        }
        out.flush().unwrap();
        (table, out)
    };
    ALL.iter().map(file).collect()
}

/// Rows by frame, the header's first.
fn rows_by_frame(bytes: &[u8]) -> Vec<(std::ops::Range<usize>, u64)> {
    let rows = |f: std::ops::Range<usize>| {
        let n = u32::from_le_bytes(bytes[f.start + 12..f.start + 16].try_into().unwrap());
        (f, u64::from(n))
    };
    table::frames(bytes).into_iter().map(rows).collect()
}

#[test]
fn a_table_cut_off_anywhere_keeps_its_whole_chunks() {
    for (info, bytes) in tables() {
        let frames = rows_by_frame(&bytes);
        for cut in (0..bytes.len()).step_by((bytes.len() / 150).max(1)) {
            let whole: u64 = frames.iter().filter(|(f, _)| f.end <= cut).map(|(_, n)| n).sum();
            let (rows, damages) = table::rows_of(&bytes[..cut], info);
            assert_eq!(rows, whole, "{} cut off at {cut}", info.name);
            let at_border = frames.iter().any(|(f, _)| f.end == cut);
            assert_eq!(damages > 0, !at_border, "{} cut off at {cut}", info.name);
        }
    }
}

#[test]
fn a_flipped_bit_costs_one_chunk() {
    for (info, bytes) in tables() {
        let frames = rows_by_frame(&bytes);
        let all: u64 = frames.iter().map(|(_, n)| n).sum();
        for at in (0..bytes.len()).step_by((bytes.len() / 200).max(1)) {
            let mut turned = bytes.clone();
            turned[at] ^= 1 << (at % 8);
            let expected = match frames.iter().position(|(f, _)| f.contains(&at)) {
                None | Some(0) => 0,
                Some(hit) => all - frames[hit].1,
            };
            let (rows, damages) = table::rows_of(&turned, info);
            assert_eq!((rows, damages), (expected, 1), "{}: bit at byte {at}", info.name);
        }
    }
}

#[test]
fn a_lost_stretch_costs_the_chunks_that_it_touches() {
    let mut rng = Rng(5);
    for (info, bytes) in tables() {
        let frames = rows_by_frame(&bytes);
        let Some((first, _)) = frames.get(1) else { continue };
        for _ in 0..60 {
            let from = first.start + rng.below(bytes.len() - first.start);
            let to = (from + 1 + rng.below(200)).min(bytes.len());
            let torn = [&bytes[..from], &bytes[to..]].concat();
            // What follows the gap may be the very bytes that a chunk lost to it.
            let is_whole = |f: &std::ops::Range<usize>| {
                f.start >= to || torn.get(f.clone()).is_some_and(|now| now == &bytes[f.clone()])
            };
            let whole: u64 = frames.iter().filter(|(f, _)| is_whole(f)).map(|(_, n)| n).sum();
            assert_eq!(table::rows_of(&torn, info).0, whole, "{}: {from}..{to}", info.name);
        }
    }
}

#[test]
fn chunks_of_other_tables_are_refused_and_own_ones_kept() {
    let all = tables();
    for (info, bytes) in &all {
        let frames = rows_by_frame(bytes);
        let rows: u64 = frames.iter().map(|(_, n)| n).sum();
        let border = frames[frames.len() / 2].0.end;
        for (other, foreign) in all.iter().filter(|(o, _)| o.name != info.name) {
            // Header and chunks of the other table, between chunks of this one.
            let spliced = [&bytes[..border], &foreign[8..], &bytes[border..]].concat();
            let (found, damages) = table::rows_of(&spliced, info);
            assert_eq!(found, rows, "{} in {}", other.name, info.name);
            assert!(damages > 0, "{} in {}", other.name, info.name);
            assert_eq!(table::rows_of(foreign, info), (0, 1), "{} as {}", other.name, info.name);
        }
    }
}

#[test]
fn lengths_that_promise_too_much_are_refused() {
    for (info, bytes) in tables() {
        let seed = table::seed(&bytes);
        let rows: u64 = rows_by_frame(&bytes).iter().map(|(_, n)| n).sum();
        for (count, full) in
            [(1, 64 << 20), (1, 32 << 20), (u32::MAX, 10), (1 << 20, 10), (1, u32::MAX), (0, 0)]
        {
            let ten = table::sealed(seed, count, full, &[0x1f; 10]);
            let claims = [&bytes[..], &ten].concat();
            let (found, damages) = table::rows_of(&claims, info);
            assert_eq!((found, damages), (rows, 1), "{}: {count} rows, {full} bytes", info.name);
        }
    }
}

/// One of the things that happen to files, or that somebody might do to them.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = rng.below(bytes.len());
    let len = rng.below(40).min(bytes.len() - at);
    match rng.below(8) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, 8, 12, 0xf5][rng.below(8)],
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..at + len)),
        4 => {
            let again = bytes[at..at + len].to_vec();
            bytes.splice(at..at, again);
        }
        5 => {
            let from = rng.below(other.len());
            let piece = &other[from..(from + 200).min(other.len())];
            bytes.splice(at..at + len.min(piece.len()), piece.iter().copied());
        }
        6 => bytes[at..at + len].fill(0xff),
        _ if bytes.len() >= at + 4 => {
            let value = [0, 1, u32::MAX, 1 << 31, 0xffff][rng.below(5)];
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
        }
        _ => {}
    }
}

fn smoke(rounds: u64) {
    let all = tables();
    for (info, bytes) in &all {
        let sound = table::rows_of(bytes, info);
        assert!(sound.0 > 0 && sound.1 == 0, "{} is read", info.name);
        assert_eq!(table::rows_of(&table::repaired(bytes), info), sound, "repairing changes nothing");
        assert_eq!(table::rows_of(&table::packed(&table::unpacked(bytes)), info), sound, "nor does packing");
    }
    let mut rng = Rng(1);
    let mut found = 0;
    for round in 0..rounds {
        let (info, bytes) = &all[rng.below(all.len())];
        let (_, other) = &all[rng.below(all.len())];
        let unpack = round % 2 == 0;
        let mut bytes = if unpack { table::unpacked(bytes) } else { bytes.clone() };
        for _ in 0..=rng.below(3) {
            if !bytes.is_empty() {
                mutate(&mut bytes, other, &mut rng);
            }
        }
        table::rows_of(&bytes, info);
        let whole = if unpack { table::packed(&bytes) } else { table::repaired(&bytes) };
        found += u64::from(table::rows_of(&whole, info).0 > 0);
    }
    assert!(found > rounds / 4, "{found} of {rounds} had rows behind the checksums");
}

#[test]
fn hostile_tables_end_in_words() {
    smoke(4000);
}

#[test]
#[ignore = "minutes"]
fn hostile_tables_for_longer() {
    smoke(1_000_000);
}
