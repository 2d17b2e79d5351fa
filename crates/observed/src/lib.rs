//! What the library in a running program streamed, as a data set.
//!
//! | step | where |
//! |---|---|
//! | read a stream, as far as it is whole | [`stream`] |
//! | names for objects and regions, from the program's own files | [`names`] |
//! | who touched which pages first | `firsts` |
//! | where pages live, and where they have lived | [`homes`] |
//! | rows of all tables | [`rows`] |
//!
//! A stream is only appended to while the program runs, so what was written before a `kill -9` is
//! whole. [`write()`] fills a data set from the streams of all processes. It needs memory for
//! each run of pages with one fate: some 50 bytes a run.

#![forbid(unsafe_code)]

pub mod firsts;
mod homes;
pub mod names;
pub mod rows;
pub mod stream;
mod summary;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use homenode_dataset::{Dataset, DatasetError, DatasetMeta, MemoryDataset, RowSink};

pub use homenode_dataset::layout::STREAMS;
pub use stream::{StreamFolder, StreamState};
pub use summary::{StreamsSummary, basis};

/// Sentences of one kind that are kept.
const SENTENCES: usize = 64;

/// A recording that was cut off, with the rows of the streams that it still has. Any other stays as
/// it is.
///
/// # Errors
/// The rows cannot be made.
pub fn adopt(set: Dataset) -> Result<Dataset, DatasetError> {
    let streams = set.path().map(|p| p.join(STREAMS)).filter(|p| fs::symlink_metadata(p).is_ok());
    let Some(streams) = streams.filter(|_| set.meta().ended.is_none()) else { return Ok(set) };
    let (mut meta, mut tables) = (set.meta().clone(), MemoryDataset::default());
    write(&streams, &mut tables, &mut meta)?;
    Ok(Dataset::of_memory(meta, tables))
}

/// Fills a data set from the streams in `folder`, and completes what `meta` says of it.
///
/// # Errors
/// A row cannot be written. What is damaged of a stream is left out and noted in `meta`.
pub fn write(
    folder: &Path,
    to: &mut impl RowSink,
    meta: &mut DatasetMeta,
) -> Result<StreamsSummary, DatasetError> {
    let StreamFolder { streams, mut unread, silent } = stream::all(folder);
    let nothing = silent.iter().map(|pid| format!("process {pid} recorded nothing"));
    // Beside a process that recorded something that is no lack.
    if streams.is_empty() {
        unread.extend(nothing)
    } else {
        meta.notes.extend(nothing)
    }
    let mut summary = StreamsSummary { unread, ..StreamsSummary::default() };
    let first = streams.iter().map(|s| s.clock).min().unwrap_or_default();
    let mut numbers = rows::RowOffsets::default();
    for stream in &streams {
        rows::of_process(stream, first, &mut numbers, to, &mut summary)?;
    }
    rows::of_machine(&streams, to)?;
    let main = streams.iter().max_by_key(|s| (s.sightings, s.records, std::cmp::Reverse(s.pid)));
    if let Some(main) = main {
        summary.source.clone_from(&main.source);
        summary.says = main.says;
        meta.source.clone_from(&main.source);
        meta.basis = basis(main.says).to_string();
        meta.pretended = main.pretended;
        meta.page_bytes = main.page_bytes;
        meta.policy.get_or_insert_with(|| main.policy.clone());
    }
    for stream in &streams {
        meta.incomplete.extend(stream.damage.iter().cloned());
        meta.coarsened.extend(stream.dropped.iter().map(|(what, n)| stream::dropped(*what, *n)));
        if !stream.whole {
            summary.early.push(stream.pid);
            let pid = stream.pid;
            meta.incomplete.push(format!("process {pid} did not come to its end"));
        }
    }
    meta.incomplete.extend(summary.unread.iter().cloned());
    summary.notes.sort();
    summary.notes.dedup();
    let known: BTreeSet<String> = meta.notes.iter().cloned().collect();
    meta.notes.extend(summary.notes.iter().filter(|n| !known.contains(*n)).cloned());
    for sentences in [&mut meta.notes, &mut meta.incomplete, &mut meta.coarsened] {
        let beyond = sentences.len().saturating_sub(SENTENCES);
        if beyond > 0 {
            sentences.truncate(SENTENCES);
            sentences.push(format!("and {beyond} more"));
        }
    }
    Ok(summary)
}
