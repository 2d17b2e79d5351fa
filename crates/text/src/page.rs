//! A recording in words: the answer, facts, tables, notes.

use std::fmt::Write as _;

use homenode_report::RecordingReport;
use homenode_report::objects::ObjectReport;

use crate::human::{plain, wrapped};
use crate::{answer, objects};

/// Lines of an answer.
const ANSWER: usize = 3;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageDetail {
    /// Columns of the output.
    pub width: usize,
    /// Headings are bold.
    pub bold: bool,
    /// Objects that are listed.
    pub top: usize,
    /// Types, times and moves, too.
    pub verbose: bool,
}

/// The recording in words.
pub fn page(report: &RecordingReport, how: PageDetail) -> String {
    let PageDetail { width, bold, top, verbose } = how;
    let used: Vec<&ObjectReport> = report.objects.iter().filter(|o| o.is_used()).collect();
    let shown = &used[..used.len().min(top)];
    let mut out = answer::partial(&report.summary);
    let mut answer = answer::lines(report, width);
    let below = answer.split_off(answer.len().min(ANSWER - usize::from(!out.is_empty())));
    for line in answer {
        let _ = writeln!(out, "{line}");
    }
    out.push('\n');
    let facts = answer::facts(&report.summary).join(" · ");
    for line in below.iter().chain(&wrapped(&facts, width)) {
        let _ = writeln!(out, "{}", plain(line));
    }
    let mut tables = vec![objects::uses(&report.summary, shown)];
    if verbose {
        tables.push(objects::types(shown));
        tables.push(objects::times_and_moves(shown));
    }
    for table in tables.iter().filter(|t| !t.is_empty()) {
        let _ = write!(out, "\n{}", table.render(width, bold));
    }
    let notes = answer::notes(report, used.len() - shown.len(), verbose);
    out.push('\n');
    for line in notes.iter().flat_map(|note| wrapped(note, width)) {
        let _ = writeln!(out, "{}", plain(&line));
    }
    out
}
