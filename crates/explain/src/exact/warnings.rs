//! What a reader should know before the findings.

use super::run::{ExactRun, mib};
use crate::usage::ObjectUse;
use crate::warning::{Warning, WarningKind};

/// Fewer rounds are too few for a judgement.
const FEW_ROUNDS: usize = 3;
/// Percent of the recorded time in input and output from which on a warning comes. A recorded
/// program computes several times as slowly and waits as long, so that its share is larger without
/// recording.
const WAITS: u64 = 20;

/// The warnings of a recording, in the order in which a person reads them. `approximate` is why
/// counts are approximate, `missing` what the recording lacks.
pub(super) fn warnings(run: &ExactRun<'_>, approximate: Option<String>, missing: &[String]) -> Vec<Warning> {
    let all = [
        missing.first().map(|first| Warning::new(WarningKind::CutOff, first.clone())),
        fits_caches(run),
        one_thread(run),
        few_rounds(run),
        initialisation(run),
        serial(run),
        input_output(run),
        does_not_wait(run),
        unbound(run),
        approximate
            .map(|why| Warning::new(WarningKind::Approximate, format!("counts are approximate: {why}"))),
        no_names(run),
    ];
    all.into_iter().flatten().collect()
}

fn fits_caches(run: &ExactRun<'_>) -> Option<Warning> {
    let (data, caches) = run.sizes();
    (run.fits() && data > 0).then(|| {
        let text = format!(
            "the data ({}) fits the caches of {} ({}): placement shows from about {} on",
            mib(data),
            run.machine().name,
            mib(caches),
            mib(caches.saturating_mul(4))
        );
        Warning::new(WarningKind::FitsCaches, text)
    })
}

fn one_thread(run: &ExactRun<'_>) -> Option<Warning> {
    let text = "one thread ran: all of its memory is on its node; --threads N records with more";
    (run.trace.threads == 1).then(|| Warning::new(WarningKind::OneThread, text.to_owned()))
}

fn few_rounds(run: &ExactRun<'_>) -> Option<Warning> {
    let text = match run.outcome.marks.len() {
        0 | 1 => {
            "no rounds of an outer loop were found: initialisation counts; hn_iteration() tells of rounds"
                .to_owned()
        }
        2 => "only 1 round counts: record a run with more of them".to_owned(),
        marks if marks - 1 < FEW_ROUNDS => {
            format!("only {} rounds count: record a run with more of them", marks - 1)
        }
        _ => return None,
    };
    Some(Warning::new(WarningKind::FewRounds, text))
}

fn initialisation(run: &ExactRun<'_>) -> Option<Warning> {
    let (timed, time) = (run.outcome.timed.0, run.outcome.time.0);
    (run.outcome.marks.len() > 1 && timed < time / 2).then(|| {
        let percent = 100.0 - timed as f64 / time.max(1) as f64 * 100.0;
        let text =
            format!("{percent:.0} % of the time lies outside of the rounds: no finding speaks of that part");
        Warning::new(WarningKind::Initialisation, text)
    })
}

fn serial(run: &ExactRun<'_>) -> Option<Warning> {
    let work = |t: &homenode_sim::memory::ThreadTime| t.busy.0 + t.memory.0;
    let all: u64 = run.outcome.threads.iter().map(work).sum();
    let most = run.outcome.threads.iter().map(work).max().unwrap_or(0);
    let alone = all > 0 && u128::from(most) * 100 > u128::from(all) * 80;
    (run.trace.threads > 1 && alone).then(|| {
        let percent = most as f64 / all as f64 * 100.0;
        Warning::new(
            WarningKind::Serial,
            format!("one thread does {percent:.0} % of the work, the others wait"),
        )
    })
}

fn input_output(run: &ExactRun<'_>) -> Option<Warning> {
    let ended = run.loaded.recording.meta.ended.as_ref()?;
    let (waits, all) = (ended.io_wait_ns?, ended.elapsed_ns);
    let long = u128::from(waits) * 100 >= u128::from(all) * u128::from(WAITS) && all > 0;
    long.then(|| {
        let percent = waits as f64 / all as f64 * 100.0;
        let text = format!(
            "the program waits for input and output {percent:.0} % of the time while it is recorded, and \
             relatively longer without: no finding speaks of that part"
        );
        Warning::new(WarningKind::InputOutput, text)
    })
}

fn does_not_wait(run: &ExactRun<'_>) -> Option<Warning> {
    (run.waiting() < 5.0 && run.usage.accesses.seen() > 0).then(|| {
        let text = format!(
            "threads wait for memory {:.1} % of their time: placement can hardly help",
            run.waiting()
        );
        Warning::new(WarningKind::DoesNotWait, text)
    })
}

fn unbound(run: &ExactRun<'_>) -> Option<Warning> {
    let text =
        "threads are not bound, and may leave their pages behind: OMP_PROC_BIND=spread OMP_PLACES=cores";
    (!run.trace.region_pcs.is_empty() && run.trace.threads > 1 && !run.bound())
        .then(|| Warning::new(WarningKind::Unbound, text.to_owned()))
}

fn no_names(run: &ExactRun<'_>) -> Option<Warning> {
    let unnamed = |o: &&ObjectUse| o.object.line.is_none() && o.object.name.contains("+0x");
    let it = run.usage.objects.iter().find(unnamed)?;
    let text = format!("{} has no name: build with -g, unstripped, for variables and lines", it.object.name);
    Some(Warning::new(WarningKind::NoNames, text))
}
