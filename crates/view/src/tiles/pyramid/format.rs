//! What a pyramid's file has beside its blocks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::block::BlockEntry;

/// The first and the last bytes of the file.
pub(super) const MAGIC: &[u8; 8] = b"hnpyram2";
/// Bytes behind the index: where it begins, its bytes, its checksum, [`MAGIC`].
pub(super) const FOOT: usize = 28;

/// What stands in front of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// Of which tables the pyramid is.
    pub stamp: String,
    /// Numbers of the objects, by place.
    pub objects: Vec<u32>,
    /// Page shift and time shift, by index.
    pub resolutions: Vec<[u32; 2]>,
    /// Intervals of the recording.
    pub intervals: u64,
    /// Blocks of the file.
    pub blocks: u64,
}

/// A pyramid that is whole.
#[derive(Debug)]
pub struct Finished {
    pub(super) head: Head,
    pub(super) entries: Vec<BlockEntry>,
    /// Its file; none: it is in memory.
    pub path: Option<PathBuf>,
    pub(super) bytes: Vec<u8>,
}
