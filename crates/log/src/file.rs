//! A thread's log file: header, then frames of one chunk each.
//!
//! | part | bytes |
//! |---|---|
//! | header | `HNLOG\r\n\0`, version u32, filter lines u32 (0: no filter), line shift u32, 0 u32 |
//! | frame | `HNCK`, payload bytes u32, compressed bytes u32, records u32, tick before its first record u64, flags u32 (1: has marks that are ordered among threads, 2: has marks, 4: the payload is stored as it is), CRC-32 u32, the LZ4 block or the payload |
//!
//! All little-endian; the CRC covers the frame's first 28 bytes and the block. A payload has at
//! most [`MAX_PAYLOAD`] bytes, so a hostile file cannot make a reader take memory.
//!
//! # When the format changes
//! 1. `VERSION` grows by one, and the table above, `encode` and `decode` describe the new one.
//! 2. `upgrader` gets an arm for the version that was the newest until now: what turns its records
//!    into today's. If chunks are laid out differently, the old decoder stays as a module of its
//!    own, chosen there, too.
//! 3. CHANGELOG.md says what changed.
//! 4. A recording of the new version goes to `fixtures/logs/vN/`, and the old fixtures stay:
//!    `tests/fixtures.rs` reads every one of them for ever and compares what the checker says.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use homenode_model::Ticks;

use crate::decode::{Access, ChunkDecoder};
use crate::encode::{Encoder, MAX_CHUNK_WORDS};
use crate::error::{LogError, Wrong};
use crate::{Mark, Record, RecordKind, VERSION};

/// First bytes of a log.
pub const MAGIC: [u8; 8] = *b"HNLOG\r\n\0";
/// First bytes of a frame.
pub const FRAME: [u8; 4] = *b"HNCK";
/// Flag of a chunk that has marks whose order among threads matters.
pub const ORDERED: u32 = 1;
/// Flag of a chunk that has any mark.
pub const MARKS: u32 = 2;
/// Flag of a chunk whose payload is not compressed.
pub const STORED: u32 = 4;
/// Bytes of the header.
pub const HEADER: usize = 24;
/// Bytes of a frame before its block.
pub const FRAME_HEAD: usize = 32;
/// Most bytes of a payload.
pub const MAX_PAYLOAD: usize = MAX_CHUNK_WORDS * 18 + 128;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// Format version.
    pub version: u32,
    /// Lines of the recorder's filter; 0: every access was kept.
    pub filter_lines: u32,
    /// log2 of the line size.
    pub line_shift: u32,
}

impl LogHeader {
    /// The header's bytes.
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut b = [0; HEADER];
        b[..8].copy_from_slice(&MAGIC);
        b[8..12].copy_from_slice(&self.version.to_le_bytes());
        b[12..16].copy_from_slice(&self.filter_lines.to_le_bytes());
        b[16..20].copy_from_slice(&self.line_shift.to_le_bytes());
        b
    }

    fn parse(b: &[u8; HEADER]) -> Result<Self, Wrong> {
        if b[..8] != MAGIC {
            return Err(Wrong::Expected {
                expected: "a homenode log (HNLOG)".into(),
                found: format!("{:02x?}", &b[..8]),
            });
        }
        let h = Self { version: u32_at(b, 8), filter_lines: u32_at(b, 12), line_shift: u32_at(b, 16) };
        if upgrader(h.version).is_none() {
            return Err(Wrong::Expected {
                expected: format!("a log of version 1 to {VERSION}"),
                found: format!("version {}: made by a newer homenode, which can read it", h.version),
            });
        }
        if h.line_shift != homenode_model::LineNo::SHIFT {
            return Err(Wrong::Expected {
                expected: "lines of 64 bytes (shift 6)".into(),
                found: format!("shift {}", h.line_shift),
            });
        }
        Ok(h)
    }
}

/// Turns a record of an older version into one of [`VERSION`].
type Upgrade = fn(Record) -> Record;

/// How records of a version become today's; `None` for a version that this reader does not know.
fn upgrader(version: u32) -> Option<Upgrade> {
    match version {
        VERSION => Some(|record| record),
        _ => None,
    }
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// Turns in-memory records into frames ready to be appended to the file.
pub struct Framer {
    encoder: Encoder,
    frame: Vec<u8>,
    tick: u64,
    /// Chunks that are to be stored without an attempt to compress them.
    stored_next: u32,
}

/// After a chunk that compression leaves at more than 2/5 of its payload, this many are stored as
/// they are: random accesses make payloads of two or three bytes an access, and to halve these
/// costs as much time as to write them twice.
const STORE: u32 = 31;

impl Default for Framer {
    fn default() -> Self {
        Self::new()
    }
}

impl Framer {
    /// All its memory is taken here.
    pub fn new() -> Self {
        let most = FRAME_HEAD + lz4_flex::block::get_maximum_output_size(MAX_PAYLOAD);
        Self { encoder: Encoder::new(), frame: vec![0; most], tick: 0, stored_next: 0 }
    }

    /// Clock at the end of the last frame.
    pub const fn tick(&self) -> u64 {
        self.tick
    }

    /// Words added since the last frame.
    pub const fn words(&self) -> usize {
        self.encoder.words()
    }

    /// Adds whole records to the next frame, which holds at most [`MAX_CHUNK_WORDS`] words. Small
    /// portions that are still in the first-level cache cost least.
    pub fn add(&mut self, words: &[u64]) {
        self.encoder.add(words);
    }

    /// A frame of what was added and of `words`.
    pub fn frame(&mut self, words: &[u64]) -> &[u8] {
        self.add(words);
        let encoded = self.encoder.finish();
        let stored = self.stored_next > 0;
        let block = if stored {
            self.stored_next -= 1;
            self.frame[FRAME_HEAD..FRAME_HEAD + encoded.raw.len()].copy_from_slice(encoded.raw);
            encoded.raw.len()
        } else {
            lz4_flex::block::compress_into(encoded.raw, &mut self.frame[FRAME_HEAD..]).unwrap_or(0)
        };
        // A short chunk says nothing of those to come.
        if !stored && encoded.records > 4096 && block * 5 > encoded.raw.len() * 2 {
            self.stored_next = STORE;
        }
        let head = &mut self.frame[..FRAME_HEAD];
        head[..4].copy_from_slice(&FRAME);
        head[4..8].copy_from_slice(&(encoded.raw.len() as u32).to_le_bytes());
        head[8..12].copy_from_slice(&(block as u32).to_le_bytes());
        head[12..16].copy_from_slice(&encoded.records.to_le_bytes());
        head[16..24].copy_from_slice(&self.tick.to_le_bytes());
        self.tick = self.tick.saturating_add(encoded.ticks);
        let flags = if encoded.ordered { ORDERED } else { 0 }
            | if encoded.marks { MARKS } else { 0 }
            | if stored { STORED } else { 0 };
        self.frame[24..28].copy_from_slice(&flags.to_le_bytes());
        let crc = crc(&self.frame[..28], &self.frame[FRAME_HEAD..FRAME_HEAD + block]);
        self.frame[28..32].copy_from_slice(&crc.to_le_bytes());
        &self.frame[..FRAME_HEAD + block]
    }
}

fn crc(head: &[u8], block: &[u8]) -> u32 {
    let mut h = crc32fast::Hasher::new();
    h.update(head);
    h.update(block);
    h.finalize()
}

/// Reads a thread's log record by record.
#[derive(Debug)]
pub struct LogReader<R = File> {
    path: PathBuf,
    from: R,
    header: LogHeader,
    offset: u64,
    chunk_at: u64,
    block: Vec<u8>,
    decoder: ChunkDecoder,
    chunks: u64,
    only: Option<u32>,
    /// `None` for today's version.
    upgrade: Option<Upgrade>,
}

impl LogReader<File> {
    /// Opens a log.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a log of a known version.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        match crate::regular::open_within(path) {
            Ok(file) => Self::new(path, file),
            Err(e) => Err(LogError { path: path.into(), offset: 0, wrong: Wrong::Io(e) }),
        }
    }

    /// Opens a log. `None`: its recorder was killed before the header was written, so that the log
    /// holds nothing.
    ///
    /// # Errors
    /// As [`LogReader::open`].
    pub fn open_begun(path: &Path) -> Result<Option<Self>, LogError> {
        match Self::open(path) {
            Err(LogError { wrong: Wrong::Truncated { .. }, .. }) => Ok(None),
            opened => opened.map(Some),
        }
    }
}

impl<R: Read> LogReader<R> {
    /// Reads a log from `from`; `path` is for messages.
    ///
    /// # Errors
    /// As [`LogReader::open`].
    pub fn new(path: &Path, mut from: R) -> Result<Self, LogError> {
        let fail = |wrong| LogError { path: path.into(), offset: 0, wrong };
        let mut b = [0; HEADER];
        let got = read_full(&mut from, &mut b).map_err(|e| fail(Wrong::Io(e)))?;
        if got < HEADER && b[..got.min(8)] == MAGIC[..got.min(8)] {
            let missing = (HEADER - got) as u64;
            return Err(fail(Wrong::Truncated { what: "the header", missing }));
        }
        let header = LogHeader::parse(&b).map_err(fail)?;
        Ok(Self {
            path: path.into(),
            from,
            header,
            offset: HEADER as u64,
            chunk_at: HEADER as u64,
            block: Vec::new(),
            decoder: ChunkDecoder::default(),
            chunks: 0,
            only: None,
            upgrade: upgrader(header.version).filter(|_| header.version != VERSION),
        })
    }

    /// What the header says.
    pub const fn header(&self) -> LogHeader {
        self.header
    }
    /// From here on, skip every chunk that has none of these flags.
    pub const fn only(mut self, flags: u32) -> Self {
        self.only = Some(flags);
        self
    }
    /// Chunks read so far.
    pub const fn chunks(&self) -> u64 {
        self.chunks
    }
    /// Offset of the chunk being read.
    pub const fn chunk_offset(&self) -> u64 {
        self.chunk_at
    }

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// With the offset of the damaged chunk. What came before is good; reading must stop.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record>, LogError> {
        loop {
            match self.decoder.next() {
                Ok(Some(r)) => return Ok(Some(self.upgrade.map_or(r, |upgrade| upgrade(r)))),
                Ok(None) => {
                    if !self.next_chunk()? {
                        return Ok(None);
                    }
                }
                Err(wrong) => return Err(self.fail(wrong)),
            }
        }
    }

    /// Puts the accesses up to the next mark or the chunk's end, at most `most`, behind those of
    /// `out`. None does not mean that there are no more records: [`LogReader::next_record`] knows,
    /// and tells of damage.
    #[inline]
    pub fn next_accesses(&mut self, out: &mut Vec<Access>, most: usize) {
        // Records that need an upgrade come one by one.
        if self.upgrade.is_none() {
            self.decoder.accesses(out, most);
        }
    }

    /// The program counter of an access that [`LogReader::next_accesses`] gave, by its `place`,
    /// until something else is read; 0 where it is unknown.
    #[inline]
    pub fn pc(&self, place: u16) -> u64 {
        self.decoder.pc(place)
    }

    /// The next mark, without a look at the accesses before it; `None` at the end of the file.
    /// Whoever asks for marks cannot ask for records afterwards.
    ///
    /// # Errors
    /// As [`LogReader::next_record`].
    pub fn next_mark(&mut self) -> Result<Option<Mark>, LogError> {
        loop {
            match self.decoder.next_mark() {
                Ok(Some(mark)) => {
                    if let Some(mark) = self.upgraded(mark) {
                        return Ok(Some(mark));
                    }
                }
                Ok(None) => {
                    if !self.next_chunk()? {
                        return Ok(None);
                    }
                }
                Err(wrong) => return Err(self.fail(wrong)),
            }
        }
    }

    /// Tells of all marks, and for each chunk of the program counters of its accesses, and looks at
    /// nothing else. Whoever scans a log cannot ask for records afterwards.
    ///
    /// # Errors
    /// As [`LogReader::next_record`].
    pub fn scan(&mut self, mut mark: impl FnMut(Mark), mut pc: impl FnMut(u64)) -> Result<(), LogError> {
        loop {
            match self.decoder.next_mark() {
                Ok(Some(found)) => self.upgraded(found).map_or((), &mut mark),
                Ok(None) => {
                    self.decoder.pcs().for_each(&mut pc);
                    if !self.next_chunk()? {
                        return Ok(());
                    }
                }
                Err(wrong) => return Err(self.fail(wrong)),
            }
        }
    }

    /// The mark as today's version has it.
    fn upgraded(&self, mark: Mark) -> Option<Mark> {
        let Some(upgrade) = self.upgrade else { return Some(mark) };
        match upgrade(Record { tick: Ticks(0), what: RecordKind::Mark(mark) }).what {
            RecordKind::Mark(mark) => Some(mark),
            RecordKind::Access { .. } => None,
        }
    }

    #[cold]
    fn fail(&self, wrong: Wrong) -> LogError {
        LogError { path: self.path.clone(), offset: self.chunk_at, wrong }
    }

    #[cold]
    fn next_chunk(&mut self) -> Result<bool, LogError> {
        self.chunk_at = self.offset;
        let mut head = [0; FRAME_HEAD];
        let got = read_full(&mut self.from, &mut head).map_err(|e| self.fail(Wrong::Io(e)))?;
        if got == 0 {
            return Ok(false);
        }
        if got < FRAME_HEAD {
            let missing = (FRAME_HEAD - got) as u64;
            return Err(self.fail(Wrong::Truncated { what: "a chunk's frame", missing }));
        }
        if head[..4] != FRAME {
            let found = format!("{:02x?}", &head[..4]);
            return Err(self.fail(Wrong::Expected { expected: "a chunk (HNCK)".into(), found }));
        }
        let (payload, block) = (u32_at(&head, 4) as usize, u32_at(&head, 8) as usize);
        if payload > MAX_PAYLOAD || block > lz4_flex::block::get_maximum_output_size(MAX_PAYLOAD) {
            return Err(self.fail(Wrong::Expected {
                expected: format!("a chunk of at most {MAX_PAYLOAD} bytes"),
                found: format!("{payload} bytes in {block}"),
            }));
        }
        self.block.resize(block, 0);
        let got = read_full(&mut self.from, &mut self.block).map_err(|e| self.fail(Wrong::Io(e)))?;
        if got < block {
            let missing = (block - got) as u64;
            return Err(self.fail(Wrong::Truncated { what: "a chunk", missing }));
        }
        let (want, have) = (u32_at(&head, 28), crc(&head[..28], &self.block));
        if want != have {
            return Err(self.fail(Wrong::Expected {
                expected: format!("a chunk with CRC {want:08x}"),
                found: format!("{have:08x}: the bytes have changed since they were written"),
            }));
        }
        self.offset += (FRAME_HEAD + block) as u64;
        self.chunks += 1;
        if self.only.is_some_and(|flags| u32_at(&head, 24) & flags == 0) {
            return Ok(true); // the decoder is still at its last chunk's end
        }
        let mut tick = [0; 8];
        tick.copy_from_slice(&head[16..24]);
        let Self { decoder, block, .. } = self;
        let started = decoder.start(u64::from_le_bytes(tick), |raw| {
            raw.resize(payload, 0);
            if u32_at(&head, 24) & STORED != 0 {
                if block.len() != payload {
                    let found = format!("{} bytes in {payload}", block.len());
                    return Err(Wrong::Expected {
                        expected: "a stored payload of its own length".into(),
                        found,
                    });
                }
                raw.copy_from_slice(block);
                return Ok(());
            }
            match lz4_flex::block::decompress_into(block, raw) {
                Ok(n) if n == payload => Ok(()),
                Ok(n) => Err(Wrong::Expected {
                    expected: format!("{payload} bytes after decompression"),
                    found: n.to_string(),
                }),
                Err(e) => Err(Wrong::Expected { expected: "an LZ4 block".into(), found: e.to_string() }),
            }
        });
        started.map_err(|wrong| self.fail(wrong))?;
        Ok(true)
    }
}

impl<R: Read + Seek> LogReader<R> {
    /// Skips all chunks but the last one that begins, by their heads alone. A log ends with the
    /// marks of its thread's end and totals.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn skip_to_last_chunk(&mut self) -> Result<(), LogError> {
        let (mut at, mut last) = (self.offset, self.offset);
        let mut head = [0; FRAME_HEAD];
        loop {
            self.from.seek(SeekFrom::Start(at)).map_err(|e| self.fail(Wrong::Io(e)))?;
            let got = read_full(&mut self.from, &mut head).map_err(|e| self.fail(Wrong::Io(e)))?;
            if got < FRAME_HEAD || head[..4] != FRAME {
                break;
            }
            last = at;
            at += FRAME_HEAD as u64 + u64::from(u32_at(&head, 8));
        }
        self.offset = last;
        self.from.seek(SeekFrom::Start(last)).map_err(|e| self.fail(Wrong::Io(e)))?;
        Ok(())
    }
}

fn read_full(from: &mut impl Read, to: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < to.len() {
        match from.read(&mut to[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::access_words;

    fn log(chunks: u64) -> Vec<u8> {
        let mut bytes = LogHeader { version: VERSION, filter_lines: 4096, line_shift: 6 }.bytes().to_vec();
        let mut framer = Framer::new();
        for c in 0..chunks {
            let words: Vec<u64> =
                (0..100).flat_map(|i| access_words(c * 100 + i, i % 3 == 0, 77, 2)).collect();
            bytes.extend_from_slice(framer.frame(&words));
        }
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<Record>, Option<LogError>) {
        let mut out = Vec::new();
        let mut r = match LogReader::new(Path::new("x"), bytes) {
            Ok(r) => r,
            Err(e) => return (out, Some(e)),
        };
        loop {
            match r.next_record() {
                Ok(Some(x)) => out.push(x),
                Ok(None) => return (out, None),
                Err(e) => return (out, Some(e)),
            }
        }
    }

    #[test]
    fn the_last_chunk_is_found_by_the_heads_alone() {
        let last = |bytes: &[u8]| {
            let mut log = LogReader::new(Path::new("log"), std::io::Cursor::new(bytes)).unwrap();
            log.skip_to_last_chunk().unwrap();
            let mut lines = Vec::new();
            while let Ok(Some(record)) = log.next_record() {
                if let RecordKind::Access { line, .. } = record.what {
                    lines.push(line.0);
                }
            }
            lines
        };
        let bytes = log(3);
        assert_eq!(last(&bytes), (200..300).collect::<Vec<_>>());
        assert_eq!(last(&log(1)), (0..100).collect::<Vec<_>>());
        let none: Vec<u64> = Vec::new();
        assert_eq!(last(&log(0)), none);
        assert_eq!(last(&bytes[..bytes.len() - 1]), none, "the last chunk is cut off");
    }

    #[test]
    fn clocks_and_lines_go_on_over_chunks() {
        let (records, error) = read(&log(3));
        assert!(error.is_none());
        assert_eq!(records.len(), 300);
        for (i, r) in records.iter().enumerate() {
            assert_eq!(r.tick.0, 2 * (i as u64 + 1));
            assert!(matches!(r.what, RecordKind::Access { line, pc: 77, .. } if line.0 == i as u64));
        }
    }

    #[test]
    fn what_does_not_compress_is_stored() {
        // Lines whose differences do not repeat.
        let words: Vec<u64> = (0..8192_u64)
            .flat_map(|i| access_words((i * i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34, false, 77, i % 20))
            .collect();
        let mut framer = Framer::new();
        let mut bytes = LogHeader { version: VERSION, filter_lines: 4096, line_shift: 6 }.bytes().to_vec();
        let mut flags = Vec::new();
        for _ in 0..3 {
            let frame = framer.frame(&words);
            flags.push(u32_at(frame, 24) & STORED);
            bytes.extend_from_slice(frame);
        }
        assert_eq!(flags, [0, STORED, STORED]);
        let (records, error) = read(&bytes);
        assert!(error.is_none());
        assert_eq!(records.len(), 3 * 8192);
        for (r, w) in records.iter().zip(words.chunks(2).cycle()) {
            assert!(matches!(r.what, RecordKind::Access { line, .. } if line.0 == w[0] >> 8));
        }
    }

    #[test]
    fn every_cut_leaves_what_was_whole() {
        let bytes = log(3);
        for cut in 0..bytes.len() {
            let (records, error) = read(&bytes[..cut]);
            assert_eq!(records.len() % 100, 0, "cut at {cut}");
            let whole = read(&bytes[..cut]).1.is_none();
            assert_eq!(whole, error.is_none());
        }
        assert_eq!(read(&bytes[..bytes.len() - 1]).0.len(), 200);
    }

    #[test]
    fn every_changed_byte_is_found_or_harmless() {
        let bytes = log(2);
        let good = read(&bytes).0;
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x41;
            let (records, error) = read(&bad);
            assert!(error.is_some() || records == good, "byte {at} changed unnoticed");
        }
    }

    #[test]
    fn foreign_files_are_named() {
        let e = read(b"PAR1 this is not a log of homenode").1.unwrap();
        assert!(e.to_string().contains("expected a homenode log"), "{e}");
        let mut newer = log(1);
        newer[8] = 99;
        let e = read(&newer).1.unwrap();
        assert!(e.to_string().contains("newer homenode"), "{e}");
    }
}
