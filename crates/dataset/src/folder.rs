//! A data set in a folder: `dataset.json` and `tables/NAME.hntable`.

use std::fs;
use std::io::{BufReader, ErrorKind};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homenode_model::Bytes;
use homenode_model::json::MemoryWeights;

pub use crate::chunks::{Chunks, TableRows};
use crate::chunks::{Lacking, MembersChunks, Several, Source, of_damage};
use crate::error::{DatasetError, Missing};
use crate::file::{Damage, TableReader};
use crate::foreign;
use crate::layout::{MAX_HELD, MAX_META, META, STREAMS, TABLES, open_file, path_of};
use crate::members::{self, Bases, MEMBERS};
use crate::memory::MemoryDataset;
use crate::meta::{DatasetMeta, VERSION};
use crate::salvage;
use crate::schema::{ColumnInfo, TableRow};
use crate::tables::{ALL, Access, TableInfo};
use crate::upgrade::{self, OlderForm, OlderRecording};
use crate::versions;

/// Bytes that may still be written to the file system of a folder, by an ordinary user.
///
/// # Errors
/// The system does not say.
pub fn room(folder: &Path) -> std::io::Result<Bytes> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(Bytes(disk.f_bavail.saturating_mul(disk.f_frsize)))
}

/// Files that a data set may have besides: of one kind of recording, or what the viewer keeps.
const BESIDE: [&str; 6] =
    ["lab.json", "dataset.json.new", "view.tiles", "view.tiles.new", "view.pyramid", "view.pyramid.new"];

/// Removes a data set of today's form, and nothing that is not part of one.
///
/// # Errors
/// It is not one, other things are in its folder, or the system refuses.
pub fn remove(path: &Path) -> Result<(), DatasetError> {
    if !Dataset::has_meta(path) {
        return Err(DatasetError::NotADataset { path: path.into(), why: format!("it has no {META}") });
    }
    let tables = path.join(TABLES);
    let files = ALL.iter().map(|t| path_of(path, t.name));
    // The description last: as long as anything is left, the folder is known as a data set.
    let beside = BESIDE.iter().map(|name| path.join(name));
    let gone = |removed: std::io::Result<()>| match removed {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    for file in files.chain(beside) {
        gone(fs::remove_file(&file)).map_err(DatasetError::io("remove", &file))?;
    }
    gone(fs::remove_dir(&tables)).map_err(DatasetError::io("remove the folder", &tables))?;
    // Streams of a recording that was cut off.
    let streams = path.join(STREAMS);
    for entry in fs::read_dir(&streams).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("live.") {
            let file = entry.path();
            gone(fs::remove_file(&file)).map_err(DatasetError::io("remove", &file))?;
        }
    }
    gone(fs::remove_dir(&streams)).map_err(DatasetError::io("remove the folder", &streams))?;
    let others = fs::read_dir(path).map_err(DatasetError::io("read the folder", path))?;
    if let Some(other) = others.flatten().find(|e| e.file_name() != META) {
        let why =
            format!("it has other things in it: {}", foreign::clean(&other.file_name().to_string_lossy()));
        return Err(DatasetError::NotADataset { path: path.into(), why });
    }
    let meta = path.join(META);
    fs::remove_file(&meta).map_err(DatasetError::io("remove", &meta))?;
    fs::remove_dir(path).map_err(DatasetError::io("remove the folder", path))
}

/// Where the tables are.
#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    Memory(Arc<MemoryDataset>),
    /// The folder, and the members in it.
    Members(PathBuf, Vec<Member>),
}

/// A member of a merged data set.
#[derive(Clone, Debug)]
struct Member {
    set: Dataset,
    bases: Bases,
    /// Its folder, relative to the merged data set: `members/0003`.
    name: String,
}

/// A data set that can be read. Reading damaged tables goes on behind the damage;
/// [`Dataset::missing`] says what was met.
#[derive(Clone, Debug)]
pub struct Dataset {
    meta: DatasetMeta,
    place: Place,
    lacking: Lacking,
    /// Chunks of accesses that are read, spread over the table; none: all of them are.
    glance: Option<u32>,
}

impl Dataset {
    /// Whether the folder holds a data set, of today's form or an older one.
    pub fn is_at(path: &Path) -> bool {
        Self::has_meta(path) || OlderForm::at(path).is_some()
    }

    fn has_meta(path: &Path) -> bool {
        fs::symlink_metadata(path.join(META)).is_ok()
    }

    /// Opens a data set. No table is read, unless the data set is of an older form: then all of it
    /// is read into memory ([`mod@crate::upgrade`]).
    ///
    /// # Errors
    /// It is not one, or of a version that this homenode does not know.
    pub fn open(path: &Path) -> Result<Self, DatasetError> {
        let set = Self::open_alone(path)?;
        if set.meta.members.is_empty() { Ok(set) } else { set.with_members(path) }
    }

    fn open_alone(path: &Path) -> Result<Self, DatasetError> {
        let not = |why: String| DatasetError::NotADataset { path: path.into(), why };
        fs::metadata(path).map_err(DatasetError::io("open", path))?;
        if !Self::has_meta(path) {
            return match OlderForm::at(path) {
                Some(form) => upgrade::read(path, form).map(Self::of_older),
                None => match fs::symlink_metadata(path.join(META)) {
                    // The folder is at fault, not the file.
                    Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                        Err(DatasetError::io("look into the folder", path)(e))
                    }
                    _ => Err(not(format!("it has no {META}"))),
                },
            };
        }
        let file = path.join(META);
        let text = foreign::read(&file, MAX_META);
        let meta = match &text {
            Ok(text) => described(text),
            Err(e) => Err(Undescribed::Damaged(e.to_string())),
        };
        match meta {
            Ok(meta) => Ok(Self::new(meta.cleaned(), Place::Folder(path.into()))),
            // The tables may be whole.
            Err(Undescribed::Damaged(why)) if foreign::folder(&path.join(TABLES)).is_ok() => {
                let (mut meta, said, tells_end) = salvage::meta(text.as_deref().ok(), &why);
                meta.incomplete.insert(0, said);
                Ok(Self::described(meta.cleaned(), Place::Folder(path.into()), tells_end))
            }
            Err(Undescribed::Damaged(_)) if text.is_err() => {
                text.map_err(DatasetError::io("read", &file)).and(Err(not(String::new())))
            }
            Err(Undescribed::Damaged(why) | Undescribed::Refused(why)) => Err(not(why)),
        }
    }

    /// The members of a merged data set; those that cannot be read are noted.
    fn with_members(mut self, path: &Path) -> Result<Self, DatasetError> {
        let bases = std::mem::take(&mut self.meta.members);
        if bases.len() > members::MOST {
            let why = format!("{} members, but at most {} are read", bases.len(), members::MOST);
            return Err(DatasetError::NotADataset { path: path.into(), why });
        }
        let mut all = Vec::new();
        for (i, bases) in bases.iter().enumerate() {
            let name = format!("{MEMBERS}/{}", members::folder(i));
            let folder = path.join(&name);
            let opened = foreign::folder(&path.join(MEMBERS))
                .and_then(|()| foreign::folder(&folder))
                .map_err(DatasetError::io("open", &folder))
                .and_then(|()| Self::open_alone(&folder));
            match opened {
                Ok(set) if set.meta.members.is_empty() => {
                    for m in set.missing() {
                        self.lacking.note(Missing::Incomplete(format!("{name}: {m}")));
                    }
                    all.push(Member { set, bases: *bases, name });
                }
                Ok(_) => self.lacking.note(Missing::Incomplete(format!("{name} is merged itself"))),
                Err(e) => self.lacking.note(Missing::Incomplete(foreign::clean(&e.to_string()))),
            }
        }
        self.meta.members = bases;
        self.place = Place::Members(path.into(), all);
        Ok(self)
    }

    /// A data set of tables in memory.
    pub fn of_memory(meta: DatasetMeta, tables: MemoryDataset) -> Self {
        Self::new(meta.cleaned(), Place::Memory(Arc::new(tables)))
    }

    fn of_older(old: OlderRecording) -> Self {
        Self::described(old.meta, Place::Memory(Arc::new(old.tables)), old.tells_end)
    }

    fn new(meta: DatasetMeta, place: Place) -> Self {
        Self::described(meta, place, true)
    }

    fn described(meta: DatasetMeta, place: Place, tells_end: bool) -> Self {
        let lacking = Lacking::default();
        if meta.ended.is_none() && tells_end {
            lacking.note(Missing::CutOff);
        }
        meta.incomplete.iter().for_each(|why| lacking.note(Missing::Incomplete(why.clone())));
        Self { meta, place, lacking, glance: None }
    }

    /// What it says of itself.
    pub const fn meta(&self) -> &DatasetMeta {
        &self.meta
    }

    /// Its folder; none of a data set in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(path) | Place::Members(path, _) => Some(path),
            Place::Memory(_) => None,
        }
    }

    /// The members of a merged data set, each with the numbers that it has there; of any other the
    /// data set itself.
    pub fn members(&self) -> Vec<Self> {
        let Place::Members(path, all) = &self.place else { return vec![self.clone()] };
        let alone = |m: &Member| Self::new(m.set.meta.clone(), Place::Members(path.clone(), vec![m.clone()]));
        all.iter().map(alone).collect()
    }

    /// The same data set for a first look: of its accesses, only this number of chunks is read.
    /// They are spread evenly over the table. Nothing where the data set is not one folder.
    #[must_use]
    pub fn glance(&self, chunks: u32) -> Option<Self> {
        let folder = matches!(self.place, Place::Folder(_));
        let glance = || Self { lacking: self.lacking.copied(), glance: Some(chunks), ..self.clone() };
        folder.then(glance)
    }

    /// What is missing, as far as tables were read until now.
    pub fn missing(&self) -> Vec<Missing> {
        self.lacking.all()
    }

    /// How much there is to read of a table: bytes of its file; of a table in memory its bytes
    /// there.
    pub fn size_of(&self, table: &str) -> u64 {
        match &self.place {
            Place::Memory(tables) => tables.chunks(table).iter().map(|c| c.memory() as u64).sum(),
            Place::Folder(folder) => fs::symlink_metadata(path_of(folder, table)).map_or(0, |m| m.len()),
            Place::Members(_, all) => {
                all.iter().filter(|m| m.bases.has(table)).map(|m| m.set.size_of(table)).sum()
            }
        }
    }

    fn open_chunks(
        &self,
        name: &'static str,
        columns: &[ColumnInfo],
        lacking: Lacking,
        prefix: String,
    ) -> Chunks {
        let source = match &self.place {
            Place::Memory(tables) => Source::Memory(tables.clone(), 0),
            Place::Folder(folder) => file_of(folder, name, columns).unwrap_or_else(|damage| {
                lacking.note(of_damage(&prefix, name, damage));
                Source::Nothing
            }),
            Place::Members(_, all) => Source::Members(Box::new(Several::new(
                columns.to_vec(),
                Self::chunks_of_members(all.clone(), name, columns.to_vec(), lacking.clone()),
            ))),
        };
        let places = self.glance.filter(|_| name == Access::NAME).map(|n| spread(self.size_of(name), n));
        let expected = match self.place {
            Place::Folder(_) | Place::Memory(_) if places.is_none() => {
                self.meta.rows.get(name).copied().unwrap_or(0)
            }
            _ => 0,
        };
        let places = places.map(Vec::into_iter);
        Chunks { source, name, expected, lacking, prefix, check: None, given: 0, places }
    }

    /// The chunks of the table `name` of each member that counts. A member's file is opened when
    /// the iterator reaches it.
    fn chunks_of_members(
        members: Vec<Member>,
        name: &'static str,
        columns: Vec<ColumnInfo>,
        lacking: Lacking,
    ) -> Box<MembersChunks> {
        let counting = members.into_iter().filter(move |m| m.bases.has(name));
        Box::new(counting.map(move |m| {
            let prefix = format!("{}/", m.name);
            (m.set.open_chunks(name, &columns, lacking.clone(), prefix), m.bases)
        }))
    }

    /// The chunks of the table `name` with these columns, one at a time. Damaged ones are left out
    /// and noted.
    pub fn chunks_of(&self, name: &'static str, columns: &[ColumnInfo]) -> Chunks {
        self.open_chunks(name, columns, self.lacking.clone(), String::new())
    }

    /// The chunks of a table.
    pub fn chunks<T: TableRow>(&self) -> Chunks {
        self.chunks_of(T::NAME, &T::columns())
    }

    /// The chunks of a table with the very rows that [`Dataset::rows`] gives: rows that make no
    /// sense are left out and noted.
    pub fn checked_chunks(&self, table: &TableInfo) -> Chunks {
        Chunks { check: Some(table.check), ..self.chunks_of(table.name, &(table.columns)()) }
    }

    /// The rows of a table, in the order in which they were written. A row that makes no sense is
    /// left out and noted.
    pub fn rows<T: TableRow>(&self) -> TableRows<T> {
        TableRows { chunks: self.chunks::<T>(), chunk: None, row: 0, table: PhantomData }
    }
}

/// `n` places among this number of bytes, one in each of `n` equal parts. Where in its part a place
/// lies changes from part to part, so that places do not keep step with what repeats in a table.
fn spread(bytes: u64, n: u32) -> Vec<u64> {
    /// The golden ratio's fraction, times 2^32: its multiples fall evenly.
    const STEP: u32 = 0x9e37_79b9;
    let part = |i: u32| {
        let within = u128::from(i.wrapping_mul(STEP));
        let at = (u128::from(i) << 32 | within) * u128::from(bytes) / u128::from(n.max(1));
        (at >> 32) as u64
    };
    (0..n).map(part).collect()
}

fn file_of(folder: &Path, name: &str, columns: &[ColumnInfo]) -> Result<Source, Damage> {
    match open_file(folder, name) {
        Err(e) => Err(Damage { offset: 0, why: e.to_string() }),
        Ok(None) => Ok(Source::Nothing),
        Ok(Some(file)) => {
            let reader = TableReader::new(BufReader::with_capacity(1 << 18, file), name, columns)?;
            Ok(Source::File(Box::new(reader)))
        }
    }
}

/// What `dataset.json` of this text says.
fn described(text: &str) -> Result<DatasetMeta, Undescribed> {
    let wrong = |e: serde_json::Error| {
        Undescribed::Damaged(format!("{META}, line {}: {}", e.line(), foreign::clean(&e.to_string())))
    };
    let heavy = MemoryWeights::TYPED.check(text, MAX_HELD);
    heavy.map_err(|e| Undescribed::Damaged(format!("{META}: {e}")))?;
    let version: Version = serde_json::from_str(text).map_err(wrong)?;
    match version.format {
        VERSION => serde_json::from_str(text).map_err(wrong),
        old if (1..VERSION).contains(&old) => {
            let value = serde_json::from_str(text).map_err(wrong)?;
            serde_json::from_value(versions::meta(value, old)).map_err(wrong)
        }
        other => Err(Undescribed::Refused(format!("format {other}, but this homenode knows 1 to {VERSION}"))),
    }
}

/// Why `dataset.json` does not say what the recording is.
enum Undescribed {
    /// It cannot be read, or not as what homenode writes.
    Damaged(String),
    /// It is of another version.
    Refused(String),
}

#[derive(serde::Deserialize)]
struct Version {
    format: u32,
}
