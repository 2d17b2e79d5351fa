//! One side of a comparison: the report of a recording.

use std::path::Path;

use homenode_error::Result;
use homenode_report::RecordingReport;

use crate::open::{Simulation, open};
use crate::task::Terminal;

/// The report of a recording.
pub fn report(path: &Path) -> Result<RecordingReport> {
    open(path, &Simulation::default(), &Terminal::watching(false)?).map(|set| RecordingReport::of(&set))
}
