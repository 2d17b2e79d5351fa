//! From a recording to its data set, in one call.

use std::sync::Arc;

use homenode_dataset::{Dataset, DatasetError};
use homenode_log::recording::{Recording, RecordingError, Symbols};
use homenode_model::{Bytes, CpuId, Placement, Topology};
use homenode_order::OpenError;
use homenode_order::space::StaticObject;
use homenode_sim::collect::Collect;
use homenode_sim::memory::{MemoryError, MemoryOptions};
use homenode_sim::run::{self, Job, RunError};

use crate::missing::missing;
use crate::rows::Simulated;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Request {
    /// The machine.
    pub machine: Arc<Topology>,
    /// Bytes of a page.
    pub page: Bytes,
    /// The policy, as [`Job::policy`] takes it.
    pub policy: String,
    /// Homes for the policy `plan`.
    pub plan: Option<Arc<Placement>>,
    /// How the data set is kept within bounds.
    pub collect: Collect,
}

/// Why there is no data set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recording's files cannot be read.
    #[error("{0}")]
    Recording(RecordingError),
    /// Its logs cannot be opened.
    #[error("{0}")]
    Open(OpenError),
    /// Nothing can be simulated.
    #[error("{0}")]
    Run(RunError),
    /// The simulation failed.
    #[error("{0}")]
    Memory(MemoryError),
    /// The threads do not fit the machine.
    #[error("{0}")]
    Binding(String),
    /// The data set cannot be written.
    #[error("{0}")]
    Dataset(#[from] DatasetError),
}

/// The static objects of a recording, as the simulator wants them.
pub fn statics(symbols: &Symbols) -> Vec<StaticObject> {
    let object = |s: &homenode_log::recording::Static| StaticObject {
        module: s.module,
        address: s.address,
        bytes: s.bytes,
        name: s.name.clone(),
    };
    symbols.statics.iter().map(object).collect()
}

/// Simulates a recording and makes the data set of it. `binding` gives the CPU of each of so many threads; `progress` is told
/// the accesses read so far and answers whether to go on.
///
/// # Errors
/// See [`Error`].
pub fn dataset(
    recording: &Recording,
    request: &Request,
    binding: impl FnOnce(usize) -> Result<Vec<CpuId>, String>,
    progress: impl FnMut(u64) -> bool,
) -> Result<Dataset, Error> {
    let symbols = recording.symbols().map_err(Error::Recording)?;
    let logs = recording.logs().map_err(Error::Recording)?;
    let order = homenode_order::open(&logs, statics(&symbols)).map_err(Error::Open)?;
    let job = Job {
        machine: request.machine.clone(),
        binding: binding(order.threads()).map_err(Error::Binding)?,
        page: request.page,
        policy: request.policy.clone(),
        way: None,
        options: MemoryOptions {
            collect: Some(request.collect),
            plan: request.plan.clone(),
            ..MemoryOptions::default()
        },
    };
    let results = run::run(order, std::slice::from_ref(&job), &[], 1, progress).map_err(Error::Run)?;
    let outcome = match results.outcomes.into_iter().next() {
        Some(outcome) => outcome.map_err(Error::Memory)?,
        None => return Err(Error::Open(OpenError::Empty)),
    };
    let simulated = Simulated {
        recording,
        symbols: &symbols,
        machine: &request.machine,
        page: request.page,
        policy: &request.policy,
        trace: &results.trace,
        outcome: &outcome,
        incomplete: missing(recording, &results.trace),
        notes: Vec::new(),
    };
    Ok(simulated.dataset()?)
}
