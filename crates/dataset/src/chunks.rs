//! Reading a table: its chunks, its rows.

use std::fs::File;
use std::io::BufReader;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec;

use crate::column::Chunk;
use crate::error::Missing;
use crate::file::{Damage, TableReader};
use crate::layout::TABLES;
use crate::members::Bases;
use crate::memory::MemoryDataset;
use crate::schema::{ColumnInfo, RowContradiction, TableRow};
use crate::tables::CheckRow;

/// Most entries in the list of missing parts.
const MOST_MISSING: usize = 1000;

/// What was found missing, in the order in which it was met. All readers of a data set share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lacking(Arc<Mutex<Vec<Missing>>>);

impl Lacking {
    pub fn note(&self, new: Missing) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST_MISSING && !all.contains(&new) {
            all.push(new);
            if all.len() == MOST_MISSING {
                all.push(Missing::Incomplete("more of it is damaged than is listed".into()));
            }
        }
    }

    /// A list of its own, with what this one has until now.
    pub fn copied(&self) -> Self {
        Self(Arc::new(Mutex::new(self.all())))
    }

    pub fn all(&self) -> Vec<Missing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Where chunks come from.
pub(crate) enum Source {
    Nothing,
    /// The number of the next chunk.
    Memory(Arc<MemoryDataset>, usize),
    File(Box<TableReader<BufReader<File>>>),
    Members(Box<Several>),
}

/// The members of a merged data set, each with the chunks that it has of one table.
pub(crate) type MembersChunks = dyn Iterator<Item = (Chunks, Bases)> + Send + Sync;

/// One member after the other.
pub(crate) struct Several {
    columns: Vec<ColumnInfo>,
    /// The members to come. A member's file is opened when its turn comes.
    rest: Box<MembersChunks>,
    current: Option<(Chunks, Bases)>,
    /// How much was read of the members before.
    before: u64,
}

impl Several {
    pub fn new(columns: Vec<ColumnInfo>, rest: Box<MembersChunks>) -> Self {
        Self { columns, rest, current: None, before: 0 }
    }

    fn next(&mut self) -> Option<(u64, Chunk)> {
        loop {
            if let Some((chunks, bases)) = &mut self.current {
                if let Some((at, mut chunk)) = chunks.next_with_place() {
                    bases.add_to(&mut chunk, &self.columns);
                    return Some((at, chunk));
                }
                self.before += chunks.read_so_far();
                self.current = None;
            }
            self.current = Some(self.rest.next()?);
        }
    }
}

/// The chunks of a table, one at a time: see [`Dataset::chunks`](crate::Dataset::chunks).
pub struct Chunks {
    pub(crate) source: Source,
    pub(crate) name: &'static str,
    /// Rows that are still to come, as far as the recording's end says.
    pub(crate) expected: u64,
    pub(crate) lacking: Lacking,
    /// What stands before the names of files.
    pub(crate) prefix: String,
    pub(crate) check: Option<CheckRow>,
    /// Bytes of the chunks in memory that were given.
    pub(crate) given: u64,
    /// Bytes of the file behind which a chunk each is read; none: all chunks are.
    pub(crate) places: Option<vec::IntoIter<u64>>,
}

impl Chunks {
    fn note(&self, damage: Damage) {
        self.lacking.note(of_damage(&self.prefix, self.name, damage));
    }

    /// How much was read, in the unit of [`Dataset::size_of`](crate::Dataset::size_of).
    pub fn read_so_far(&self) -> u64 {
        match &self.source {
            Source::Nothing => 0,
            Source::Memory(..) => self.given,
            Source::File(reader) => reader.offset(),
            Source::Members(all) => all.before + all.current.as_ref().map_or(0, |(c, _)| c.read_so_far()),
        }
    }

    /// The next chunk and the byte of the file at which it begins.
    fn next_with_place(&mut self) -> Option<(u64, Chunk)> {
        let mut next = loop {
            break match &mut self.source {
                Source::Nothing => None,
                Source::Memory(tables, at) => {
                    *at += 1;
                    tables.chunks(self.name).get(*at - 1).map(|c| (0, c.clone()))
                }
                Source::Members(several) => several.next(),
                Source::File(reader) => match next_of(reader, &mut self.places) {
                    Some(Err(damage)) => {
                        self.note(damage);
                        continue;
                    }
                    Some(Ok(found)) => Some(found),
                    None => None,
                },
            };
        };
        match &mut next {
            Some((at, chunk)) => {
                if matches!(self.source, Source::Memory(..)) {
                    self.given += chunk.memory() as u64;
                }
                self.expected = self.expected.saturating_sub(chunk.rows() as u64);
                self.cut(*at, chunk);
            }
            None => self.note_end(),
        }
        next
    }

    /// Leaves out the first wrong row and all behind it: see [`TableRows`].
    fn cut(&self, at: u64, chunk: &mut Chunk) {
        let Some(check) = self.check else { return };
        if let Some((row, wrong)) = (0..chunk.rows()).find_map(|r| check(chunk, r).err().map(|w| (r, w))) {
            self.note(of_row(at, row, wrong));
            *chunk = chunk.slice(0..row);
        }
    }

    /// Notes rows that were written and are not there.
    fn note_end(&mut self) {
        let lacking = std::mem::take(&mut self.expected);
        if lacking > 0 {
            let file = format!("{}{TABLES}/{}.hntable", self.prefix, self.name);
            self.lacking.note(Missing::Rows { file, rows: lacking });
        }
    }
}

/// The next chunk of a file, or the one at the next of these places.
fn next_of(
    reader: &mut TableReader<BufReader<File>>,
    places: &mut Option<vec::IntoIter<u64>>,
) -> Option<Result<(u64, Chunk), Damage>> {
    if let Some(places) = places {
        let place = places.next()?;
        if let Err(e) = reader.skip_to(place) {
            return Some(Err(Damage { offset: place, why: e.to_string() }));
        }
    }
    reader.next_chunk()
}

impl Iterator for Chunks {
    type Item = Chunk;
    fn next(&mut self) -> Option<Chunk> {
        self.next_with_place().map(|(_, chunk)| chunk)
    }
}

pub(crate) fn of_damage(prefix: &str, name: &str, damage: Damage) -> Missing {
    let file = format!("{prefix}{TABLES}/{name}.hntable");
    Missing::Damage { file, offset: damage.offset, why: damage.why }
}

fn of_row(offset: u64, row: usize, wrong: RowContradiction) -> Damage {
    Damage { offset, why: format!("row {row} of the chunk there: {}", wrong.0) }
}

/// The rows of a table: see [`Dataset::rows`](crate::Dataset::rows).
pub struct TableRows<T> {
    pub(crate) chunks: Chunks,
    pub(crate) chunk: Option<(u64, Chunk)>,
    pub(crate) row: usize,
    pub(crate) table: PhantomData<T>,
}

impl<T: TableRow> Iterator for TableRows<T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        loop {
            if let Some((offset, chunk)) = &self.chunk
                && self.row < chunk.rows()
            {
                let row = self.row;
                self.row += 1;
                match T::take(chunk, row) {
                    Ok(value) => return Some(value),
                    Err(wrong) => {
                        self.chunks.note(of_row(*offset, row, wrong));
                        // One wrong row means that the chunk was made wrong: the rest is no better.
                        self.row = chunk.rows();
                    }
                }
                continue;
            }
            self.row = 0;
            self.chunk = Some(self.chunks.next_with_place()?);
        }
    }
}
