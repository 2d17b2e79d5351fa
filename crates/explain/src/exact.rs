//! Findings from a recording of every access, simulated on a machine.

mod findings;
mod groups;
mod no_finding;
mod request;
mod run;
mod trials;
mod warnings;
mod whole_program;

use homenode_dataset::tables::Object;
use homenode_dataset::{Basis, Dataset, identity};
use homenode_error::{Error, Result};
use homenode_order::Trace;
use homenode_report::RecordingReport;
use homenode_schemes::scheme::Layout;
use homenode_schemes::{self as schemes, LoadedRecording, Pass};
use homenode_sim::collect::Collect;
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::run::{Enough, Job, Results};
use homenode_simulated::Simulated;
use homenode_task::Task;

pub use self::request::ExplainRequest;
use self::run::ExactRun;
use crate::against::Explained;
pub use crate::effect::LEAST;
use crate::explanation::{Evidence, EvidenceKind, Explanation, FindingObject, SCHEMA};
use crate::place::allocated;
use crate::usage::Usage;
use crate::{effect, rounds};

/// So much of a long recording is simulated: its rounds are alike.
const ENOUGH: Enough = Enough { rounds: 3, accesses: 8_000_000 };

/// Findings from a recording of every access.
///
/// # Errors
/// The recording cannot be read, or its threads do not fit the machine.
pub fn explain(loaded: &LoadedRecording, request: &ExplainRequest, task: &dyn Task) -> Result<Explanation> {
    Ok(explain_and(loaded, request, task, |_| ())?.0)
}

/// The same with the numbers of all variables.
///
/// # Errors
/// As [`explain`].
pub fn explained(loaded: &LoadedRecording, request: &ExplainRequest, task: &dyn Task) -> Result<Explained> {
    let (explanation, report) = explain_and(loaded, request, task, RecordingReport::of)?;
    Ok(Explained { explanation, report })
}

/// The findings, and what `read` makes of the data set that they rest on.
fn explain_and<T>(
    loaded: &LoadedRecording,
    request: &ExplainRequest,
    task: &dyn Task,
    read: impl FnOnce(&Dataset) -> T,
) -> Result<(Explanation, T)> {
    let pass = Pass { loaded, workers: request.workers, task };
    let approximate = schemes::fit(&request.machine, loaded.recording.meta.filter_lines)?;
    let today = Today::simulate(&pass, request)?;
    let missing = homenode_simulated::missing(&loaded.recording, &today.trace);
    let set = today.dataset(loaded, request, missing.clone())?;
    let read = read(&set);
    let mut usage = Usage::of(&set);
    for it in &mut usage.objects {
        it.object.name = identity::without_slot(&it.object.name).to_owned();
    }
    let run = ExactRun {
        loaded,
        request,
        task,
        pass,
        today: today.job.clone(),
        trace: &today.trace,
        outcome: &today.outcome,
        usage: &usage,
        enough: today.enough,
        more: today.rounds.saturating_sub(today.simulated()),
    };
    let notes = [set.meta().coarsened.clone(), today.notes()].concat();
    let warnings = warnings::warnings(&run, approximate, &missing);
    let mut explanation =
        Explanation { warnings, notes, missing, ..outline(&run, today.simulated(), today.rounds) };
    // Of data that stays in the caches, only its first fetch is remote: no finding, however large
    // its share of little time.
    let (groups, padding) = if run.fits() { Default::default() } else { groups::groups(&run)? };
    let tried = groups.len();
    if tried > 0 {
        findings::findings(&run, groups, &padding, &mut explanation)?;
    }
    if explanation.findings.is_empty() {
        explanation.no_finding = Some(no_finding::reason(&run, &explanation, tried));
    }
    Ok((explanation, read))
}

/// The program as it runs today, simulated.
struct Today {
    job: Job,
    trace: Trace,
    outcome: Outcome,
    /// When a simulation of a fix may stop; `None`: at the recording's end.
    enough: Option<Enough>,
    /// Rounds of the recording.
    rounds: u64,
    /// Whether all rounds were simulated because later ones use memory in another way.
    differ: bool,
}

impl Today {
    /// Simulates enough rounds of a recording, or all of them.
    fn simulate(pass: &Pass<'_>, request: &ExplainRequest) -> Result<Self> {
        let machine = &request.machine;
        let binding = schemes::binding(machine, Layout::Spread, pass.threads()?).map_err(|e| {
            Error::usage(format!("the recording does not fit {}", machine.name))
                .tried(e)
                .hint("record with fewer threads (--threads), or name a larger machine with -m")
        })?;
        let job = Job {
            machine: machine.clone(),
            binding,
            page: request.page,
            policy: request.today.into(),
            way: None,
            options: MemoryOptions::default(),
        };
        let mut first = job.clone();
        first.options.collect = Some(Collect::default());
        // What is missing at the end must be met.
        let mut enough = (!request.all_rounds && pass.has_ends()?).then_some(ENOUGH);
        let mut results = pass.simulate_until(std::slice::from_ref(&first), enough)?;
        let mut all = None;
        if results.stopped_early {
            all = pass.rounds()?;
            if rounds::later_differ(pass, &job, &results, all)? {
                pass.task
                    .remark(&format_args!("later rounds use memory differently: all rounds are simulated"));
                enough = None;
                results = pass.simulate_until(std::slice::from_ref(&first), None)?;
            }
        }
        let differ = enough.is_none() && all.is_some();
        let Results { trace, outcomes, stopped_early, .. } = results;
        let outcome = outcomes
            .into_iter()
            .next()
            .ok_or_else(|| Error::failed("nothing was simulated"))?
            .map_err(|e| Error::failed("cannot simulate this recording").tried(e))?;
        let mut today = Self { job, trace, outcome, enough, rounds: 0, differ };
        today.rounds = all.filter(|_| stopped_early).unwrap_or_else(|| today.simulated());
        Ok(today)
    }

    /// Rounds that were simulated.
    fn simulated(&self) -> u64 {
        self.outcome.marks.len().saturating_sub(1) as u64
    }

    /// The simulation as tables.
    fn dataset(
        &self,
        loaded: &LoadedRecording,
        request: &ExplainRequest,
        incomplete: Vec<String>,
    ) -> Result<Dataset> {
        let simulated = Simulated {
            recording: &loaded.recording,
            symbols: &loaded.symbols,
            machine: &request.machine,
            page: request.page,
            policy: request.today,
            trace: &self.trace,
            outcome: &self.outcome,
            incomplete,
            notes: Vec::new(),
        };
        simulated.dataset().map_err(|e| Error::failed("cannot make tables of the simulation").tried(e))
    }

    /// Which rounds were simulated, where that was not simply all of them.
    fn notes(&self) -> Vec<String> {
        let (simulated, all) = (self.simulated(), self.rounds);
        let first = (all > simulated).then(|| {
            format!(
                "the first {simulated} of {all} rounds were simulated, and the others are taken to be like the last two of \
                 these: --all-rounds simulates all"
            )
        });
        let differ = "all rounds were simulated: later rounds use memory in another way than the first";
        first.into_iter().chain(self.differ.then(|| differ.to_owned())).collect()
    }
}

/// An explanation without warnings, findings and notes.
fn outline(run: &ExactRun<'_>, simulated: u64, all: u64) -> Explanation {
    let (meta, outcome) = (&run.loaded.recording.meta, run.outcome);
    let emulated = meta.kind == "emulated";
    let timed = effect::time(outcome, run.more);
    Explanation {
        schema: SCHEMA,
        command: meta.command.clone(),
        evidence: Evidence {
            kind: if emulated { EvidenceKind::Emulator } else { EvidenceKind::Recording },
            basis: Some(if emulated { Basis::Emulated } else { Basis::Exact }),
            text: run.request.evidence.clone(),
        },
        machine: run.machine().name.clone(),
        nodes: run.machine().nodes.len() as u64,
        page_bytes: run.request.page.0,
        threads: run.trace.threads as u64,
        rounds: (simulated > 0).then_some(all),
        rounds_simulated: (simulated > 0).then_some(simulated),
        timed_ns: timed,
        time_ns: (outcome.time.ns().0).saturating_add(timed).saturating_sub(outcome.timed.ns().0),
        remote: run.usage.accesses.share(&run.usage.remote),
        warnings: Vec::new(),
        findings: Vec::new(),
        no_finding: None,
        together: None,
        whole: Vec::new(),
        notes: Vec::new(),
        missing: Vec::new(),
    }
}

impl From<&Object> for FindingObject {
    fn from(object: &Object) -> Self {
        Self {
            id: object.id.clone(),
            name: object.name.clone(),
            allocated: allocated(object),
            bytes: object.bytes.0,
            allocations: object.allocations,
        }
    }
}
