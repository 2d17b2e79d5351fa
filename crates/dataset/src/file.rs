//! A table on disk: a header that names the columns, then chunks of rows.
//!
//! ```text
//! file  = MAGIC frame(header) frame(chunk)*
//! frame = MARK | stored length u32 | full length u32 | rows u32 | crc of the block u32
//!         | crc of these 20 bytes u32 | lz4 block
//! ```
//!
//! Numbers are little-endian. [`crate::codec`] says what a chunk's block holds. The crc of a
//! chunk's block starts from that of the header's, so a chunk of another table is none here.
//!
//! A chunk is complete in itself. A file that ends within a frame was cut off there. A damaged
//! frame costs its rows alone: the reader looks for the next [`MARK`] with a right head.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::codec::{self, Bytes, Stored};
use crate::column::{Chunk, ColumnKind};
use crate::foreign::{LONGEST, clean};
use crate::schema::ColumnInfo;

/// The first bytes of a table.
const MAGIC: &[u8; 8] = b"hntable1";
/// The first bytes of a frame.
const MARK: &[u8; 4] = b"\xf5hn\n";
/// Rows of a chunk.
pub const ROWS: usize = 1 << 14;
/// Bytes of a chunk in memory from which on writers begin the next one.
pub const ENOUGH: usize = 4 << 20;
/// Most bytes of a frame, stored and full.
const MAX_FRAME: u32 = 32 << 20;
/// Most bytes of the header, stored and full.
const MAX_HEADER: u32 = 1 << 16;
/// Most rows of a frame.
const MAX_ROWS: u32 = 1 << 20;
/// Most columns of a table.
const MAX_COLUMNS: usize = 256;
/// Damaged places after which a table is given up.
const MAX_DAMAGES: u32 = 10_000;
/// Bytes of damaged frames that are looked through once more, before a table is given up. Frames
/// within frames would be read again and again otherwise.
const MAX_AGAIN: u64 = 1 << 30;
/// Bytes before a frame's block.
const HEAD: usize = 24;
/// Bytes in which the next mark is looked for at once.
const WINDOW: usize = 1 << 16;

/// A column as the file's header names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    kind: Stored,
    optional: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    table: String,
    columns: Vec<Named>,
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        codec::put_text(&mut out, &self.table);
        codec::put(&mut out, self.columns.len() as u64);
        for c in &self.columns {
            codec::put_text(&mut out, &c.name);
            out.extend([c.kind as u8, u8::from(c.optional)]);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let table = bytes.text()?.to_owned();
        let count = usize::try_from(bytes.number()?).ok().filter(|n| *n <= MAX_COLUMNS)?;
        let column = |_| {
            let name = bytes.text()?.to_owned();
            Some(Named { name, kind: Stored::from_byte(bytes.byte()?)?, optional: bytes.byte()? != 0 })
        };
        let columns = (0..count).map(column).collect::<Option<_>>()?;
        bytes.0.is_empty().then_some(Self { table, columns })
    }
}

fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new_with_initial(seed);
    crc.update(bytes);
    crc.finalize()
}

/// What chunks of a table with this header start their checksums from.
fn seed(header: &[u8]) -> u32 {
    checksum(0, header)
}

/// Puts a frame's bytes into `out`.
fn frame(rows: u32, seed: u32, full: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let length = |n: usize| {
        u32::try_from(n).ok().filter(|n| *n <= MAX_FRAME).ok_or_else(|| {
            io::Error::other(format!("a row of {n} bytes is longer than a chunk may be: {MAX_FRAME}"))
        })
    };
    let full_length = length(full.len())?;
    out.clear();
    out.resize(HEAD + lz4_flex::block::get_maximum_output_size(full.len()), 0);
    let stored = lz4_flex::block::compress_into(full, &mut out[HEAD..]).map_err(io::Error::other)?;
    out.truncate(HEAD + stored);
    let crc = checksum(seed, &out[HEAD..]);
    out[..4].copy_from_slice(MARK);
    for (i, n) in [length(stored)?, full_length, rows, crc].into_iter().enumerate() {
        out[4 + 4 * i..8 + 4 * i].copy_from_slice(&n.to_le_bytes());
    }
    let crc = checksum(0, &out[..HEAD - 4]);
    out[HEAD - 4..HEAD].copy_from_slice(&crc.to_le_bytes());
    Ok(())
}

/// Makes the chunks of a table.
pub struct Appender {
    seed: u32,
    /// A chunk's bytes before and after they are packed; kept for the next chunk.
    full: Vec<u8>,
    stored: Vec<u8>,
}

impl Appender {
    /// Writes the beginning of a table.
    ///
    /// # Errors
    /// What the system said.
    pub fn begin(to: &mut impl Write, table: &str, columns: &[ColumnInfo]) -> io::Result<Self> {
        let named =
            |c: &ColumnInfo| Named { name: c.name.into(), kind: Stored::of(c.kind), optional: c.optional };
        let header = Header { table: table.into(), columns: columns.iter().map(named).collect() }.encode();
        let (mut all, mut stored) = (MAGIC.to_vec(), Vec::new());
        frame(0, 0, &header, &mut stored)?;
        all.extend_from_slice(&stored);
        to.write_all(&all)?;
        Ok(Self { seed: seed(&header), full: Vec::new(), stored })
    }

    /// Appends a chunk, by one call of the system where it takes all. A chunk that is longer than a
    /// frame may be becomes several.
    ///
    /// # Errors
    /// What the system said, or a single row is longer than a frame may be.
    pub fn append(&mut self, to: &mut impl Write, chunk: &Chunk) -> io::Result<()> {
        let rows = chunk.rows();
        // Half of what a reader allows for: a reader counts lists and texts a little higher.
        let fits = rows <= MAX_ROWS as usize && chunk.memory() <= codec::BUDGET / 2;
        if rows > 1 && !fits {
            self.append(to, &chunk.slice(0..rows / 2))?;
            return self.append(to, &chunk.slice(rows / 2..rows));
        }
        if rows == 0 {
            return Ok(());
        }
        self.full.clear();
        codec::encode(chunk, &mut self.full);
        frame(rows as u32, self.seed, &self.full, &mut self.stored)?;
        to.write_all(&self.stored)
    }
}

/// What is wrong with a table's file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Byte at which it begins.
    pub offset: u64,
    /// What it is.
    pub why: String,
}

/// Input that can be given back.
struct Input<R> {
    inner: R,
    /// What was given back, from `at` on.
    back: Vec<u8>,
    at: usize,
    /// Byte of the file that comes next.
    offset: u64,
}

impl<R: Read> Input<R> {
    /// Up to `n` more bytes behind `to`; fewer only at the end. The buffer grows with what is
    /// there.
    fn read(&mut self, n: usize, to: &mut Vec<u8>) -> io::Result<()> {
        let before = to.len();
        let old = &self.back[self.at..];
        let taken = old.len().min(n);
        to.extend_from_slice(&old[..taken]);
        self.at += taken;
        if self.at == self.back.len() {
            (self.back, self.at) = (Vec::new(), 0);
        }
        (&mut self.inner).take((n - taken) as u64).read_to_end(to)?;
        self.offset += (to.len() - before) as u64;
        Ok(())
    }

    fn give_back(&mut self, bytes: &[u8]) {
        let mut all = bytes.to_vec();
        all.extend_from_slice(&self.back[self.at..]);
        self.offset -= bytes.len() as u64;
        (self.back, self.at) = (all, 0);
    }
}

/// Numbers before a frame's block.
struct Head {
    stored: u32,
    full: u32,
    rows: u32,
    crc: u32,
}

impl Head {
    /// `None`: this is no frame's head.
    fn of(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEAD).filter(|h| h.starts_with(MARK))?;
        let number = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        if number(20) != checksum(0, &head[..20]) {
            return None;
        }
        let head = Self { stored: number(4), full: number(8), rows: number(12), crc: number(16) };
        (head.stored <= MAX_FRAME && head.full <= MAX_FRAME && head.rows <= MAX_ROWS).then_some(head)
    }
}

struct Frame {
    at: u64,
    rows: u32,
    full: Vec<u8>,
}

/// Reads a table chunk by chunk. It needs memory for one chunk.
pub struct TableReader<R> {
    input: Input<R>,
    seed: u32,
    /// Columns that the file has.
    stored: usize,
    /// The kind of each wanted column, and where the file has it.
    wanted: Vec<(ColumnKind, Option<usize>)>,
    damages: u32,
    /// Bytes that were given back because of damage.
    again: u64,
    over: bool,
}

impl<R: Read> TableReader<R> {
    /// Reads the header. Columns that the file lacks have no values; columns that nobody asks for
    /// are skipped.
    ///
    /// # Errors
    /// The file is not one of this table, or lacks a column that must be there.
    pub fn new(input: R, table: &str, columns: &[ColumnInfo]) -> Result<Self, Damage> {
        let input = Input { inner: input, back: Vec::new(), at: 0, offset: 0 };
        let mut reader =
            Self { input, seed: 0, stored: 0, wanted: Vec::new(), damages: 0, again: 0, over: false };
        let wrong = |why: String| Damage { offset: 0, why };
        let mut magic = Vec::new();
        reader.input.read(MAGIC.len(), &mut magic).map_err(|e| wrong(e.to_string()))?;
        if magic != *MAGIC {
            return Err(wrong("it is not a table of homenode".into()));
        }
        let header = match reader.frame(MAX_HEADER)? {
            Some(Frame { rows: 0, full, .. }) => full,
            _ => return Err(wrong("it has no header".into())),
        };
        reader.seed = seed(&header);
        let header = Header::decode(&header).ok_or_else(|| wrong("its header makes no sense".into()))?;
        if header.table != table {
            return Err(wrong(format!("it is the table '{}', not '{table}'", clean(&header.table))));
        }
        for column in columns {
            let at = header.columns.iter().position(|n| n.name == column.name);
            match at {
                Some(at) if header.columns[at].kind != Stored::of(column.kind) => {
                    return Err(wrong(format!("its column '{}' is of another kind", column.name)));
                }
                None if !column.optional => {
                    return Err(wrong(format!("it lacks the column '{}'", column.name)));
                }
                _ => reader.wanted.push((column.kind, at)),
            }
        }
        reader.stored = header.columns.len();
        Ok(reader)
    }

    /// Byte of the file up to which it was read.
    pub const fn offset(&self) -> u64 {
        self.input.offset
    }

    /// The next frame, whose checksums are right; `None` at the end.
    fn frame(&mut self, most: u32) -> Result<Option<Frame>, Damage> {
        let at = self.input.offset;
        let damage = |why: &str| Damage { offset: at, why: why.into() };
        let system = |e: io::Error| Damage { offset: at, why: e.to_string() };
        let mut bytes = Vec::with_capacity(HEAD);
        self.input.read(HEAD, &mut bytes).map_err(system)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let why = match Head::of(&bytes) {
            _ if bytes.len() < HEAD => "it was cut off",
            None => "there is no chunk",
            Some(head) if head.stored > most || head.full > most => "a chunk has an impossible length",
            Some(head) => {
                self.input.read(head.stored as usize, &mut bytes).map_err(system)?;
                let block = &bytes[HEAD..];
                if block.len() < head.stored as usize {
                    "it was cut off"
                } else if checksum(self.seed, block) != head.crc {
                    "a chunk's checksum is wrong"
                } else {
                    match lz4_flex::block::decompress(block, head.full as usize) {
                        Ok(full) => return Ok(Some(Frame { at, rows: head.rows, full })),
                        Err(_) => "a chunk cannot be unpacked",
                    }
                }
            }
        };
        // The next whole chunk may begin anywhere behind the first byte of this one.
        self.again += bytes.len() as u64;
        self.input.give_back(&bytes[1..]);
        Err(damage(why))
    }

    /// Goes on to the next head of a frame or to the end.
    fn find(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        loop {
            let before = bytes.len();
            self.input.read(WINDOW, &mut bytes)?;
            let ended = bytes.len() - before < WINDOW;
            // From a place further on, a head would not be whole.
            let last = if ended { bytes.len() } else { bytes.len() - HEAD };
            let mut at = 0;
            while let Some(found) = bytes[at..last].iter().position(|b| *b == MARK[0]) {
                at += found;
                if Head::of(&bytes[at..]).is_some() {
                    self.input.give_back(&bytes[at..]);
                    return Ok(());
                }
                at += 1;
            }
            if ended {
                return Ok(());
            }
            bytes.drain(..last);
        }
    }

    /// The next chunk and the byte at which it begins. After damage the reader goes on with the
    /// next chunk that is whole.
    pub fn next_chunk(&mut self) -> Option<Result<(u64, Chunk), Damage>> {
        if self.over {
            return None;
        }
        let mut damage = match self.frame(MAX_FRAME) {
            Ok(None) => return None,
            Ok(Some(frame)) => {
                let rows = frame.rows as usize;
                let chunk = (rows > 0).then(|| codec::decode(&frame.full, rows, self.stored, &self.wanted));
                match chunk.flatten() {
                    Some(chunk) => return Some(Ok((frame.at, chunk))),
                    None => Damage { offset: frame.at, why: "a chunk's columns make no sense".into() },
                }
            }
            Err(damage) => {
                if let Err(e) = self.find() {
                    self.over = true;
                    return Some(Err(Damage { offset: self.input.offset, why: e.to_string() }));
                }
                damage
            }
        };
        self.damages += 1;
        if self.damages >= MAX_DAMAGES || self.again >= MAX_AGAIN {
            self.over = true;
            damage.why += "; so many places are damaged that the rest is not read";
        }
        Some(Err(damage))
    }
}

impl<R: Read + Seek> TableReader<R> {
    /// Goes on to the first chunk that begins at this byte or behind it. Bytes that were read
    /// already are not read again.
    ///
    /// # Errors
    /// What the system said.
    pub fn skip_to(&mut self, offset: u64) -> io::Result<()> {
        if offset <= self.input.offset {
            return Ok(());
        }
        (self.input.back, self.input.at) = (Vec::new(), 0);
        self.input.inner.seek(SeekFrom::Start(offset))?;
        self.input.offset = offset;
        self.find()
    }
}

const _: () = assert!(LONGEST < MAX_FRAME as usize);
