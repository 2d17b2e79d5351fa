//! A finished recording, and what homenode says about it.

use std::fmt::Write as _;
use std::process::ExitStatus;
use std::time::Duration;

use homenode_error::digits::grouped;
use homenode_log::recording::Recording;
use homenode_log::sharing;

use super::directory::OUTPUT;
use super::finish::RecordingContents;
use super::names::shown;

/// A finished recording.
#[derive(Debug)]
pub struct Recorded {
    /// It.
    pub recording: Recording,
    /// How the program ended.
    pub status: ExitStatus,
    /// How long it took.
    pub elapsed: Duration,
    /// What is in it.
    pub summary: RecordingContents,
    /// What went wrong without being fatal, for a person.
    pub trouble: Vec<String>,
}

impl Recorded {
    /// The last line of what the program wrote to [`OutputTarget::File`](super::OutputTarget::File).
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.recording.path.join(OUTPUT)).unwrap_or_default();
        text.lines()
            .rev()
            .find(|l| !l.trim().is_empty())
            .unwrap_or("(it wrote nothing)")
            .chars()
            .take(300)
            .collect()
    }

    /// Whether the recording covers the program from its start to its end.
    pub fn complete(&self) -> bool {
        self.why_incomplete().is_none()
    }

    /// Why the recording does not cover all of the program; `None` when it does.
    pub fn why_incomplete(&self) -> Option<String> {
        self.summary.why_incomplete(&self.recording)
    }
}

/// The report on a recording: lines for a person. `quiet`: only what is wrong.
pub fn report(recorded: &Recorded, quiet: bool) -> String {
    let Recorded { recording, summary, elapsed, .. } = recorded;
    let mut out = String::new();
    let path = shown(&recording.path);
    let why = recorded.why_incomplete();
    let mut line = |text: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{text}");
    };
    if summary.threads == 0 {
        line(format_args!("homenode: {path}: nothing was recorded"));
        match recording.stopped() {
            Some(stopped) => line(format_args!("  ! {stopped}")),
            None => {
                line(format_args!(
                    "  ! nothing of what ran was built with homenode-cc, -c++ or -fc, or it could not"
                ));
                line(format_args!(
                    "    load libhomenode_trace.so; build it with CC=homenode-cc and record again"
                ));
            }
        }
    } else if !quiet || why.is_some() || summary.shared_lines > 0 || !recorded.trouble.is_empty() {
        let whole = if why.is_none() { "recorded" } else { "recorded in part" };
        line(format_args!(
            "homenode: {whole}: {path}, {:.1} s, {} {}",
            elapsed.as_secs_f64(),
            summary.threads,
            if summary.threads == 1 { "thread" } else { "threads" },
        ));
        if !quiet {
            line(format_args!("  {}", counts(recording, summary)));
            line(format_args!("  {}", size(summary)));
        }
        if let Some(why) = &why {
            line(format_args!("  ! incomplete: {why}"));
        }
        for damage in &summary.damage {
            line(format_args!("  ! {damage}"));
        }
        if summary.shared_lines > 0 {
            line(format_args!(
                "  ! {}{}",
                sharing::describe(summary.shared_lines, summary.regions > 0 && summary.fences == 0),
                if summary.capped > 0 {
                    "; so often that later uses were filtered: their counts are too low"
                } else {
                    ""
                }
            ));
        }
        if summary.dropped > 0 {
            line(format_args!("  ! {} events in signal handlers are missing", grouped(summary.dropped)));
        }
    }
    for trouble in &recorded.trouble {
        line(format_args!("  ! {trouble}"));
    }
    if !quiet && summary.threads > 0 {
        line(format_args!("  next: homenode explain {path}"));
    }
    out
}

fn counts(recording: &Recording, summary: &RecordingContents) -> String {
    let filter = match recording.meta.filter_lines {
        0 => "no filter".to_owned(),
        lines => format!("filter of {lines} lines"),
    };
    let share = summary.recorded as f64 * 100.0 / summary.accesses.max(1) as f64;
    let mut text = format!(
        "{}, {filter}: {} accesses, {} passed ({share:.2} %), regions run: {}",
        recording.meta.kind,
        grouped(summary.accesses),
        grouped(summary.recorded),
        grouped(summary.regions),
    );
    if summary.iterations > 0 {
        let _ = write!(text, ", iterations: {}", grouped(summary.iterations));
    }
    text
}

fn size(summary: &RecordingContents) -> String {
    let per_event = summary.bytes as f64 / summary.events().max(1) as f64;
    let (size, unit) = match summary.bytes {
        0..10_000 => (summary.bytes as f64, "bytes"),
        10_000..10_000_000 => (summary.bytes as f64 / 1e3, "kB"),
        _ => (summary.bytes as f64 / 1e6, "MB"),
    };
    let digits = usize::from(summary.bytes >= 10_000);
    format!("{size:.digits$} {unit}: {} events of {per_event:.2} bytes", grouped(summary.events()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_readable() {
        let of =
            |bytes, recorded| size(&RecordingContents { bytes, recorded, ..RecordingContents::default() });
        assert_eq!(of(900, 300), "900 bytes: 300 events of 3.00 bytes");
        assert_eq!(of(2_500_000, 1_000_000), "2500.0 kB: 1 000 000 events of 2.50 bytes");
        assert_eq!(of(0, 0), "0 bytes: 0 events of 0.00 bytes");
    }
}
