//! What the tests of exports share.

#![allow(dead_code)] // each test uses a part of it

pub mod parquet;
pub mod python;

use std::fs;
use std::path::{Path, PathBuf};

use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::{Dataset, DatasetMeta, DatasetWriter, MemoryDataset};

pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("homenode-export-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn spec(seed: u64) -> SyntheticSpec {
    SyntheticSpec { iterations: 10, blocks: 120, nodes: 4, seed, rank: None }
}

/// A data set in memory.
pub fn in_memory(seed: u64) -> Dataset {
    let mut memory = MemoryDataset::default();
    let ended = spec(seed).fill(&mut memory, &mut |_, _| true).unwrap();
    Dataset::of_memory(DatasetMeta { ended: Some(ended), ..spec(seed).meta() }, memory)
}

/// A data set on disk.
pub fn on_disk(path: &Path, seed: u64) -> Dataset {
    let mut writer = DatasetWriter::create(path, spec(seed).meta()).unwrap();
    let ended = spec(seed).fill(&mut writer, &mut |_, _| true).unwrap();
    writer.finish(ended).unwrap();
    Dataset::open(path).unwrap()
}

/// The file of a table in an export of one member.
pub fn part(out: &Path, table: &str) -> PathBuf {
    out.join(table).join("host=local/job=0/rank=0/part-0.parquet")
}
