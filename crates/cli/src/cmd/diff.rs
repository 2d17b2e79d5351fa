//! `homenode diff`: finds out which kind of file both arguments are, and compares them.

mod comparisons;
mod folders;
mod measurements;
mod recordings;
mod report;

use std::path::{Path, PathBuf};

use homenode_dataset::Dataset;
use homenode_log::regular;
use homenode_model::Bytes;
use homenode_model::json::MemoryWeights;
use homenode_report::RecordingReport;
use homenode_report::compared::Compared;

use crate::args::diff::DiffArgs;
use crate::exit::Exit;
use crate::open::data_sets_in;
use homenode_error::{Context as _, Error, FailureKind, Result};
use report::report;

/// Most bytes of a file that are read.
const MOST: u64 = 16 << 20;
/// Most memory that the content of one file may take.
const MOST_HELD: Bytes = Bytes(80 << 20);

/// What one side is.
enum Side {
    Recording(Box<RecordingReport>),
    /// Recordings by name.
    Folder(Vec<(String, PathBuf)>),
    /// The text of a result of `homenode compare --json`.
    Comparison(String),
    /// A text that should be a measurement.
    Measurement(String),
}

impl Side {
    const fn what(&self) -> &'static str {
        match self {
            Self::Recording(_) => "a recording",
            Self::Folder(_) => "a folder of recordings",
            Self::Comparison(_) => "a result of 'homenode compare'",
            Self::Measurement(_) => "a measurement, if anything",
        }
    }
}

impl DiffArgs {
    pub(super) fn run(self) -> Result<Exit> {
        match (side(&self.before)?, side(&self.after)?) {
            (Side::Recording(before), Side::Recording(after)) => recordings::run(&self, &before, &after),
            (Side::Folder(before), Side::Folder(after)) => folders::run(&self, &before, &after),
            (Side::Comparison(before), Side::Comparison(after)) => comparisons::run(&self, &before, &after),
            (Side::Measurement(before), Side::Measurement(after)) => {
                measurements::run(&self, &before, &after)
            }
            (before, after) => {
                let is = |path: &Path, side: &Side| format!("{} is {}", path.display(), side.what());
                Err(Error::usage("these two are not of one kind")
                    .tried(is(&self.before, &before))
                    .tried(is(&self.after, &after))
                    .hint("'homenode diff --help' says what it compares"))
            }
        }
    }
}

fn side(path: &Path) -> Result<Side> {
    if path.is_dir() {
        let inside = data_sets_in(path);
        if !Dataset::is_at(path) && !inside.is_empty() {
            return Ok(Side::Folder(inside));
        }
        return Ok(Side::Recording(Box::new(report(path)?)));
    }
    let cannot = || format!("cannot read {}", path.display());
    let hint = |e: Error| e.hint("'homenode diff --help' says what it compares").kind(FailureKind::Usage);
    let text = regular::open(path).and_then(|file| regular::text(file, MOST));
    let text = text.context(cannot).map_err(hint)?;
    MemoryWeights::ANY.check(&text, MOST_HELD).context(cannot).map_err(hint)?;
    Ok(if Compared::is(&text) { Side::Comparison(text) } else { Side::Measurement(text) })
}
