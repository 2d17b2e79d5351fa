//! What a recording lacks. Whoever reads a recording says so in the first line, and ends with
//! status 3.

use std::collections::BTreeSet;

use homenode_log::Mark;
use homenode_log::recording::Recording;
use homenode_order::Trace;

/// What a recording lacks, a sentence each; `trace` is what was met when it was read. Empty: it is
/// whole.
pub fn missing(recording: &Recording, trace: &Trace) -> Vec<String> {
    let mut all = Vec::from_iter(recording.damage.clone());
    if let Some(why) = recording.stopped() {
        all.push(why);
    }
    match &recording.meta.ended {
        // The description is damaged, and each log has its end.
        None if recording.damage.is_some() && trace.unfinished == 0 => {}
        None => all.push(
            "the recording was cut off: it has no end; the recorder was killed, or the program still runs"
                .to_owned(),
        ),
        Some(ended) if trace.unfinished > 0 => {
            let how = match ended.signal {
                Some(signal) => format!("signal {signal} ended the program"),
                None => "the program ended without telling the recorder".into(),
            };
            let (of, have) = (trace.threads, if trace.unfinished == 1 { "has" } else { "have" });
            all.push(format!(
                "the recording was cut off: {how}; {} of {of} threads {have} no end",
                trace.unfinished
            ));
        }
        Some(_) => {}
    }
    all.extend(gaps(recording));
    if trace.empty > 0 {
        all.push(match trace.empty {
            1 => "1 thread was cut off at once: its log holds nothing".into(),
            n => format!("{n} threads were cut off at once: their logs hold nothing"),
        });
    }
    if let Some(why) = &trace.damage {
        all.push(format!("simulated up to the damage: {why}"));
    }
    if trace.cut_off > 0 {
        let waits = if trace.cut_off == 1 { "wait" } else { "waits" };
        all.push(format!("the recording was cut off: {} {waits} had no end", trace.cut_off));
    }
    all
}

/// Whose logs are missing between those that are there, in words.
pub fn gaps(recording: &Recording) -> Option<String> {
    let number = |path: &std::path::PathBuf| path.file_stem()?.to_str()?.parse::<u64>().ok();
    let numbers: BTreeSet<u64> = recording.logs().unwrap_or_default().iter().filter_map(number).collect();
    let most = numbers.len() as u64 * 2 + 8;
    let end = numbers.last().map_or(0, |m| m.saturating_add(1)).min(most);
    let gaps: Vec<u64> = (0..end).filter(|n| !numbers.contains(n)).collect();
    (!gaps.is_empty()).then(|| {
        let list = gaps.iter().take(8).map(u64::to_string).collect::<Vec<_>>().join(", ");
        let more = if gaps.len() > 8 { ", …" } else { "" };
        let logs = if gaps.len() == 1 { "the log of thread" } else { "the logs of threads" };
        let are = if gaps.len() == 1 { "is" } else { "are" };
        format!("{logs} {list}{more} {are} missing")
    })
}

/// Whether members of parallel regions have no log, in words. Of a recording that was cut off it
/// says nothing. Reads the marks of all logs.
pub fn members_without_log(recording: &Recording) -> Option<String> {
    let (begun, expected) = members(recording);
    let lacking = expected.saturating_sub(begun);
    (lacking > 0).then(|| {
        format!(
            "the log of a thread is missing: members of parallel regions began {begun} times of {expected}"
        )
    })
}

/// How often members of parallel regions began, and how often they should have: the first member of
/// a team says how many there are.
fn members(recording: &Recording) -> (u64, u64) {
    let (mut begun, mut expected) = (0_u64, 0_u64);
    let counted = recording.for_marks(|mark| {
        if let Mark::TaskBegin { number, team, .. } = mark {
            begun += 1;
            expected = expected.saturating_add(if number == 0 { team } else { 0 });
        }
    });
    if counted.is_ok() { (begun, expected) } else { (0, 0) }
}
