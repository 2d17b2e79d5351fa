//! What to change in the source, as `homenode explain` says it: the same words, the same numbers.

use std::path::Path;
use std::sync::Arc;

use homenode_dataset::Dataset;
use homenode_dataset::foreign::clean;
use homenode_error::{Context as _, Result};
use homenode_explain::Explanation;
use homenode_explain::effect::TODAY;
use homenode_explain::exact;
use homenode_explain::explanation::{Finding as Found, FindingObject as Named, Fix as Told, Place};
use homenode_explain::observed;
use homenode_explain::warning::WarningKind;
use homenode_log::recording::Recording;
use homenode_schemes::{self as schemes, LoadedRecording};
use homenode_task::Task;
use homenode_text::explained;
use homenode_text::human::plain;
use serde::Serialize;

/// Findings at most: as many as `homenode explain` looks for.
pub const MOST: usize = 5;
/// Regions of a finding at most.
const REGIONS: usize = 5;
/// Variables of a finding at most.
const VARIABLES: usize = 20;

/// What an explanation says, for the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The first lines of `homenode explain`.
    pub answer: Vec<String>,
    /// What a reader must know first.
    pub warnings: Vec<String>,
    /// Most time saved first.
    pub findings: Vec<ShownFinding>,
    /// What all fixes together bring, where there are several.
    pub together: Option<String>,
}

/// A fault, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownFinding {
    /// The variables in a few words.
    pub names: String,
    /// The fault in a few words.
    pub fault: &'static str,
    /// Where the first variable is allocated or declared, as in `stencil.c:28`.
    pub at: Option<String>,
    /// Who touched it first, and where.
    pub touched: String,
    /// Who uses it, and how much of that is remote.
    pub used: String,
    /// The variables.
    pub variables: Vec<ShownVariable>,
    /// What to do, best first.
    pub fixes: Vec<ShownFix>,
}

/// A variable of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownVariable {
    /// The object's id, the same in every recording.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Where it is allocated or declared.
    pub place: FindingPlace,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FindingPlace {
    /// The file, as the compiler was given it.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// Both, short; or the function.
    pub short: Option<String>,
}

/// What to do, and what it brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownFix {
    /// The change in the source's words, or a command line.
    pub text: String,
    /// The line that changes.
    pub at: Option<FindingPlace>,
    /// What it brings; none where nothing was simulated.
    pub expected: Option<String>,
}

fn shown(text: &str) -> String {
    plain(&clean(text))
}

impl From<&Place> for FindingPlace {
    fn from(place: &Place) -> Self {
        let shown = |text: &String| shown(text);
        Self {
            file: place.file.as_ref().map(shown),
            line: place.line,
            short: place.short().as_ref().map(shown),
        }
    }
}

impl From<&Named> for ShownVariable {
    fn from(v: &Named) -> Self {
        Self { id: v.id.clone(), name: shown(&v.name), place: FindingPlace::from(&v.allocated) }
    }
}

fn fix(it: &Explanation, fix: &Told, first: bool) -> ShownFix {
    let expected = fix.effect.as_ref().map(|effect| match first {
        true => shown(&explained::expected(it, effect)),
        false => shown(&explained::expected_briefly(effect)),
    });
    ShownFix { text: shown(&fix.text), at: fix.at.as_ref().map(FindingPlace::from), expected }
}

fn finding(it: &Explanation, found: &Found) -> ShownFinding {
    ShownFinding {
        names: shown(&explained::names(&found.variables)),
        fault: explained::fault(found.pattern),
        at: found.variables.first().and_then(|v| v.allocated.short()).map(|at| shown(&at)),
        touched: shown(&explained::touched(found)),
        used: shown(&explained::used(found, REGIONS)),
        variables: found.variables.iter().take(VARIABLES).map(ShownVariable::from).collect(),
        fixes: found.fixes.iter().enumerate().map(|(n, f)| fix(it, f, n == 0)).collect(),
    }
}

impl From<&Explanation> for Findings {
    fn from(it: &Explanation) -> Self {
        let together = it.together.as_ref().filter(|_| it.findings.len() > 1);
        Self {
            answer: explained::answer(it).iter().map(|l| shown(l)).collect(),
            // The page says in its first line what is missing.
            warnings: it
                .warnings
                .iter()
                .filter(|w| w.kind != WarningKind::CutOff)
                .map(|w| shown(&w.text))
                .collect(),
            findings: it.findings.iter().map(|f| finding(it, f)).collect(),
            together: together.map(|effect| shown(&explained::expected(it, effect))),
        }
    }
}

impl Findings {
    /// Nothing, and why.
    pub fn none(why: &dyn std::fmt::Display) -> Self {
        Self { answer: vec![shown(&format!("not explained: {why}"))], ..Self::default() }
    }
}

/// Findings from a data set alone: without effects, because nothing can be simulated. `command` is
/// the program as a person types it. `more` gets the number of rows of accesses that were
/// read, in two passes over the table, and says whether to go on.
pub fn of(set: &Dataset, command: &str, more: &mut dyn FnMut(u64) -> bool) -> Findings {
    match observed::explain_watched(set, MOST, command, more) {
        Some(explanation) => Findings::from(&explanation),
        None => Findings::none(&"somebody asked to stop"),
    }
}

/// Findings from a recording of every access: fixes are simulated. `machine`: its name; none:
/// [`schemes::default_machine`].
///
/// # Errors
/// The recording cannot be read or does not fit the machine; `task` asks to stop.
pub fn simulated(
    recording: &Path,
    machine: Option<&str>,
    command: &str,
    task: &dyn Task,
) -> Result<Findings> {
    let recording = Recording::open(recording).context(|| "cannot explain".into())?;
    let machine = Arc::new(machine.map_or_else(schemes::default_machine, schemes::machine)?.topology);
    let emulated = recording.meta.kind == "emulated";
    let by = if emulated { "the emulator" } else { "the program's own code" };
    let request = exact::ExplainRequest {
        page: schemes::page_size(&machine, None)?,
        machine,
        most: MOST,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        evidence: format!("every access, recorded by {by}"),
        command: command.to_owned(),
        today: TODAY,
        all_rounds: false,
    };
    Ok(Findings::from(&exact::explain(&LoadedRecording::new(recording)?, &request, task)?))
}
