//! Recordings of older forms, read as data sets.
//!
//! | form | files | module |
//! |---|---|---|
//! | lab, version 1 | `meta.json`, `accesses.csv`, `objects.csv`, `lab.json` | [`lab_v1`] |
//! | live, version 1 | `meta.json`, `sightings.csv`, `objects.csv`, `live.json` | [`live_v1`] |
//!
//! [`Dataset::open`](crate::Dataset::open) reads them into memory; nothing on disk changes.
//! [`upgrade`] writes the result as a new data set. A line that makes no sense is left out and
//! named. A file that was cut off is named, too. Fixtures of each form are in `fixtures/recordings`
//! and stay there.
//!
//! # When a form changes
//!
//! 1. The writer makes the new form, and a recording of the old one goes to `fixtures/recordings`.
//! 2. A module here reads the old form. Its tests compare sums with those of the old `show`.
//! 3. CHANGELOG.md says what changed.

mod lab_v1;
mod lines;
mod live_v1;
mod older_files;
mod sites;

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use self::older_files::{Described, META, OldMeta, OlderFiles};
use crate::error::DatasetError;
use crate::layout;
use crate::memory::MemoryDataset;
use crate::meta::DatasetMeta;
use crate::schema::{RowSink, TableRow};
use crate::tables;
use crate::writer::DatasetWriter;

/// An older form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OlderForm {
    /// Counts of the lab's monitor.
    LabV1,
    /// Who was seen while a program ran here.
    LiveV1,
}

impl OlderForm {
    /// The older form that the folder has, as far as its files' names tell.
    pub fn at(path: &Path) -> Option<Self> {
        let has = |name: &str| fs::symlink_metadata(path.join(name)).is_ok();
        if !has(META) {
            return None;
        }
        if has(lab_v1::ACCESSES) {
            return Some(Self::LabV1);
        }
        (has(live_v1::ABOUT) || has(live_v1::SIGHTINGS)).then_some(Self::LiveV1)
    }
}

/// A recording of an older form, read into memory.
pub(crate) struct OlderRecording {
    /// What it says of itself, with every text made harmless for a terminal.
    pub meta: DatasetMeta,
    pub tables: MemoryDataset,
    /// Whether its description says that the recording has an end, or that it has none.
    pub tells_end: bool,
}

/// Reads a recording of an older form into memory.
pub(crate) fn read(path: &Path, form: OlderForm) -> Result<OlderRecording, DatasetError> {
    let old = OlderFiles { path };
    let assumed = OldMeta { format: 1, homenode: "unknown".into(), ..OldMeta::default() };
    let described = old.described(META, assumed, &["homenode", "command", "ended"], &["format"]);
    let tells_end = described.tells("ended");
    let Described { what: meta, said, .. } = described;
    if meta.format != 1 {
        return Err(old.wrong(format!("{META}: format {}, but this form had 1 alone", meta.format)));
    }
    let (mut meta, tables) = match form {
        OlderForm::LabV1 => lab_v1::read(&old, meta)?,
        OlderForm::LiveV1 => live_v1::read(&old, meta)?,
    };
    if let Some(said) = said {
        meta.incomplete.insert(0, said);
    }
    Ok(OlderRecording { meta: meta.cleaned(), tables, tells_end })
}

/// Reads a recording of an older form and writes it to `to` as a data set of today. What the old
/// recording lacks, the new one lacks and says.
///
/// # Errors
/// There is no such recording, it is of today's form, or `to` exists or cannot be written.
pub fn upgrade(from: &Path, to: &Path) -> Result<PathBuf, DatasetError> {
    let not = |why: &str| DatasetError::NotADataset { path: from.into(), why: why.into() };
    let Some(form) = OlderForm::at(from) else {
        fs::metadata(from).map_err(DatasetError::io("open", from))?;
        return Err(not(if from.join(layout::META).exists() {
            "it is a data set of today's form already"
        } else {
            "it is a recording of no older form"
        }));
    };
    let old = read(from, form)?;
    let mut folder = fs::DirBuilder::new();
    folder.mode(0o700).create(to).map_err(DatasetError::io("make the folder", to))?;
    let mut writer = DatasetWriter::create(to, DatasetMeta { ended: None, ..old.meta.clone() })?;
    copy_all(&old.tables, &mut writer)?;
    match old.meta.ended {
        Some(ended) => writer.finish(ended),
        // Without an end it stays what it was: a recording that was cut off.
        None => writer.flush().map(|()| to.into()),
    }
}

fn copy<T: TableRow>(from: &MemoryDataset, to: &mut DatasetWriter) -> Result<(), DatasetError> {
    from.chunks(T::NAME).iter().try_for_each(|chunk| to.push_chunk::<T>(chunk))
}

macro_rules! copy_all {
    ($($table:ident)*) => {
        /// Copies each table.
        fn copy_all(from: &MemoryDataset, to: &mut DatasetWriter) -> Result<(), DatasetError> {
            $( copy::<tables::$table>(from, to)?; )*
            Ok(())
        }

        #[cfg(test)]
        const COPIED: &[&str] = &[$( <tables::$table as TableRow>::NAME ),*];
    };
}
copy_all! {
    Node Link ThreadStay Object FirstTouch Region Interval RegionTime Iteration Access Residency
    Migration Sample OwnCost
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_table_is_copied() {
        let all: Vec<&str> = crate::tables::ALL.iter().map(|t| t.name).collect();
        assert_eq!(super::COPIED, all);
    }
}
