//! Findings from a data set of a live run: without effects, because nothing can be simulated.

use std::collections::BTreeMap;

use homenode_dataset::tables::Interval;
use homenode_dataset::{Dataset, RecordingKind};
use homenode_report::time::Timeline;
use homenode_report::{Amount, RecordingReport};

use crate::against::Explained;
use crate::explanation::{
    Evidence, EvidenceKind, Explanation, Finding, FindingObject, Fix, NoFindingReason, ReasonKind, SCHEMA,
};
use crate::group::groups;
use crate::pattern::Diagnosis;
use crate::remedy::{FixKind, Remedy};
use crate::usage::{ObjectUse, Usage};
use crate::uses::uses;
use crate::warning::{Warning, WarningKind};

/// Percent of all accesses that an object's remote ones must be.
const LEAST: u64 = 5;

/// A finding.
pub(crate) fn finding(usage: &Usage, members: &[&ObjectUse], found: &Diagnosis, fixes: Vec<Fix>) -> Finding {
    // Amounts of one recording have one basis: the shares add up as numbers.
    let shares = members.iter().map(|m| m.accesses.share(&m.remote));
    let remote = shares.reduce(|a, b| homenode_report::Share {
        part: a.part.saturating_add(b.part),
        whole: a.whole.saturating_add(b.whole),
        ..a
    });
    Finding {
        variables: members.iter().map(|m| FindingObject::from(&m.object)).collect(),
        pattern: found.pattern,
        touched: found.touched.clone(),
        touched_by: found.touched_by,
        used: uses(usage, members),
        users: members.iter().map(|m| m.by_node.users()).max().unwrap_or(0),
        remote: remote.unwrap_or_else(|| usage.accesses.share(&Amount::default())),
        fixes,
    }
}

/// Findings from a data set. `command` is the program as a person types it.
pub fn explain(set: &Dataset, most: usize, command: &str) -> Explanation {
    explain_watched(set, most, command, &mut |_| true).unwrap_or_else(|| unreachable!("nobody stops it"))
}

/// The same. `more` gets the number of rows of accesses that were read, in two passes over the
/// table, and says whether to go on; `None`: it said no. Memory does not grow with the data set.
pub fn explain_watched(
    set: &Dataset,
    most: usize,
    command: &str,
    more: &mut dyn FnMut(u64) -> bool,
) -> Option<Explanation> {
    let usage = Usage::bounded(set, more)?;
    let meta = set.meta();
    let missing: Vec<String> = set.missing().iter().map(ToString::to_string).collect();
    let whole = usage.accesses.units().1;
    let mut findings = Vec::new();
    for group in groups(&usage, &BTreeMap::new(), &[], meta.page_bytes) {
        let remote = group.members.iter().fold(0u64, |sum, m| sum.saturating_add(m.remote.units().1));
        if remote.saturating_mul(100) < whole.saturating_mul(LEAST) {
            continue;
        }
        let fix = |r: Remedy| Fix { kind: r.kind, text: r.text, at: r.at, effect: None };
        let mut fixes: Vec<Fix> = group.remedies.into_iter().map(fix).collect();
        fixes.push(Fix {
            kind: FixKind::HomenodeRun,
            text: format!("homenode run -- {command}"),
            at: None,
            effect: None,
        });
        findings.push(finding(&usage, &group.members, &group.found, fixes));
    }
    findings.truncate(most);
    let (timed_ns, time_ns) = times(set);
    let warnings = warnings(&usage, &missing);
    let no_finding = findings.is_empty().then(|| reason(&usage));
    let (kind, how) = match meta.kind {
        RecordingKind::Simulated => (EvidenceKind::Simulation, "a simulation"),
        RecordingKind::Lab => (EvidenceKind::Live, "a run in the lab"),
        _ => (EvidenceKind::Live, "a live run"),
    };
    let text = format!("{how}, no trace (effects unknown)");
    let together = (usage.together > 1).then(|| {
        format!("the recording has many pages: {} neighbouring pages are taken for one", usage.together)
    });
    Some(Explanation {
        schema: SCHEMA,
        command: meta.command.clone(),
        evidence: Evidence { kind, basis: usage.accesses.basis(), text },
        machine: meta.machine.clone(),
        nodes: set.rows::<homenode_dataset::tables::Node>().count() as u64,
        page_bytes: meta.page_bytes,
        threads: usage.threads,
        rounds: rounds(set),
        rounds_simulated: None,
        timed_ns,
        time_ns,
        remote: usage.accesses.share(&usage.remote),
        warnings,
        findings,
        no_finding,
        together: None,
        whole: Vec::new(),
        notes: together.into_iter().chain(meta.coarsened.iter().chain(&meta.notes).cloned()).collect(),
        missing,
    })
}

/// The same with the numbers of all variables.
pub fn explained(set: &Dataset, most: usize, command: &str) -> Explained {
    Explained { explanation: explain(set, most, command), report: RecordingReport::of(set) }
}

/// The time of the intervals that count, and of all.
fn times(set: &Dataset) -> (u64, u64) {
    let timeline = Timeline::of(set);
    let add = |sum: u64, i: &Interval| sum.saturating_add(i.end_ns.0.saturating_sub(i.begin_ns.0));
    let all = timeline.intervals().iter().fold(0, add);
    let timed = timeline.intervals().iter().filter(|i| i.timed).fold(0, add);
    (if timeline.has_timed() { timed } else { all }, all)
}

fn rounds(set: &Dataset) -> Option<u64> {
    let n = set.rows::<homenode_dataset::tables::Iteration>().count() as u64;
    (n > 0).then_some(n)
}

fn warnings(usage: &Usage, missing: &[String]) -> Vec<Warning> {
    let mut all = Vec::new();
    if let Some(first) = missing.first() {
        all.push(Warning::new(WarningKind::CutOff, first.clone()));
    }
    if usage.threads == 1 {
        all.push(Warning::new(WarningKind::OneThread, "one thread ran: all of its memory is on its node"));
    }
    if usage.wandering > 0 {
        let text = format!(
            "{} of {} threads are not bound and ran on several nodes: OMP_PROC_BIND=true OMP_PLACES=cores",
            usage.wandering, usage.threads
        );
        all.push(Warning::new(WarningKind::Unbound, text));
    }
    all
}

fn reason(usage: &Usage) -> NoFindingReason {
    let reason = |kind, text: &str| NoFindingReason { kind, text: text.to_owned() };
    if usage.accesses.seen() == 0 {
        return reason(ReasonKind::NothingRecorded, "no accesses were seen");
    }
    if usage.nodes < 2 {
        return reason(ReasonKind::OneNode, "all threads ran on one node: no access is remote");
    }
    let remote = usage.accesses.share(&usage.remote).percent().unwrap_or(0.0);
    let of = usage.accesses.units().0;
    reason(
        ReasonKind::Local,
        &format!("no variable has {LEAST} % of all {of} remote; together {remote:.1} % are"),
    )
}

#[cfg(test)]
mod tests {
    use crate::place::function;

    #[test]
    fn regions_have_the_names_of_their_functions() {
        let all = ["sweep._omp_fn.0", "main.omp_outlined", "step__._omp_fn.3", "plain"].map(function);
        assert_eq!(all, ["sweep", "main", "step", "plain"]);
        // As numba's library for OpenMP has it.
        let numba = "parallel_for(void*, char**, unsigned long*, void (*)(int)) [clone ._omp_fn.0]";
        let others =
            ["ns::sum<int>(int) const", "functor::operator()() const", "(anonymous namespace)::f", "f(", ")"];
        assert_eq!(function(numba), "parallel_for");
        assert_eq!(
            others.map(function),
            ["ns::sum<int>", "functor::operator()", "(anonymous namespace)::f", "f(", ")"]
        );
    }
}
