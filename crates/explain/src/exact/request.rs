//! What an explanation is asked for.

use std::sync::Arc;

use homenode_model::{Bytes, Topology};

/// What to explain a recording for.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// The machine.
    pub machine: Arc<Topology>,
    /// Bytes of a page.
    pub page: Bytes,
    /// Findings at most.
    pub most: usize,
    /// Host threads that simulate.
    pub workers: usize,
    /// How the evidence came about, a sentence.
    pub evidence: String,
    /// Program and arguments as a person types them.
    pub command: String,
    /// The policy under which the program runs today: `first-touch`, or
    /// [`crate::numactl::INTERLEAVED`].
    pub today: &'static str,
    /// Simulate all rounds of a long recording, not only the first ones.
    pub all_rounds: bool,
}
