//! Draws windows from a pyramid.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use homenode_dataset::foreign;
use homenode_model::ObjectId;

use super::block::{self, BlockEntry, Numbers};
use super::format::{FOOT, Finished, Head, MAGIC};
use super::sums::COLUMN_BITS;
use super::{PyramidError, Resolution, SumKind};
use crate::tiles::grid::Grid;

/// Most bytes of an index.
const MOST_INDEX: u64 = 256 << 20;
/// Most bytes of a block: as many as its numbers may have.
const MOST_BLOCK: u32 = (block::MOST * 64) as u32;
/// Most resolutions.
const MOST_RESOLUTIONS: usize = 1 << 10;

/// Where the blocks are.
#[derive(Debug)]
enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

/// A pyramid that can be read.
#[derive(Debug)]
pub struct Pyramid {
    bytes: Bytes,
    places: BTreeMap<ObjectId, u32>,
    resolutions: Vec<Resolution>,
    /// In the order of kind, resolution, object, and place in the file.
    entries: Vec<BlockEntry>,
}

impl Pyramid {
    /// Opens a file that was made of the tables with this stamp.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or is of other tables.
    pub fn open(path: &Path, stamp: &str) -> Result<Self, PyramidError> {
        let file = foreign::open(path)?;
        let size = file.metadata()?.len();
        let wrong = PyramidError::Damaged;
        let end = size.checked_sub(FOOT as u64).ok_or(wrong("it is too short"))?;
        let mut foot = [0; FOOT];
        file.read_exact_at(&mut foot, end)?;
        let number = |at: usize| {
            let bytes = foot[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let (at, bytes) = (number(0), number(8));
        let sum = u32::from_le_bytes(foot[16..20].try_into().unwrap_or_default());
        if foot[20..] != *MAGIC {
            return Err(wrong("it is cut off, or of another version"));
        }
        if bytes > MOST_INDEX || at.checked_add(bytes) != Some(end) {
            return Err(wrong("its index has an impossible length"));
        }
        let mut index = vec![0; bytes as usize];
        file.read_exact_at(&mut index, at)?;
        if crc32fast::hash(&index) != sum {
            return Err(wrong("the checksum of its index is wrong"));
        }
        let split = index.iter().position(|b| *b == b'\n').ok_or(wrong("it has no head"))?;
        let head: Head =
            serde_json::from_slice(&index[..split]).map_err(|_| wrong("its head makes no sense"))?;
        if head.stamp != stamp {
            return Err(wrong("it is of other tables"));
        }
        let mut numbers = Numbers(&index[split + 1..]);
        let (mut entries, mut offset) = (Vec::new(), 0);
        for _ in 0..head.blocks {
            let entry = BlockEntry::decode(&mut numbers, offset).ok_or(wrong("its index makes no sense"))?;
            offset = entry.offset;
            entries.push(entry);
        }
        Self::new(&head, entries, Bytes::File(file))
    }

    /// The pyramid that was just made.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn of(finished: Finished) -> Result<Self, PyramidError> {
        let bytes = match &finished.path {
            Some(path) => Bytes::File(foreign::open(path)?),
            None => Bytes::Memory(finished.bytes),
        };
        Self::new(&finished.head, finished.entries, bytes)
    }

    fn new(head: &Head, mut entries: Vec<BlockEntry>, bytes: Bytes) -> Result<Self, PyramidError> {
        let sane = |[page, time]: &[u32; 2]| *page < 64 && *time <= COLUMN_BITS;
        if head.resolutions.len() > MOST_RESOLUTIONS || !head.resolutions.iter().all(sane) {
            return Err(PyramidError::Damaged("its resolutions make no sense"));
        }
        let resolutions = head.resolutions.iter();
        let resolutions = resolutions
            .map(|[page_shift, time_shift]| Resolution { page_shift: *page_shift, time_shift: *time_shift });
        let places = head.objects.iter().map(|o| ObjectId(*o)).zip(0..).collect();
        entries.sort_unstable_by_key(|e| (e.kind, e.resolution, e.object, e.offset));
        Ok(Self { bytes, places, resolutions: resolutions.collect(), entries })
    }

    /// Whether it has sums of the object.
    pub fn has(&self, object: ObjectId) -> bool {
        self.places.contains_key(&object)
    }

    /// The coarsest resolution that tells the grid's cells apart.
    fn resolution(&self, grid: &Grid) -> Option<(u32, Resolution)> {
        let fine = |r: &Resolution| {
            let pages = r.page_shift <= grid.bands.shift && grid.bands.first.trailing_zeros() >= r.page_shift;
            let first = grid.columns.first;
            pages && r.time_shift <= grid.columns.shift && first.trailing_zeros() >= r.time_shift
        };
        let all = (0_u32..).zip(self.resolutions.iter().copied());
        all.filter(|(_, r)| fine(r)).max_by_key(|(n, r)| (r.page_shift + r.time_shift, *n))
    }

    /// Adds everything of an object that lies in the grid.
    ///
    /// # Errors
    /// A block cannot be read or is damaged. The grid is then worth nothing.
    pub fn fill(&self, grid: &mut Grid, object: ObjectId) -> Result<(), PyramidError> {
        let Some(place) = self.places.get(&object).copied() else { return Ok(()) };
        let (number, resolution) =
            self.resolution(grid).ok_or(PyramidError::Damaged("it has no sums that are fine enough"))?;
        let shift = resolution.time_shift;
        let pages = (grid.bands.first, grid.bands.first.saturating_add(grid.bands.pages));
        let (from, to) =
            (grid.columns.first >> shift, (grid.columns.first + grid.columns.intervals - 1) >> shift);
        let mut bytes = Vec::new();
        for kind in SumKind::ALL {
            // Homes before the window say where pages live in it.
            let from = if kind == SumKind::Homes { 0 } else { from };
            let wanted = (kind, number, place);
            let group = self.entries.partition_point(|e| (e.kind, e.resolution, e.object) < wanted);
            let group = self.entries[group..].iter();
            for entry in group.take_while(|e| (e.kind, e.resolution, e.object) == wanted) {
                let columns = entry.first as usize <= to && entry.last as usize >= from;
                if !columns || entry.page >= pages.1 || entry.end <= pages.0 {
                    continue;
                }
                self.read(entry, &mut bytes)?;
                let whole = block::decode(&bytes, place, kind, |cell, first, second| {
                    let at = (cell.column as usize) << shift;
                    let run = (cell.page, cell.pages);
                    let node = cell.node as usize;
                    match kind {
                        SumKind::Touches => grid.touched(run, at, node, first, second),
                        SumKind::Homes => grid.came(run, at, node, first, second),
                        SumKind::Moves => grid.moved(run, at, first, second),
                    }
                });
                if !whole {
                    return Err(PyramidError::Damaged("a block makes no sense"));
                }
            }
        }
        Ok(())
    }

    fn read(&self, entry: &BlockEntry, to: &mut Vec<u8>) -> Result<(), PyramidError> {
        if entry.bytes > MOST_BLOCK {
            return Err(PyramidError::Damaged("a block has an impossible length"));
        }
        to.clear();
        match &self.bytes {
            Bytes::File(file) => {
                to.resize(entry.bytes as usize, 0);
                file.read_exact_at(to, entry.offset)?;
            }
            Bytes::Memory(all) => {
                let from = all.get(entry.offset as usize..).unwrap_or_default();
                from.take(entry.bytes.into()).read_to_end(to)?;
            }
        }
        match crc32fast::hash(to) == entry.sum {
            true => Ok(()),
            false => Err(PyramidError::Damaged("the checksum of a block is wrong")),
        }
    }
}
