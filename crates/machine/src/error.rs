//! The one error type of this crate.

use std::path::PathBuf;

use homenode_model::{NodeId, TopologyError};

/// Why there is no machine, or no binding of threads to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no preset, no file and not `this`.
    #[error(
        "no machine {spec:?}: it is neither `this`, nor a preset, nor a file that exists{} Presets: {}",
        did_you_mean(*nearest),
        known.join(", ")
    )]
    Unknown {
        /// What was asked for.
        spec: String,
        /// The preset whose name is close to it.
        nearest: Option<&'static str>,
        /// All presets.
        known: Vec<&'static str>,
    },
    /// A file cannot be read.
    #[error("cannot read the machine file {}: {source}; give a file that exists or a preset", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is larger than a machine file can sensibly be.
    #[error(
        "{} is larger than {} MiB, the most that is read as a machine file; is it the right file?",
        path.display(),
        limit >> 20
    )]
    TooLarge {
        /// Which one.
        path: PathBuf,
        /// The largest size that is read.
        limit: u64,
    },
    /// A machine file is wrong at a place.
    #[error("{file}:{line}:{column}: {problem}")]
    File {
        /// File, or the name of the text.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong there, what was expected, what to do.
        problem: String,
    },
    /// The parts of a machine are readable and do not fit together.
    #[error("the machine of {origin} does not fit together: {error}; correct that value")]
    Topology {
        /// Where the machine came from.
        origin: String,
        /// What does not fit.
        #[source]
        error: TopologyError,
    },
    /// The machine exceeds what homenode handles.
    #[error("the machine of {origin} is out of bounds: {problem}")]
    Bound {
        /// Where the machine came from.
        origin: String,
        /// What exceeds which bound.
        problem: String,
    },
    /// hwloc gave no usable topology.
    #[error("{tried}: {said}; `lstopo` shows what hwloc sees, and a machine file can replace it")]
    Hwloc {
        /// What was tried, on what.
        tried: String,
        /// What hwloc said.
        said: String,
    },
    /// More threads than CPUs.
    #[error(
        "{threads} threads do not fit on {place}, which has {cpus} CPUs (two threads never share one); ask for at most \
         {cpus} threads or take a larger machine"
    )]
    TooManyThreads {
        /// Threads asked for.
        threads: usize,
        /// CPUs there.
        cpus: usize,
        /// Of what: the machine's or the node's name.
        place: String,
    },
    /// A node that the machine does not have.
    #[error("{machine} has no {node}; its nodes are 0 to {}", nodes.saturating_sub(1))]
    NoSuchNode {
        /// The node.
        node: NodeId,
        /// Nodes of the machine.
        nodes: usize,
        /// The machine's name.
        machine: String,
    },
    /// No threads.
    #[error("no threads to place: ask for at least one")]
    NoThreads,
}

/// The end of the sentence on an unknown machine, if a preset's name is close to it.
fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}
