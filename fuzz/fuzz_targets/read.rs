//! What is tried on a log, and how to make damaged bytes reach what lies behind the checksum and
//! the compression.

use std::path::Path;

use homenode_log::RecordKind;
use homenode_log::check::{MAX_PROBLEMS, check};
use homenode_log::decode::MAX_RECORDS;
use homenode_log::file::{FRAME, FRAME_HEAD, HEADER, LogReader, MAX_PAYLOAD, STORED};

/// Reads `bytes` as a log in every way there is; the records that were read.
///
/// # Panics
/// When a bound does not hold.
pub fn log(bytes: &[u8]) -> u64 {
    let open = || LogReader::new(Path::new("fuzz"), bytes);
    let Ok(mut reader) = open() else { return 0 };
    let (report, damage) = check(&mut reader);
    assert!(report.records <= report.chunks * MAX_RECORDS as u64, "more records than chunks can hold");
    assert!(report.problems.len() <= MAX_PROBLEMS);
    assert_eq!(report.records, report.accesses + report.marks);
    if let Some(damage) = &damage {
        assert!(!damage.to_string().is_empty());
    }
    // In batches, as the simulator reads: the same accesses and marks, the same end.
    let Ok(mut reader) = open() else { return 0 };
    let (mut accesses, mut marks, mut batch) = (0, 0, Vec::new());
    let failed = loop {
        reader.next_accesses(&mut batch, 5);
        if !batch.is_empty() {
            accesses += batch.drain(..).count() as u64;
            continue;
        }
        match reader.next_record() {
            Ok(Some(r)) if matches!(r.what, RecordKind::Mark(_)) => marks += 1,
            Ok(Some(_)) => accesses += 1,
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert_eq!((accesses, marks, failed), (report.accesses, report.marks, damage.is_some()));
    report.records
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

/// The chunks of a log: head and block, the latter as long as the head says or the bytes last.
fn chunks(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut out = Vec::new();
    let mut at = HEADER;
    while let Some(head) = bytes.get(at..at + FRAME_HEAD) {
        let rest = &bytes[at + FRAME_HEAD..];
        let block = &rest[..u32_at(head, 8).min(rest.len())];
        out.push((head, block));
        at += FRAME_HEAD + block.len();
    }
    out
}

fn sealed(out: &mut Vec<u8>, head: &[u8], block: &[u8]) {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..28]);
    crc.update(block);
    out.extend_from_slice(&head[..28]);
    out.extend_from_slice(&crc.finalize().to_le_bytes());
    out.extend_from_slice(block);
}

/// The log with every chunk's CRC made right.
pub fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes[..HEADER.min(bytes.len())].to_vec();
    for (head, block) in chunks(bytes) {
        sealed(&mut out, head, block);
    }
    out
}

/// The log with its chunks decompressed, each behind its head; [`packed`] undoes it.
#[allow(dead_code)] // of use to tests
pub fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes[..HEADER.min(bytes.len())].to_vec();
    for (head, block) in chunks(bytes) {
        let payload =
            lz4_flex::block::decompress(block, u32_at(head, 4).min(MAX_PAYLOAD)).unwrap_or_default();
        out.extend_from_slice(head);
        out.extend_from_slice(&payload);
    }
    out
}

/// A log from heads and decompressed chunks: where a head follows, or everything is at its end, a
/// chunk is closed.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes[..HEADER.min(bytes.len())].to_vec();
    let mut at = HEADER;
    while let Some(head) = bytes.get(at..at + FRAME_HEAD) {
        let rest = &bytes[at + FRAME_HEAD..];
        let len = rest.windows(FRAME.len()).position(|w| w == FRAME).unwrap_or(rest.len()).min(MAX_PAYLOAD);
        let block = lz4_flex::block::compress(&rest[..len]);
        let mut head = head.to_vec();
        head[..4].copy_from_slice(&FRAME);
        head[4..8].copy_from_slice(&(len as u32).to_le_bytes());
        head[8..12].copy_from_slice(&(block.len() as u32).to_le_bytes());
        head[24] &= !(STORED as u8);
        sealed(&mut out, &head, &block);
        at += FRAME_HEAD + len;
    }
    out
}
