//! Recordings of older forms, read as data sets.
//!
//! | form | files | module |
//! |---|---|---|
//! | lab, version 1 | `meta.json`, `accesses.csv`, `objects.csv`, `lab.json` | [`lab_v1`] |
//! | live, version 1 | `meta.json`, `sightings.csv`, `objects.csv`, `live.json` | [`live_v1`] |
//!
//! [`Dataset::open`] reads them into memory; nothing on disk changes. [`upgrade`] writes the result
//! as a new data set. A line that makes no sense is left out and named; so is a file that was cut
//! off. Fixtures of each form are in `fixtures/recordings` and stay there.
//!
//! # When a form changes
//!
//! 1. The writer makes the new form, and a recording of the old one goes to `fixtures/recordings`.
//! 2. A module here reads the old form. Its tests compare sums with those of the old `show`.
//! 3. CHANGELOG.md says what changed.

mod lab_v1;
mod lines;
mod live_v1;
mod sites;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use homenode_model::json::MemoryWeights;
use homenode_salvage::{Damaged, Salvaged};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::DatasetError;
use crate::folder::{Dataset, DatasetWriter, MAX_HELD};
use crate::foreign::{self, clean};
use crate::meta::{DatasetMeta, Ended};
use crate::schema::{RowSink, TableRow};
use crate::tables;

/// Most bytes of a table of an old form. The shortest lines take sixteen times as much memory, so
/// reading takes at most 512 MiB.
const MAX_CSV: u64 = 24 << 20;
/// Most bytes of a JSON file of an old form.
const MAX_JSON: u64 = 16 << 20;
/// Most nodes that are believed.
const MAX_NODES: u64 = 256;
/// Most intervals that are believed.
const MAX_INTERVALS: u64 = 1 << 20;

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

const META: &str = "meta.json";

/// `meta.json` of both forms.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OldMeta {
    format: u64,
    #[serde(default)]
    homenode: String,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    ended: Option<Ended>,
}

/// Reads a recording of an older form into memory.
pub(crate) fn open(path: &Path, form: OlderForm) -> Result<Dataset, DatasetError> {
    let old = Old { path };
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
    Ok(Dataset::of_damaged(meta, tables, tells_end))
}

/// What a file says that describes the recording. A damaged one costs the fields that are damaged.
struct Described<T> {
    what: T,
    /// What is damaged, in words; `None`: the file is whole.
    said: Option<String>,
    /// Fields that are damaged, and that a reader has to assume.
    untold: Vec<&'static str>,
}

impl<T> Described<T> {
    /// Whether the file tells the field.
    fn tells(&self, field: &str) -> bool {
        !self.untold.contains(&field)
    }
}

/// A recording of an older form.
struct Old<'a> {
    path: &'a Path,
}

impl Old<'_> {
    fn text(&self, name: &str, most: u64) -> Result<String, DatasetError> {
        let path = self.path.join(name);
        foreign::read(&path, most).map_err(DatasetError::io("read", path))
    }

    fn wrong(&self, why: String) -> DatasetError {
        DatasetError::NotADataset { path: self.path.into(), why }
    }

    /// Reads a JSON file. `assumed`: what holds where the file is damaged. `needed`: fields that a
    /// reader has to know. `skipped`: fields that are not read from a damaged file.
    fn described<T>(&self, name: &str, assumed: T, needed: &[&'static str], skipped: &[&str]) -> Described<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let text = foreign::read(&self.path.join(name), MAX_JSON).map_err(|e| e.to_string());
        let whole = text.as_ref().map_err(Clone::clone).and_then(|text| {
            MemoryWeights::TYPED.check(text, MAX_HELD).map_err(|e| e.to_string())?;
            serde_json::from_str(text).map_err(|e| format!("line {}: {e}", e.line()))
        });
        match whole {
            Ok(what) => Described { what, said: None, untold: Vec::new() },
            Err(why) => {
                let text = text.as_deref().ok();
                let salvaged = Damaged { file: name, text, why: &why }.read(assumed, needed, skipped);
                let said = Some(clean(&salvaged.words()));
                let Salvaged { value: what, untold, .. } = salvaged;
                Described { what, said, untold }
            }
        }
    }

    /// The beginning of the new description.
    fn meta(meta: OldMeta, kind: crate::RecordingKind, basis: crate::Basis) -> DatasetMeta {
        DatasetMeta {
            homenode: meta.homenode,
            environment: meta.environment,
            ended: meta.ended,
            ..DatasetMeta::new(kind, basis, meta.command)
        }
    }
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
        return Err(not(if from.join(crate::folder::META).exists() {
            "it is a data set of today's form already"
        } else {
            "it is a recording of no older form"
        }));
    };
    let old = open(from, form)?;
    let mut folder = fs::DirBuilder::new();
    folder.mode(0o700).create(to).map_err(DatasetError::io("make the folder", to))?;
    let mut writer = DatasetWriter::create(to, DatasetMeta { ended: None, ..old.meta().clone() })?;
    copy_all(&old, &mut writer)?;
    match &old.meta().ended {
        Some(ended) => writer.finish(ended.clone()),
        // Without an end it stays what it was: a recording that was cut off.
        None => writer.flush().map(|()| to.into()),
    }
}

fn copy<T: TableRow>(from: &Dataset, to: &mut DatasetWriter) -> Result<(), DatasetError> {
    from.chunks::<T>().try_for_each(|chunk| to.push_chunk::<T>(&chunk))
}

macro_rules! copy_all {
    ($($table:ident)*) => {
        /// Copies each table.
        fn copy_all(from: &Dataset, to: &mut DatasetWriter) -> Result<(), DatasetError> {
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
