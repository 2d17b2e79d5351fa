//! The files of a recording of an older form: how they are read, and `meta.json`, which each form
//! has.

use std::collections::BTreeMap;
use std::path::Path;

use homenode_model::json::MemoryWeights;
use homenode_salvage::{Damaged, Salvaged};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::basis::Basis;
use crate::error::DatasetError;
use crate::foreign::{self, clean};
use crate::layout::MAX_HELD;
use crate::meta::{DatasetMeta, Ended, RecordingKind};

/// Most bytes of a table of an old form. The shortest lines take sixteen times as much memory, so
/// reading takes at most 512 MiB.
pub const MAX_CSV: u64 = 24 << 20;
/// Most bytes of a JSON file of an old form.
const MAX_JSON: u64 = 16 << 20;
/// Most nodes that are believed.
pub const MAX_NODES: u64 = 256;
/// Most intervals that are believed.
pub const MAX_INTERVALS: u64 = 1 << 20;

/// The file that both forms have.
pub const META: &str = "meta.json";

/// `meta.json` of both forms.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct OldMeta {
    pub format: u64,
    #[serde(default)]
    pub homenode: String,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    pub ended: Option<Ended>,
}

impl OldMeta {
    /// The beginning of the new description.
    pub fn into_dataset_meta(self, kind: RecordingKind, basis: Basis) -> DatasetMeta {
        DatasetMeta {
            homenode: self.homenode,
            environment: self.environment,
            ended: self.ended,
            ..DatasetMeta::new(kind, basis, self.command)
        }
    }
}

/// What a file says that describes the recording. A damaged one costs the fields that are damaged.
pub struct Described<T> {
    pub what: T,
    /// What is damaged, in words; `None`: the file is whole.
    pub said: Option<String>,
    /// Fields that are damaged, and that a reader has to assume.
    untold: Vec<&'static str>,
}

impl<T> Described<T> {
    /// Whether the file tells the field.
    pub fn tells(&self, field: &str) -> bool {
        !self.untold.contains(&field)
    }
}

/// The folder of a recording of an older form.
pub struct OlderFiles<'a> {
    pub path: &'a Path,
}

impl OlderFiles<'_> {
    /// The text of a file of at most `most` bytes.
    pub fn text(&self, name: &str, most: u64) -> Result<String, DatasetError> {
        let path = self.path.join(name);
        foreign::read(&path, most).map_err(DatasetError::io("read", path))
    }

    /// The error that this is no recording, and why.
    pub fn wrong(&self, why: String) -> DatasetError {
        DatasetError::NotADataset { path: self.path.into(), why }
    }

    /// Reads a JSON file. `assumed`: what holds where the file is damaged. `needed`: fields that a
    /// reader has to know. `skipped`: fields that are not read from a damaged file.
    pub fn described<T>(
        &self,
        name: &str,
        assumed: T,
        needed: &[&'static str],
        skipped: &[&str],
    ) -> Described<T>
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
}
