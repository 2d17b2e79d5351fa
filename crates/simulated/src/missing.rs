//! What a recording lacks. Whoever reads a recording says so in the first line, and ends with status 3.

use homenode_log::recording::Recording;
use homenode_order::Trace;

/// What a recording lacks, a sentence each; `trace` is what was met when it was read. Empty: it is whole.
pub fn missing(recording: &Recording, trace: &Trace) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(why) = recording.stopped() {
        all.push(why);
    }
    match &recording.meta.ended {
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
    let gaps = gaps(recording);
    if !gaps.is_empty() {
        let list = gaps.iter().take(8).map(u64::to_string).collect::<Vec<_>>().join(", ");
        let more = if gaps.len() > 8 { ", …" } else { "" };
        let logs = if gaps.len() == 1 { "the log of thread" } else { "the logs of threads" };
        let are = if gaps.len() == 1 { "is" } else { "are" };
        all.push(format!("{logs} {list}{more} {are} missing"));
    }
    if trace.empty > 0 {
        all.push(format!("{} of the logs hold nothing: their threads were cut off at once", trace.empty));
    }
    if let Some(why) = &trace.damage {
        all.push(format!("simulated up to the damage: {why}"));
    }
    if trace.cut_off > 0 {
        all.push(format!("the recording was cut off: {} waits had no end", trace.cut_off));
    }
    all
}

/// Numbers of the logs that are missing between others: recorders number them from 0.
fn gaps(recording: &Recording) -> Vec<u64> {
    let number = |path: &std::path::PathBuf| path.file_stem()?.to_str()?.parse::<u64>().ok();
    let numbers: Vec<u64> = recording.logs().unwrap_or_default().iter().filter_map(number).collect();
    let most = numbers.len() as u64 * 2 + 8;
    let end = numbers.iter().max().map_or(0, |m| m.saturating_add(1)).min(most);
    (0..end).filter(|n| !numbers.contains(n)).collect()
}
