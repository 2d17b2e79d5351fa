//! The page as Markdown: the same without charts.

use std::fmt::Write as _;

use super::judge;
use super::results::{Done, Report};
use crate::verdict::Says;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut out = String::from("# Tables and figures of four papers, theirs beside ours\n\n");
    if report.partial {
        out += "**Partial:** not everything ran; the same command goes on.\n\n";
    }
    if report.small {
        out += "Smallest classes: these numbers show that everything runs, not how near it comes.\n\n";
    }
    let summary = report.summary();
    let titles: Vec<String> = summary
        .columns()
        .iter()
        .map(|c| c.title.clone() + &c.unit.map_or(String::new(), |u| format!(", {u}")))
        .collect();
    line(&mut out, &titles);
    line(&mut out, &vec!["---".to_owned(); titles.len()]);
    for row in summary.rows() {
        let text = |cell: &homenode_table::Cell| match (cell, cell.number()) {
            (homenode_table::Cell::Text(text), _) => text.clone(),
            (_, Some(value)) => judge::number(value),
            _ => "–".into(),
        };
        line(&mut out, &row.cells.iter().map(text).collect::<Vec<_>>());
    }
    out.push('\n');
    summary.legend().iter().for_each(|meaning| _ = writeln!(out, "- {meaning}"));
    let mut paper = "";
    for done in &report.done {
        if done.entry.paper != paper {
            paper = done.entry.paper;
            let _ = write!(out, "\n## {paper}\n");
        }
        section(&mut out, done);
    }
    out
}

fn line(out: &mut String, cells: &[String]) {
    let _ =
        writeln!(out, "| {} |", cells.iter().map(|c| c.replace('|', "\\|")).collect::<Vec<_>>().join(" | "));
}

fn section(out: &mut String, done: &Done) {
    let e = done.entry;
    let command = done.result["command"].as_str().unwrap_or_default();
    let _ =
        write!(out, "\n### {} ({}): {}\n\nPrograms: {}. `{command}`", e.place, e.name, e.shows, e.programs);
    if let Some(why) = done.result["error"].as_str() {
        let _ = write!(out, "\n\nDid not run: {}\n", why.replace('\n', "; "));
        return;
    }
    let _ = write!(out, ", {} s\n\n", judge::number(done.result["seconds"].as_f64().unwrap_or(0.0)));
    let columns = judge::columns(done);
    let errors = judge::errors(done);
    let mut titles: Vec<String> = columns.iter().map(|c| c.1.clone()).collect();
    titles.extend(done.entry.pairs.iter().map(|(_, ours)| format!("error of {ours}, %")));
    line(out, &titles);
    line(out, &vec!["---".to_owned(); titles.len()]);
    for row in 0..judge::rows(done).len() {
        let mut cells: Vec<String> = columns
            .iter()
            .map(|(key, _)| judge::cell(done, row, key).unwrap_or_else(|_| "–".into()))
            .collect();
        cells.extend(done.entry.pairs.iter().map(|(_, ours)| {
            let error = errors.iter().find(|e| e.row == row && e.column == *ours);
            error.map_or_else(|| "–".into(), |e| e.by.words())
        }));
        line(out, &cells);
    }
    out.push('\n');
    let orders = judge::orders(done);
    if orders.all > 0 {
        let _ = writeln!(out, "- {} of {} orders of rows are the paper's", orders.kept, orders.all);
        let told = orders.broken.iter().take(20);
        told.for_each(|b| _ = writeln!(out, "- in the paper, not here: {b}: {}", judge::why(done, b)));
    }
    for missed in judge::missed(done) {
        let _ = writeln!(out, "- not within {}: {missed}", e.near.words());
    }
    for (claim, says, numbers) in judge::verdicts(done) {
        let why = match says {
            Says::DoesNot => format!(": {}", judge::why(done, claim)),
            Says::Holds | Says::Unknown => String::new(),
        };
        let _ = writeln!(out, "- {claim}: **{}** ({numbers}){why}", says.words());
    }
    judge::texts(done, "lacks").for_each(|t| _ = writeln!(out, "- the model lacks: {t}"));
    judge::texts(done, "notes").for_each(|t| _ = writeln!(out, "- {t}"));
}
