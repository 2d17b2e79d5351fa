//! Writes a data set into a folder.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::column::{Chunk, ColumnKind};
use crate::error::DatasetError;
use crate::file::{Appender, ENOUGH, ROWS};
use crate::layout::{MAX_META, META, TABLES, path_of};
use crate::meta::{DatasetMeta, Ended};
use crate::schema::{RowSink, TableRow};

/// A table's file, open for appending.
struct Open {
    path: PathBuf,
    file: File,
    to: Appender,
    chunk: Chunk,
    /// Whether rows differ in length.
    uneven: bool,
    /// Rows that were written.
    rows: u64,
}

impl Open {
    fn append(&mut self, chunk: &Chunk) -> Result<(), DatasetError> {
        self.to.append(&mut self.file, chunk).map_err(DatasetError::io("write", &self.path))?;
        self.rows += chunk.rows() as u64;
        Ok(())
    }

    /// Writes the rows that wait.
    fn flush(&mut self) -> Result<(), DatasetError> {
        let empty = self.chunk.emptied();
        let chunk = std::mem::replace(&mut self.chunk, empty);
        self.append(&chunk)
    }
}

/// Writes a data set. Rows reach the disk in chunks, and with [`DatasetWriter::flush`].
pub struct DatasetWriter {
    path: PathBuf,
    meta: DatasetMeta,
    open: BTreeMap<&'static str, Open>,
}

/// Writes `dataset.json` in the folder, so that a reader never sees half of it.
pub(crate) fn save_meta(folder: &Path, meta: &DatasetMeta) -> Result<(), DatasetError> {
    let (path, new) = (folder.join(META), folder.join("dataset.json.new"));
    let mut text =
        serde_json::to_string_pretty(meta).map_err(|e| DatasetError::io("write", &new)(e.into()))?;
    text.push('\n');
    if text.len() as u64 > MAX_META {
        let why = format!("it has {} bytes, and a reader takes {MAX_META}", text.len());
        return Err(DatasetError::io("write", &path)(std::io::Error::other(why)));
    }
    let mut file = OpenOptions::new();
    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&new);
    let written = file.as_mut().map_or(Ok(()), |f| f.write_all(text.as_bytes()));
    file.map_err(DatasetError::io("make", &new))?;
    written.map_err(DatasetError::io("write", &new))?;
    fs::rename(&new, &path).map_err(DatasetError::io("rename to", &path))
}

impl DatasetWriter {
    /// Makes a new data set at `path`. A folder that is there already is used; a data set in it is
    /// refused.
    ///
    /// # Errors
    /// What the system said.
    pub fn create(path: &Path, meta: DatasetMeta) -> Result<Self, DatasetError> {
        let mut folder = fs::DirBuilder::new();
        folder.mode(0o700).recursive(true);
        let tables = path.join(TABLES);
        folder.create(path).map_err(DatasetError::io("make the folder", path))?;
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&tables)
            .map_err(DatasetError::io("make the folder", &tables))?;
        let writer = Self { path: path.into(), meta, open: BTreeMap::new() };
        save_meta(&writer.path, &writer.meta)?;
        Ok(writer)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself; [`DatasetWriter::finish`] writes it again.
    pub const fn meta(&mut self) -> &mut DatasetMeta {
        &mut self.meta
    }

    fn table<T: TableRow>(&mut self) -> Result<&mut Open, DatasetError> {
        // The entry cannot be made by `or_insert_with`: opening may fail.
        if !self.open.contains_key(T::NAME) {
            let path = path_of(&self.path, T::NAME);
            let mut file = OpenOptions::new();
            let file = file.append(true).create_new(true).mode(0o600).open(&path);
            let mut file = file.map_err(DatasetError::io("make", &path))?;
            let columns = T::columns();
            let to =
                Appender::begin(&mut file, T::NAME, &columns).map_err(DatasetError::io("write", &path))?;
            let uneven = columns
                .iter()
                .any(|c| matches!(c.kind, ColumnKind::Text | ColumnKind::Ints | ColumnKind::Texts));
            self.open.insert(T::NAME, Open { path, file, to, chunk: T::chunk(), uneven, rows: 0 });
        }
        self.open
            .get_mut(T::NAME)
            .ok_or_else(|| DatasetError::io("open", T::NAME)(std::io::ErrorKind::NotFound.into()))
    }

    /// Bytes of the tables on disk.
    pub fn written(&self) -> u64 {
        self.open.values().filter_map(|o| o.file.metadata().ok()).map(|m| m.len()).sum()
    }

    /// Writes all rows that wait: a reader finds them, whatever becomes of this process.
    ///
    /// # Errors
    /// What the system said.
    pub fn flush(&mut self) -> Result<(), DatasetError> {
        self.open.values_mut().try_for_each(Open::flush)
    }

    /// Writes what waits, and how the program ended.
    ///
    /// # Errors
    /// What the system said.
    pub fn finish(mut self, ended: Ended) -> Result<PathBuf, DatasetError> {
        self.flush()?;
        self.meta.rows = self.open.iter().map(|(name, o)| ((*name).to_owned(), o.rows)).collect();
        self.meta.ended = Some(ended);
        save_meta(&self.path, &self.meta)?;
        Ok(self.path)
    }
}

impl RowSink for DatasetWriter {
    fn push<T: TableRow>(&mut self, row: &T) -> Result<(), DatasetError> {
        let open = self.table::<T>()?;
        row.put(&mut open.chunk);
        if open.chunk.rows() >= ROWS || (open.uneven && open.chunk.memory() >= ENOUGH) {
            open.flush()?;
        }
        Ok(())
    }

    fn push_chunk<T: TableRow>(&mut self, chunk: &Chunk) -> Result<(), DatasetError> {
        let open = self.table::<T>()?;
        open.flush()?;
        open.append(chunk)
    }
}
