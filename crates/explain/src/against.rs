//! What a change of the program brought: one explanation beside an earlier one of the same program.
//!
//! # Terms
//! A finding is *left* where both explanations have the same fault of one variable. It is *gone*
//! where only the earlier one has it, and *new* where only the later one has it. Variables are the
//! same as [`homenode_report::diff`] says: a variable keeps its identity when lines of the source
//! move.

use std::collections::BTreeMap;

use homenode_report::RecordingReport;
use homenode_report::diff::{Diff, ObjectDiff, Unlike};
use serde::Serialize;

use crate::explanation::{Explanation, Finding};

/// Name and version of the schema.
pub const SCHEMA: &str = "homenode/explain-against/1";

/// A variable with a smaller part of all accesses and of all remote accesses is not listed, in
/// thousandths.
const LEAST: u64 = 10;

/// An explanation with the numbers of all variables, also of those without a fault.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The answer.
    pub explanation: Explanation,
    /// What is known of each variable.
    pub report: RecordingReport,
}

/// What a time is the time of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// One round of the outer loop.
    Round,
    /// All that counts.
    Run,
}

/// The time of both programs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimesCompared {
    /// What the times are of.
    pub per: Per,
    /// Before the change.
    pub before_ns: f64,
    /// After it.
    pub after_ns: f64,
    /// Change in percent: negative where the change saved time.
    pub change: f64,
}

/// A finding that both explanations have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemainingFinding {
    /// Before the change.
    pub before: Finding,
    /// After it.
    pub after: Finding,
}

/// What a change brought.
#[derive(Clone, Debug, Serialize)]
pub struct Against {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The machine of both.
    pub machine: String,
    /// Time before and after. None where the two do not compare: `unlike` says why.
    pub time: Option<TimesCompared>,
    /// Remote accesses among those that count in percent, before.
    pub remote_before: Option<f64>,
    /// The same after.
    pub remote_after: Option<f64>,
    /// Findings that the change mended, most time saved first.
    pub gone: Vec<Finding>,
    /// Findings that the change brought.
    pub new: Vec<Finding>,
    /// Findings that both have.
    pub left: Vec<RemainingFinding>,
    /// Variables with a finding or a part of the accesses worth telling, those that changed most
    /// first.
    pub variables: Vec<ObjectDiff>,
    /// What makes numbers of the two incomparable, a sentence each.
    pub unlike: Vec<String>,
    /// The explanation before the change.
    pub before: Explanation,
    /// The explanation after it.
    pub after: Explanation,
}

/// Compares two explanations of one program on one machine.
pub fn compare(before: Explained, after: Explained) -> Against {
    let mut diff = Diff::of(&before.report, &after.report);
    let twins = Twins::of(&diff);
    let (before, after) = (before.explanation, after.explanation);
    let pairs: Vec<(usize, usize)> = pairs(&before.findings, &after.findings, &twins);
    let left = |(b, a): &(usize, usize)| RemainingFinding {
        before: before.findings[*b].clone(),
        after: after.findings[*a].clone(),
    };
    let alone = |all: &[Finding], taken: &dyn Fn(usize) -> bool| -> Vec<Finding> {
        all.iter().enumerate().filter(|(i, _)| !taken(*i)).map(|(_, f)| f.clone()).collect()
    };
    let gone = alone(&before.findings, &|i| pairs.iter().any(|(b, _)| *b == i));
    let new = alone(&after.findings, &|i| pairs.iter().any(|(_, a)| *a == i));
    let found: Vec<&str> = [&before, &after]
        .iter()
        .flat_map(|e| &e.findings)
        .flat_map(|f| &f.variables)
        .map(|v| v.id.as_str())
        .collect();
    diff.objects.retain(|o| worth_telling(o, &diff.before, &diff.after, &found));
    let (time, per) = times(&before, &after, &diff.unlike);
    let mut unlike: Vec<String> = diff.unlike.iter().filter_map(|u| why(*u, &before, &after)).collect();
    unlike.extend(per);
    if before.threads != after.threads {
        unlike.push(format!("threads: {} before, {} after", before.threads, after.threads));
    }
    Against {
        schema: SCHEMA,
        machine: after.machine.clone(),
        time,
        remote_before: before.remote.percent(),
        remote_after: after.remote.percent(),
        left: pairs.iter().map(left).collect(),
        gone,
        new,
        variables: diff.objects,
        unlike,
        before,
        after,
    }
}

/// The ids that variables before the change have after it.
struct Twins(BTreeMap<String, String>);

impl Twins {
    fn of(diff: &Diff) -> Self {
        let both = |o: &ObjectDiff| Some((o.before.as_ref()?.id.clone(), o.after.as_ref()?.id.clone()));
        Self(diff.objects.iter().filter_map(both).collect())
    }

    fn same(&self, before: &Finding, after: &Finding) -> bool {
        before.pattern == after.pattern
            && before.variables.iter().any(|b| {
                let twin = self.0.get(&b.id);
                after.variables.iter().any(|a| Some(&a.id) == twin)
            })
    }
}

/// Findings that both have, each once.
fn pairs(before: &[Finding], after: &[Finding], twins: &Twins) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (a, finding) in after.iter().enumerate() {
        let free = |b: &usize| pairs.iter().all(|(taken, _)| taken != b);
        let found = (0..before.len()).filter(free).find(|b| twins.same(&before[*b], finding));
        pairs.extend(found.map(|b| (b, a)));
    }
    pairs
}

fn worth_telling(
    object: &ObjectDiff,
    before: &homenode_report::summary::Summary,
    after: &homenode_report::summary::Summary,
    found: &[&str],
) -> bool {
    let sides = [(&object.before, before), (&object.after, after)];
    sides.into_iter().any(|(side, summary)| {
        side.as_ref().is_some_and(|side| {
            let part = |part: u64, whole: u64| {
                whole > 0 && u128::from(part) * 1000 >= u128::from(whole) * u128::from(LEAST)
            };
            found.contains(&side.id.as_str())
                || part(side.remote.part, summary.remote.part)
                || part(side.accesses.units().1, summary.accesses.units().1)
        })
    })
}

/// The times of both, or why there are none.
fn times(
    before: &Explanation,
    after: &Explanation,
    unlike: &[Unlike],
) -> (Option<TimesCompared>, Option<String>) {
    let none = |why: &str| (None, Some(why.to_owned()));
    if unlike.contains(&Unlike::Clock) {
        return none("one time is the wall clock's, the other is modelled: they do not compare");
    }
    let of = |per, before_ns: f64, after_ns: f64| {
        let relative = if before_ns > 0.0 { (after_ns / before_ns - 1.0) * 100.0 } else { 0.0 };
        (Some(TimesCompared { per, before_ns, after_ns, change: relative }), None)
    };
    match (before.rounds, after.rounds) {
        (Some(b), Some(a)) if b > 0 && a > 0 => {
            of(Per::Round, before.timed_ns as f64 / b as f64, after.timed_ns as f64 / a as f64)
        }
        (None, None) => of(Per::Run, before.timed_ns as f64, after.timed_ns as f64),
        _ => none("rounds are known on one side only: times do not compare"),
    }
}

/// Why numbers do not compare, in a sentence. None for what cannot be here.
fn why(unlike: Unlike, before: &Explanation, after: &Explanation) -> Option<String> {
    Some(match unlike {
        // A changed program often has another name.
        Unlike::Command if before.command.get(1..) == after.command.get(1..) => return None,
        Unlike::Command => format!(
            "the arguments differ: '{}' before, '{}' after",
            before.command.join(" "),
            after.command.join(" ")
        ),
        Unlike::Machine => format!("the machines differ: {} before, {} after", before.machine, after.machine),
        Unlike::CountsAndPresence => "one recording has counts, the other has presence".into(),
        Unlike::Basis => "the counts have different bases: the weaker one limits every difference".into(),
        Unlike::Scope => "one recording counts its rounds, the other counts everything".into(),
        Unlike::PageBytes => "the pages have different sizes".into(),
        Unlike::Clock => return None,
    })
}

impl Against {
    /// Percent of the time that the change saved; negative where it costs time.
    pub fn saved(&self) -> Option<f64> {
        self.time.map(|t| -t.change)
    }

    /// What lacks in the two recordings, a sentence each.
    pub fn missing(&self) -> Vec<String> {
        let of = |name: &str, e: &Explanation| -> Vec<String> {
            e.missing.iter().map(|m| format!("{name}: {m}")).collect()
        };
        [of("before", &self.before), of("after", &self.after)].concat()
    }
}
