//! The files in a data set's folder: what they are called, and how large they may be.

use std::fs::File;
use std::path::{Path, PathBuf};

use homenode_model::Bytes;

use crate::foreign;

/// The file that makes a folder a data set.
pub const META: &str = "dataset.json";
/// The folder of what a running program streams, until the tables are made of it.
pub const STREAMS: &str = "streams";
/// The folder of the tables.
pub const TABLES: &str = "tables";
/// Most bytes of `dataset.json` that are read.
pub(crate) const MAX_META: u64 = 8 << 20;
/// Memory that what it holds may take.
pub(crate) const MAX_HELD: Bytes = Bytes(96 << 20);

/// The file of a table.
pub(crate) fn path_of(folder: &Path, table: &str) -> PathBuf {
    folder.join(TABLES).join(format!("{table}.hntable"))
}

/// A table's file, opened as that of a stranger; nothing where there is none.
pub(crate) fn open_file(folder: &Path, table: &str) -> std::io::Result<Option<File>> {
    let opened = foreign::folder(&folder.join(TABLES)).and_then(|()| foreign::open(&path_of(folder, table)));
    match opened {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}
