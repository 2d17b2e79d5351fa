//! The error of commands that need a trace and get a data set.

use std::path::Path;

use homenode_dataset::{Dataset, RecordingKind};

use homenode_error::{Error, Result};
use homenode_launch::record::shown;

use crate::open::data_set;

/// Refuses a recording that is a data set.
///
/// # Errors
/// The recording is a data set. The error names the commands that read it.
pub fn refuse(path: &Path, what: &str) -> Result<()> {
    if !Dataset::is_at(path) {
        return Ok(());
    }
    let set = data_set(path, what)?;
    let path = shown(path);
    let error = Error::usage(format!("cannot {what} {path}: it has counts by page and node, not a trace"));
    let show = format!("'homenode show {path}' reads it");
    let again = "'homenode record --on emulator' writes a trace of the same program";
    Err(match set.meta().kind {
        RecordingKind::Lab => error
            .tried("it was recorded on the lab, where Linux placed the pages: no other placement can be simulated from counts")
            .hint(format!("{show}; 'homenode compare --on lab' runs each scheme there; {again}")),
        RecordingKind::Run | RecordingKind::Live => error
            .tried(format!(
                "it was told by samples ({}) while the program ran, where Linux placed the pages: no other placement can be simulated",
                set.meta().basis
            ))
            .hint(format!("{show}; {again}")),
        RecordingKind::Simulated | RecordingKind::Synthetic => error
            .tried("it is what came of a simulation: the recording that was simulated has the trace")
            .hint(show),
    })
}
