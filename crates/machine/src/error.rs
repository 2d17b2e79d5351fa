//! The one error type of this crate.

use std::fmt;
use std::path::PathBuf;

use homenode_model::{NodeId, TopologyError};

/// Why there is no machine, or no binding of threads to it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is no preset, no file and not `this`.
    Unknown {
        /// What was asked for.
        spec: String,
        /// The preset whose name is close to it.
        nearest: Option<&'static str>,
        /// All presets.
        known: Vec<&'static str>,
    },
    /// A file cannot be read.
    Read {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is larger than a machine file can sensibly be.
    TooLarge {
        /// Which one.
        path: PathBuf,
        /// The largest size that is read.
        limit: u64,
    },
    /// A machine file is wrong at a place.
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
    Topology {
        /// Where the machine came from.
        origin: String,
        /// What does not fit.
        error: TopologyError,
    },
    /// The machine exceeds what homenode handles.
    Bound {
        /// Where the machine came from.
        origin: String,
        /// What exceeds which bound.
        problem: String,
    },
    /// hwloc gave no usable topology.
    Hwloc {
        /// What was tried, on what.
        tried: String,
        /// What hwloc said.
        said: String,
    },
    /// More threads than CPUs.
    TooManyThreads {
        /// Threads asked for.
        threads: usize,
        /// CPUs there.
        cpus: usize,
        /// Of what: the machine's or the node's name.
        place: String,
    },
    /// A node that the machine does not have.
    NoSuchNode {
        /// The node.
        node: NodeId,
        /// Nodes of the machine.
        nodes: usize,
        /// The machine's name.
        machine: String,
    },
    /// No threads.
    NoThreads,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { spec, nearest, known } => {
                write!(f, "no machine {spec:?}: it is neither `this`, nor a preset, nor a file that exists")?;
                if let Some(n) = nearest {
                    write!(f, "; did you mean `{n}`?")?;
                }
                write!(f, " Presets: {}", known.join(", "))
            }
            Self::Read { path, source } => {
                write!(
                    f,
                    "cannot read the machine file {}: {source}; give a file that exists or a preset",
                    path.display()
                )
            }
            Self::TooLarge { path, limit } => write!(
                f,
                "{} is larger than {} MiB, the most that is read as a machine file; is it the right file?",
                path.display(),
                limit >> 20
            ),
            Self::File { file, line, column, problem } => write!(f, "{file}:{line}:{column}: {problem}"),
            Self::Topology { origin, error } => {
                write!(f, "the machine of {origin} does not fit together: {error}; correct that value")
            }
            Self::Bound { origin, problem } => {
                write!(f, "the machine of {origin} is out of bounds: {problem}")
            }
            Self::Hwloc { tried, said } => {
                write!(
                    f,
                    "{tried}: {said}; `lstopo` shows what hwloc sees, and a machine file can replace it"
                )
            }
            Self::TooManyThreads { threads, cpus, place } => write!(
                f,
                "{threads} threads do not fit on {place}, which has {cpus} CPUs (two threads never share one); ask for at \
                 most {cpus} threads or take a larger machine"
            ),
            Self::NoSuchNode { node, nodes, machine } => {
                write!(f, "{machine} has no {node}; its nodes are 0 to {}", nodes.saturating_sub(1))
            }
            Self::NoThreads => f.write_str("no threads to place: ask for at least one"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Topology { error, .. } => Some(error),
            _ => None,
        }
    }
}
