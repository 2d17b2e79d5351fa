//! Why an explanation has no finding.

use super::run::{ExactRun, mib};
use crate::effect::LEAST;
use crate::explanation::{Explanation, NoFindingReason, ReasonKind};
use crate::pattern;

/// Why there is no finding. `tried`: groups of variables whose fixes were simulated.
pub(super) fn reason(run: &ExactRun<'_>, so_far: &Explanation, tried: usize) -> NoFindingReason {
    let reason = |kind, text: String| NoFindingReason { kind, text };
    let name = &run.machine().name;
    let remote = so_far.remote.percent();
    if run.usage.accesses.seen() == 0 && run.outcome.faults == 0 {
        return reason(ReasonKind::NothingRecorded, "no access to memory was recorded".into());
    }
    if run.usage.nodes < 2 {
        let text = format!("all threads run on one node of {name}: no access is remote");
        return reason(ReasonKind::OneNode, text);
    }
    if run.fits() {
        let (data, caches) = run.sizes();
        let text = format!(
            "the data ({}) fits the caches of {name} ({}): its accesses hardly reach memory",
            mib(data),
            mib(caches)
        );
        return reason(ReasonKind::FitsCaches, text);
    }
    if remote.is_none_or(|r| r < 5.0) {
        let text = format!("{:.1} % of the accesses are remote on {name}", remote.unwrap_or(0.0));
        return reason(ReasonKind::Local, text);
    }
    if run.waiting() < 5.0 {
        let text = format!("threads wait for memory {:.1} % of their time", run.waiting());
        return reason(ReasonKind::DoesNotWait, text);
    }
    let communicates = run.usage.objects.first().is_some_and(|it| {
        let remote = pattern::remote_by_class(it);
        it.stores_inside > 0 && remote.iter().all(|r| *r <= remote[3])
    });
    if communicates {
        let text = format!(
            "nodes share the pages of {} and write them: no placement helps",
            run.usage.objects[0].object.name
        );
        return reason(ReasonKind::Communication, text);
    }
    let text = match tried {
        0 => "no variable has many remote accesses".to_owned(),
        _ => format!("no fix saves {LEAST:.0} % of the time on {name} ({tried} tried)"),
    };
    reason(ReasonKind::NothingHelps, text)
}
