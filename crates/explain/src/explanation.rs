//! The answer as data. Field names say the units.

use homenode_dataset::Basis;
use homenode_report::{Amount, Share};
use serde::Serialize;

use crate::pattern::Pattern;
pub use crate::place::Place;
use crate::remedy::FixKind;
use crate::warning::Warning;

/// Name and version of the schema.
pub const SCHEMA: &str = "homenode/explain/1";

/// What to change, and what it brings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Program and arguments.
    pub command: Vec<String>,
    /// What the findings rest on.
    pub evidence: Evidence,
    /// The machine: its name.
    pub machine: String,
    /// Nodes of the machine.
    pub nodes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Threads of the program.
    pub threads: u64,
    /// Rounds of the outer loop that count; none where no rounds are known.
    pub rounds: Option<u64>,
    /// Rounds that were simulated, the first ones. The others are taken to be like them.
    pub rounds_simulated: Option<u64>,
    /// The part of the run that counts, on the modelled clock or the wall clock.
    pub timed_ns: u64,
    /// The whole run on the same clock.
    pub time_ns: u64,
    /// Remote accesses among those that count.
    pub remote: Share,
    /// What a reader must know first.
    pub warnings: Vec<Warning>,
    /// Most time saved first.
    pub findings: Vec<Finding>,
    /// Why there is no finding; none where there are findings.
    pub no_finding: Option<NoFindingReason>,
    /// What all fixes together bring that are a placement; none where there is one of them.
    pub together: Option<Effect>,
    /// Remedies for the whole program that need no change of the source, as in [`Finding::fixes`].
    pub whole: Vec<Fix>,
    /// What was coarsened or left out, a sentence each.
    pub notes: Vec<String>,
    /// What the recording lacks, a sentence each. Empty: it is whole.
    pub missing: Vec<String>,
}

/// What the findings rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// `recording` (every access), `emulator` (every access, of a program as it is), or `live`
    /// (samples or sightings).
    pub kind: EvidenceKind,
    /// The weakest basis of the counts.
    #[serde(serialize_with = "basis")]
    pub basis: Option<Basis>,
    /// One sentence for a person.
    pub text: String,
}

/// The kind of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// Every access, told by the program's own code.
    Recording,
    /// Every access, told by an emulator.
    Emulator,
    /// What a live run or a run in the lab saw.
    Live,
    /// A data set that a simulation made.
    Simulation,
}

/// A variable, or the allocations of one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingObject {
    /// Name that is the same in every recording.
    pub id: String,
    /// The variable where debug information names it, else the place of its allocation.
    pub name: String,
    /// The allocation, or the declaration of a static variable.
    pub allocated: Place,
    /// Size.
    pub bytes: u64,
    /// How often it was allocated.
    pub allocations: u64,
}

/// A region that uses the variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Use {
    /// The region; nothing known: code outside of regions.
    pub place: Place,
    /// Its accesses to the variables.
    pub accesses: Amount,
}

/// A fault, and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The variables, most remote accesses first.
    pub variables: Vec<FindingObject>,
    /// The fault.
    pub pattern: Pattern,
    /// The code that touches most of the pages first.
    pub touched: Place,
    /// Threads that touch pages first.
    pub touched_by: u64,
    /// The regions that use them, most accesses first.
    pub used: Vec<Use>,
    /// Nodes that use them.
    pub users: u64,
    /// Remote accesses among the accesses to the variables.
    pub remote: Share,
    /// What to do, best first.
    pub fixes: Vec<Fix>,
}

/// What to do, and what it brings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fix {
    /// What kind of change it is.
    pub kind: FixKind,
    /// The change in the source's words, or a command line.
    pub text: String,
    /// The line that changes.
    pub at: Option<Place>,
    /// What it brings; none where nothing was simulated.
    pub effect: Option<Effect>,
}

/// What a fix brings on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// How it is known.
    pub basis: EffectBasis,
    /// Time of the counted part today.
    pub before_ns: u64,
    /// Time of the counted part with the fix; of a bound, the least that it can be.
    pub after_ns: u64,
    /// Change of the time in percent, from and to: a processor that waits for each access, and one
    /// that hides three quarters of the latency of sequential accesses, beside the machine as it is
    /// described. None where these were not simulated.
    pub change_range: Option<(f64, f64)>,
    /// Remote share of all accesses that count, in percent, today.
    pub remote_before: f64,
    /// The same with the fix.
    pub remote_after: f64,
}

impl Effect {
    /// Change of the time in percent: negative where the fix saves time.
    pub fn change(&self) -> f64 {
        change(self.before_ns, self.after_ns)
    }

    /// Time saved.
    pub const fn saved_ns(&self) -> u64 {
        self.before_ns.saturating_sub(self.after_ns)
    }
}

/// Change from one time to another in percent.
pub fn change(before: u64, after: u64) -> f64 {
    if before == 0 { 0.0 } else { (after as f64 - before as f64) / before as f64 * 100.0 }
}

/// How an effect is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectBasis {
    /// The placement that the fix means was simulated.
    Simulated,
    /// The time if every access were local was simulated: the fix saves at most that.
    Bound,
}

/// Why there is no finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoFindingReason {
    /// A word for programs.
    pub kind: ReasonKind,
    /// A sentence for people.
    pub text: String,
}

/// The kind of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonKind {
    /// No accesses count.
    NothingRecorded,
    /// All users of the memory are on one node.
    OneNode,
    /// The data fits the modelled caches.
    FitsCaches,
    /// The program does not wait for memory.
    DoesNotWait,
    /// Almost all accesses are local.
    Local,
    /// Pages are shared by nodes that write them; no placement helps.
    Communication,
    /// No simulated fix saves enough time.
    NothingHelps,
}

fn basis<S: serde::Serializer>(basis: &Option<Basis>, s: S) -> Result<S::Ok, S::Error> {
    match basis {
        Some(basis) => s.serialize_some(basis.word().as_str()),
        None => s.serialize_none(),
    }
}
