//! What a simulation predicts for the schemes of this machine, beside what was measured.
//!
//! The measured time is that of the whole program, so the simulated one is, too. Only ratios to the
//! first scheme compare: the modelled processor is not this one.

use std::path::PathBuf;
use std::sync::Arc;

use homenode_error::{Context, Error, FailureKind, Result};
use homenode_log::recording::Recording;
use homenode_model::Topology;
use homenode_schemes::scheme::Layout;
use homenode_schemes::{self as schemes, LoadedRecording, Pass};
use homenode_sim::memory::MemoryOptions;
use homenode_sim::run::Job;
use homenode_task::Task;

use crate::scheme::TrialScheme;

/// A recording of the program, and the machine to simulate.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The recording.
    pub recording: PathBuf,
    /// The machine.
    pub machine: Arc<Topology>,
}

/// Simulated time of each scheme in picoseconds; none for a scheme that nothing simulates.
///
/// # Errors
/// The recording cannot be read, or its threads do not fit the machine.
pub(super) fn times(
    prediction: &Prediction,
    schemes: &[(&'static str, TrialScheme)],
    task: &dyn Task,
) -> Result<Vec<Option<u64>>> {
    let recording = Recording::open(&prediction.recording)
        .context(|| "cannot predict".into())
        .map_err(|e| e.kind(FailureKind::Usage))?;
    let loaded = LoadedRecording::new(recording)?;
    let machine = &prediction.machine;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let pass = Pass { loaded: &loaded, workers, task };
    let binding = schemes::binding(machine, Layout::Spread, pass.threads()?).map_err(|e| {
        Error::usage(format!("the recording does not fit {}", machine.name))
            .tried(e)
            .hint("record with fewer threads (--threads), or name the machine with -m")
    })?;
    let job = |policy: &str| Job {
        machine: machine.clone(),
        binding: binding.clone(),
        page: machine.page_sizes.first().copied().unwrap_or(homenode_model::Bytes::kib(4)),
        policy: policy.into(),
        way: None,
        options: MemoryOptions::default(),
    };
    let jobs: Vec<Job> = schemes.iter().filter_map(|(_, s)| s.simulated()).map(job).collect();
    let mut outcomes = pass.simulate(&jobs)?.outcomes.into_iter();
    let mut time = || Some(outcomes.next()?.ok()?.time.0);
    Ok(schemes.iter().map(|(_, scheme)| scheme.simulated().and_then(|_| time())).collect())
}
