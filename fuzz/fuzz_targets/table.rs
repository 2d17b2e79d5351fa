//! What is tried on a table of a data set, and how to make damaged bytes reach what lies behind the
//! checksums and the compression.

use std::ops::Range;

use homenode_dataset::file::TableReader;
use homenode_dataset::tables::{ALL, TableInfo};

/// Bytes before the first frame, and before a frame's block.
const MAGIC: usize = 8;
const HEAD: usize = 24;
const MARK: [u8; 4] = *b"\xf5hn\n";
/// Most bytes that are unpacked here.
const MOST: usize = 1 << 20;

/// Reads `bytes` as the table; the rows, and how many places are damaged.
///
/// # Panics
/// When a bound does not hold.
pub fn rows_of(bytes: &[u8], table: &TableInfo) -> (u64, u64) {
    let Ok(mut reader) = TableReader::new(bytes, table.name, &(table.columns)()) else { return (0, 1) };
    let (mut rows, mut damages, mut before) = (0, 0, 0);
    while let Some(next) = reader.next_chunk() {
        match next {
            Ok((at, chunk)) => {
                assert!(at >= before && at <= bytes.len() as u64, "chunks come in order");
                before = at;
                assert!(chunk.rows() > 0);
                assert!(chunk.columns.iter().all(|c| c.rows() == chunk.rows()));
                assert!(chunk.memory() <= 64 << 20, "a chunk of {} bytes", chunk.memory());
                // Rows may make no sense; they never make a panic.
                for row in 0..chunk.rows().min(100) {
                    let _ = (table.check)(&chunk, row);
                }
                rows += chunk.rows() as u64;
            }
            Err(damage) => {
                assert!(!damage.why.is_empty() && damage.offset <= bytes.len() as u64);
                damages += 1;
            }
        }
    }
    (rows, damages)
}

/// Reads `bytes` as every table.
#[allow(dead_code)] // of use to the fuzzer
pub fn any(bytes: &[u8]) -> u64 {
    ALL.iter().map(|t| rows_of(bytes, t).0).sum()
}

fn crc(seed: u32, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new_with_initial(seed);
    crc.update(bytes);
    crc.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

/// The frames of a table, the header's first, as far as their lengths lead.
pub fn frames(bytes: &[u8]) -> Vec<Range<usize>> {
    let (mut all, mut at) = (Vec::new(), MAGIC);
    while at + HEAD <= bytes.len() {
        let end = (at + HEAD).saturating_add(u32_at(bytes, at + 4)).min(bytes.len());
        all.push(at..end);
        at = end;
    }
    all
}

/// A frame of this block; `full`: bytes that it claims to hold.
pub fn sealed(seed: u32, rows: u32, full: u32, block: &[u8]) -> Vec<u8> {
    let mut out = MARK.to_vec();
    for n in [block.len() as u32, full, rows, crc(seed, block)] {
        out.extend_from_slice(&n.to_le_bytes());
    }
    out.extend_from_slice(&crc(0, &out).to_le_bytes());
    out.extend_from_slice(block);
    out
}

/// What the chunks of a table start their checksums from.
pub fn seed(bytes: &[u8]) -> u32 {
    let Some(header) = frames(bytes).into_iter().next() else { return 0 };
    let full = u32_at(bytes, header.start + 8).min(MOST);
    crc(0, &lz4_flex::block::decompress(&bytes[header.start + HEAD..header.end], full).unwrap_or_default())
}

/// The table with the checksums of all frames made right.
pub fn repaired(bytes: &[u8]) -> Vec<u8> {
    let seed = seed(bytes);
    let mut out = bytes[..MAGIC.min(bytes.len())].to_vec();
    for (i, frame) in frames(bytes).into_iter().enumerate() {
        let (full, rows) = (u32_at(bytes, frame.start + 8) as u32, u32_at(bytes, frame.start + 12) as u32);
        out.extend(sealed(if i == 0 { 0 } else { seed }, rows, full, &bytes[frame.start + HEAD..frame.end]));
    }
    out
}

/// The table with its blocks unpacked, each behind its head; [`packed`] undoes it.
#[allow(dead_code)] // of use to tests
pub fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes[..MAGIC.min(bytes.len())].to_vec();
    for frame in frames(bytes) {
        let full = u32_at(bytes, frame.start + 8).min(MOST);
        let block =
            lz4_flex::block::decompress(&bytes[frame.start + HEAD..frame.end], full).unwrap_or_default();
        out.extend_from_slice(&bytes[frame.start..frame.start + 4]);
        out.extend_from_slice(&(block.len() as u32).to_le_bytes());
        out.extend_from_slice(&bytes[frame.start + 8..frame.start + HEAD]);
        out.extend_from_slice(&block);
    }
    out
}

/// A table from heads and unpacked blocks.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let all = frames(bytes);
    let header = all.first().map_or(&[][..], |f| &bytes[f.start + HEAD..f.end]);
    let seed = crc(0, header);
    let mut out = bytes[..MAGIC.min(bytes.len())].to_vec();
    for (i, frame) in all.into_iter().enumerate() {
        let block = &bytes[frame.start + HEAD..frame.end];
        let rows = u32_at(bytes, frame.start + 12) as u32;
        let stored = lz4_flex::block::compress(block);
        out.extend(sealed(if i == 0 { 0 } else { seed }, rows, block.len() as u32, &stored));
    }
    out
}
