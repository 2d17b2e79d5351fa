//! Findings: groups of variables whose first fix pays, and what helps the whole program.

use std::cmp::Reverse;

use homenode_error::Result;
use homenode_schemes::padding::PaddingAdvice;
use homenode_simulated::places::ObjectMap;

use super::run::ExactRun;
use super::trials::{Effects, Trials};
use super::whole_program::{leave_out_what_adds_nothing, whole_program};
use crate::effect::{LEAST, TODAY};
use crate::explanation::{Explanation, Finding, Fix, change};
use crate::group::Group;
use crate::observed;
use crate::pattern::Pattern;
use crate::remedy::{FixKind, Remedy};
use crate::warning::{Warning, WarningKind};

/// Simulates all fixes, and completes an explanation: findings whose first fix pays, all placements
/// together, and what helps the whole program.
pub(super) fn findings<'a>(
    run: &ExactRun<'a>,
    mut groups: Vec<Group<'a>>,
    padding: &[PaddingAdvice],
    explanation: &mut Explanation,
) -> Result<()> {
    let Some(collected) = &run.outcome.collected else { return Ok(()) };
    let mut trials = Trials::new(run, ObjectMap::new(&collected.extents, run.trace, run.request.page));
    let whole: Vec<(FixKind, String, usize)> = whole_program(run)
        .into_iter()
        .map(|(kind, text, job)| (kind, text, trials.whole_program(job)))
        .collect();
    let numbers: Vec<Vec<usize>> = groups.iter_mut().map(|group| trials.group(group)).collect();
    let together = trials.together(&groups);
    let packed = trials.packed(&groups);
    let effects = trials.simulate(padding)?;
    let fix = |(kind, text, number)| Fix { kind, text, at: None, effect: effects.of(number) };
    let mut whole: Vec<Fix> = whole.into_iter().map(fix).collect();
    leave_out_what_adds_nothing(&mut whole);
    let mut findings: Vec<Finding> = groups
        .into_iter()
        .zip(numbers)
        .map(|(group, numbers)| finding(run, group, &numbers, &effects, &whole))
        .filter(|f| f.fixes.first().is_some_and(pays))
        .collect();
    // The sort is stable: of equal ones the one with more remote accesses first.
    findings.sort_by_key(|f| Reverse(saved(&f.fixes)));
    findings.truncate(run.request.most);
    explanation.findings = findings;
    explanation.whole = whole;
    explanation.together = together.and_then(|number| effects.of(number));
    let one_node = packed.and_then(|number| one_node_wins(run, number, &effects, explanation));
    explanation.warnings.splice(0..0, one_node);
    Ok(())
}

/// The warning that one node alone is faster than each fix; `None` if it is not.
fn one_node_wins(
    run: &ExactRun<'_>,
    packed: usize,
    effects: &Effects<'_>,
    explanation: &Explanation,
) -> Option<Warning> {
    let least = |fixes: &[Fix]| fixes.iter().filter_map(|f| f.effect).map(|e| e.after_ns).min();
    let others = explanation.findings.iter().filter_map(|f| least(&f.fixes)).min();
    let one = effects.of(packed).filter(|one| one.change() <= -LEAST)?;
    others.is_none_or(|after| change(after, one.after_ns) <= -LEAST).then(|| {
        let text = format!(
            "one node alone is expected to win, {:.0} % less time: numactl --cpunodebind=0 --membind=0 {}",
            -one.change(),
            run.request.command
        );
        Warning::new(WarningKind::OneNodeWins, text)
    })
}

/// The finding of a group whose fixes have these numbers, with the fixes of the whole program.
fn finding<'a>(
    run: &ExactRun<'a>,
    group: Group<'a>,
    numbers: &[usize],
    effects: &Effects<'_>,
    whole: &[Fix],
) -> Finding {
    let Group { members, found, remedies, .. } = group;
    let fix = |(remedy, number): (Remedy, &usize)| Fix {
        kind: remedy.kind,
        text: remedy.text,
        at: remedy.at,
        effect: effects.of(*number),
    };
    let mut fixes: Vec<Fix> = remedies.into_iter().zip(numbers).map(fix).collect();
    if run.request.today != TODAY {
        let touches = |f: &&mut Fix| matches!(f.kind, FixKind::ParallelFirstTouch | FixKind::MatchSchedule);
        fixes.iter_mut().filter(touches).for_each(|f| f.text += ", and leave out numactl --interleave");
    }
    // Of a table the cheap fix comes first where it pays; else the copies. Of padding likewise.
    if matches!(found.pattern, Pattern::ContestedTable | Pattern::PageFalseSharing)
        && !fixes.first().is_some_and(pays)
        && fixes.get(1).is_some_and(pays)
    {
        fixes.swap(0, 1);
    }
    let mut others: Vec<Fix> = fixes.drain(1.min(fixes.len())..).collect();
    // One of the two calls: a distribution is the shorter one.
    let after =
        |kind| others.iter().find(|f| f.kind == kind && pays(f)).and_then(|f| f.effect).map(|e| e.after_ns);
    let call = match (after(FixKind::HnPlace), after(FixKind::HnDistribute)) {
        (Some(place), Some(distribute)) if change(place, distribute) >= LEAST => FixKind::HnPlace,
        (_, Some(_)) => FixKind::HnDistribute,
        (_, None) => FixKind::HnPlace,
    };
    others
        .retain(|f| !matches!(f.kind, FixKind::HnPlace | FixKind::HnDistribute) || f.kind == call && pays(f));
    others.extend(whole.iter().filter(|f| pays(f)).cloned());
    // The sort is stable: of fixes that take as much effort the one that saves more.
    others.sort_by_key(|f| (f.kind.effort(), Reverse(f.effect.map_or(0, |e| e.saved_ns()))));
    fixes.extend(others);
    observed::finding(run.usage, &members, &found, fixes)
}

/// Whether a fix saves enough.
fn pays(fix: &Fix) -> bool {
    fix.effect.is_some_and(|e| e.change() <= -LEAST)
}

/// Time that the first fix saves.
fn saved(fixes: &[Fix]) -> u64 {
    fixes.first().and_then(|f| f.effect).map_or(0, |e| e.saved_ns())
}
