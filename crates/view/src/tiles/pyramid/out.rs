//! Blocks on their way to the file, and back.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::block::{self, BlockEntry};
use super::sums::Sum;
use super::{PyramidError, SumKind};

/// Most bytes of a pyramid in memory.
const MOST_IN_MEMORY: u64 = 64 << 20;

/// Where the bytes go.
enum To {
    /// A file; it is removed unless it was finished.
    File(PathBuf, BufWriter<File>),
    /// Memory.
    Memory(Vec<u8>),
    /// Whatever a test wants.
    #[cfg(test)]
    Other(Box<dyn Write + Send>),
}

impl To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(_, file) => file.write_all(bytes),
            Self::Memory(all) if (all.len() + bytes.len()) as u64 > MOST_IN_MEMORY => {
                Err(io::Error::new(io::ErrorKind::OutOfMemory, "it is too large for memory"))
            }
            Self::Memory(all) => {
                all.extend_from_slice(bytes);
                Ok(())
            }
            #[cfg(test)]
            Self::Other(to) => to.write_all(bytes),
        }
    }
}

/// What was written: a file, or the bytes themselves; and where the blocks lie.
pub struct Written {
    pub path: Option<PathBuf>,
    pub bytes: Vec<u8>,
    pub index: Vec<BlockEntry>,
}

/// A file or memory to which blocks are written. After a failure it takes blocks and forgets them.
pub struct Out {
    to: To,
    at: u64,
    /// What was written.
    pub index: Vec<BlockEntry>,
    bytes: Vec<u8>,
    /// Why nothing is written any more.
    pub failed: Option<io::Error>,
}

impl Out {
    /// A file that must not exist yet.
    pub fn file(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        Ok(Self::new(To::File(path.to_owned(), BufWriter::with_capacity(1 << 18, file))))
    }

    pub const fn memory() -> Self {
        Self::new(To::Memory(Vec::new()))
    }

    #[cfg(test)]
    pub fn other(to: impl Write + Send + 'static) -> Self {
        Self::new(To::Other(Box::new(to)))
    }

    const fn new(to: To) -> Self {
        Self { to, at: 0, index: Vec::new(), bytes: Vec::new(), failed: None }
    }

    /// Bytes that were written.
    pub const fn at(&self) -> u64 {
        self.at
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.to.write(bytes).err();
            self.at += bytes.len() as u64;
        }
    }

    /// Writes sums that are in the order of their keys, block after block. Returns where the
    /// index has them.
    pub fn run(&mut self, kind: SumKind, resolution: u32, sums: &[Sum]) -> Range<usize> {
        let begin = self.index.len();
        for object in objects(sums) {
            object.chunks(block::MOST).for_each(|part| self.block(kind, resolution, part));
        }
        begin..self.index.len()
    }

    /// Writes sums that are in the order of their keys as blocks that are about as many cells wide
    /// as they are long: a window then overlaps few of them. `shift`: pages of a cell.
    pub fn tiles(&mut self, kind: SumKind, resolution: u32, shift: u32, sums: &mut [Sum]) {
        let mut rest = sums;
        while let Some(first) = rest.first() {
            let object = first.key.cell().object;
            let (one, others) = rest.split_at_mut(rest.partition_point(|s| s.key.cell().object == object));
            self.tile(kind, resolution, shift, one);
            rest = others;
        }
    }

    fn tile(&mut self, kind: SumKind, resolution: u32, shift: u32, sums: &mut [Sum]) {
        if sums.len() <= block::MOST {
            return self.block(kind, resolution, sums);
        }
        let middle = halve(shift, sums);
        let (a, b) = sums.split_at_mut(middle);
        self.tile(kind, resolution, shift, a);
        self.tile(kind, resolution, shift, b);
    }

    fn block(&mut self, kind: SumKind, resolution: u32, sums: &[Sum]) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        block::encode(sums, kind, &mut bytes);
        let cells = || sums.iter().map(|s| s.key.cell());
        let entry = BlockEntry {
            kind,
            resolution,
            object: cells().next().map_or(0, |c| c.object),
            page: cells().next().map_or(0, |c| c.page),
            end: cells().map(|c| c.page + c.pages).max().unwrap_or(0),
            first: cells().map(|c| c.column).min().unwrap_or(0),
            last: cells().map(|c| c.column).max().unwrap_or(0),
            offset: self.at,
            bytes: bytes.len() as u32,
            sum: crc32fast::hash(&bytes),
        };
        self.write(&bytes);
        if self.failed.is_none() {
            self.index.push(entry);
        }
        self.bytes = bytes;
    }

    /// All that was written can be read from now on.
    pub fn flush(&mut self) {
        if let To::File(_, file) = &mut self.to
            && self.failed.is_none()
        {
            self.failed = file.flush().err();
        }
    }

    /// Reads a block that was written before the last [`Out::flush`].
    pub fn read(&self, entry: &BlockEntry, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        match &self.to {
            To::File(_, file) => {
                bytes.resize(entry.bytes as usize, 0);
                file.get_ref().read_exact_at(bytes, entry.offset)
            }
            To::Memory(all) => {
                let from = entry.offset as usize;
                let part = all.get(from..from + entry.bytes as usize);
                bytes.extend_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
            #[cfg(test)]
            To::Other(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Everything was written.
    pub fn finish(mut self) -> Result<Written, PyramidError> {
        self.flush();
        if let To::File(_, file) = &self.to
            && self.failed.is_none()
        {
            self.failed = file.get_ref().sync_data().err();
        }
        if let Some(why) = self.failed.take() {
            return Err(why.into());
        }
        let index = std::mem::take(&mut self.index);
        let (path, bytes) = match std::mem::replace(&mut self.to, To::Memory(Vec::new())) {
            To::File(path, _) => (Some(path), Vec::new()),
            To::Memory(bytes) => (None, bytes),
            #[cfg(test)]
            To::Other(_) => (None, Vec::new()),
        };
        Ok(Written { path, bytes, index })
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if let To::File(path, _) = &self.to {
            let _ = fs::remove_file(path);
        }
    }
}

fn objects(sums: &[Sum]) -> impl Iterator<Item = &[Sum]> {
    sums.chunk_by(|a, b| a.key.cell().object == b.key.cell().object)
}

/// Parts sums in the order of their keys in two, across the direction in which they extend over
/// more cells. Both halves are in the order of their keys. Returns where the second one begins.
fn halve(shift: u32, sums: &mut [Sum]) -> usize {
    let (Some(first), Some(last)) = (sums.first(), sums.last()) else { return 0 };
    let wide = (last.key.cell().page - first.key.cell().page) >> shift;
    let mut columns: Vec<u32> = sums.iter().map(|s| s.key.cell().column).collect();
    let half = columns.len() / 2;
    let (before, median, behind) = columns.select_nth_unstable(half);
    let median = *median;
    let least = before.iter().min().map_or(median, |n| *n);
    let most = behind.iter().max().map_or(median, |n| *n);
    if wide >= u64::from(most - least) {
        return half;
    }
    // Columns differ, so one of the two leaves something on each side.
    let in_front = |s: &Sum| {
        let column = s.key.cell().column;
        column < median || (least == median && column == median)
    };
    let (a, b): (Vec<Sum>, Vec<Sum>) = sums.iter().partition(|s| in_front(s));
    sums[..a.len()].copy_from_slice(&a);
    sums[a.len()..].copy_from_slice(&b);
    a.len()
}

#[cfg(test)]
mod tests {
    use super::super::sums::{SumCell, SumKey};
    use super::*;

    fn sum(page: u64, column: u32) -> Sum {
        let cell = SumCell { object: 0, page, column, node: 0, pages: 4 };
        Sum { key: SumKey::of(&cell), first: page, second: column.into() }
    }

    #[test]
    fn blocks_are_about_as_many_cells_wide_as_long() {
        let mut sums: Vec<Sum> =
            (0..256).flat_map(|page| (0..1024).map(move |column| sum(page * 4, column))).collect();
        let mut out = Out::memory();
        out.tiles(SumKind::Touches, 3, 2, &mut sums);
        assert_eq!(out.index.len(), 256 * 1024 / block::MOST);
        for e in &out.index {
            assert_eq!(((e.end - e.page) / 4, e.last - e.first + 1), (64, 64), "{e:?}");
        }
        let mut bytes = Vec::new();
        let mut seen = 0_u64;
        for e in &out.index {
            out.read(e, &mut bytes).unwrap();
            assert!(block::decode(&bytes, 0, SumKind::Touches, |c, first, second| {
                assert_eq!((c.page, u64::from(c.column)), (first, second));
                seen += 1;
            }));
        }
        assert_eq!(seen, 256 * 1024);
    }

    #[test]
    fn sums_of_one_column_or_one_page_are_halved_too() {
        let mut column: Vec<Sum> = (0..10).map(|page| sum(page, 7)).collect();
        assert_eq!(halve(0, &mut column), 5);
        let mut page: Vec<Sum> = (0..10).map(|column| sum(3, column)).collect();
        assert_eq!(halve(0, &mut page), 5);
        // Most of them in the first column: it becomes a half of its own.
        let mut most: Vec<Sum> = (0..9).map(|_| sum(3, 0)).chain([sum(3, 90)]).collect();
        assert_eq!(halve(0, &mut most), 9);
        let mut same = vec![sum(3, 1); 10];
        assert_eq!(halve(0, &mut same), 5);
    }
}
