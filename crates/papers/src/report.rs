//! All tables and figures in one page: theirs beside ours, charts, errors, orders, conclusions.
//!
//! A result is kept in a folder under a name made from everything that it depends on: this program,
//! the kernels' sources, the machine, what was asked for. A report that was interrupted goes on
//! where it stopped. What is measured on this machine is never kept.

mod html;
mod judge;
mod keep;
mod markdown;
mod results;
mod svg;

use std::path::{Path, PathBuf};
use std::time::Instant;

use homenode_error::{Context, Error, FailureKind, Result};
use homenode_table::{Cell, Column, Table};
use homenode_task::Task;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::catalogue::{ENTRIES, Entry};
use crate::verdict::{Says, Shown};
use keep::Keep;
pub use results::{Done, Report};

/// The form of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// One file with charts.
    Html,
    /// Without charts.
    Markdown,
}

impl Page {
    /// What the end of a file's name says.
    ///
    /// # Errors
    /// It ends otherwise.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("html" | "htm") => Ok(Self::Html),
            Some("md") => Ok(Self::Markdown),
            _ => Err(Error::usage(format!("cannot tell what {} is to be", path.display()))
                .hint("names of reports end in .html or .md")),
        }
    }
}

/// Where results are kept, beside the kernels' builds.
///
/// # Errors
/// There is no place for them.
pub fn folder() -> Result<PathBuf> {
    Ok(homenode_kernels::cache()?.with_file_name("paper"))
}

/// Runs everything that `ask` wants, or takes it from `folder`.
///
/// # Errors
/// `folder` cannot be used; no table or figure has any of the programs asked for.
pub fn all(ask: &Ask, folder: &Path, task: &dyn Task) -> Result<Report> {
    let keep = Keep::new(folder)?;
    let wanted = |e: &&Entry| {
        e.is_in_the_paper() && (ask.programs.is_empty() || ask.programs.iter().any(|p| e.takes(p)))
    };
    let entries: Vec<&'static Entry> = ENTRIES.iter().filter(wanted).collect();
    if entries.is_empty() {
        return Err(Error::usage(format!("no table or figure has {}", ask.programs.join(", ")))
            .hint("'homenode paper list' names their programs"));
    }
    let mut report = Report { done: Vec::new(), partial: false, small: ask.small };
    let mut pace = Pace::new(&entries, ask.small);
    for (i, entry) in entries.iter().enumerate() {
        // What one paper's tables do not know, they are not asked for.
        let ask = Ask {
            programs: ask.programs.iter().filter(|p| entry.takes(p)).cloned().collect(),
            ..ask.clone()
        };
        let name = keep.name(entry, &ask)?;
        if let Some(result) = name.as_deref().and_then(|name| keep.get(name)) {
            task.remark(&format_args!("{} of {}: {} is there already", i + 1, entries.len(), entry.name));
            pace.skip(entry);
            report.done.push(Done { entry, result });
            continue;
        }
        task.remark(&format_args!("{} of {}: {}{}", i + 1, entries.len(), entry.name, pace.words(entry)));
        let begun = Instant::now();
        let result = match entry.run(&ask, task) {
            Ok(shown) => document(entry, shown, begun.elapsed().as_secs_f64(), ask.small)?,
            Err(e) if e.kind == FailureKind::Partial || task.stop_asked() => {
                report.partial = true;
                break;
            }
            Err(e) => {
                report.partial = true;
                json!({ "error": e.to_string(), "command": entry.command(ask.small) })
            }
        };
        pace.done(entry, begun.elapsed().as_secs_f64());
        if result.get("error").is_none()
            && let Some(name) = &name
        {
            keep.put(name, &result)?;
        }
        report.done.push(Done { entry, result });
    }
    Ok(report)
}

/// The table's JSON with what a report says besides.
fn document(entry: &Entry, shown: Shown, seconds: f64, small: bool) -> Result<Value> {
    let mut value: Value = serde_json::from_str(&shown.table.to_json())
        .context(|| format!("cannot make JSON of {}", entry.name))?;
    let verdict = |v: &crate::verdict::Conclusion| json!({ "claim": v.claim, "says": v.says.words(), "numbers": v.numbers });
    value["verdicts"] = shown.verdicts.iter().map(verdict).collect();
    value["lacks"] = json!(shown.lacks);
    value["seconds"] = json!(seconds);
    value["command"] = json!(entry.command(small));
    Ok(value)
}

/// How much is left, from what the finished ones took beside their estimates.
struct Pace {
    small: bool,
    left: f64,
    estimated: f64,
    took: f64,
}

impl Pace {
    fn new(entries: &[&Entry], small: bool) -> Self {
        let left = entries.iter().map(|e| f64::from(e.estimate(small))).sum();
        Self { small, left, estimated: 0.0, took: 0.0 }
    }
    fn skip(&mut self, entry: &Entry) {
        self.left -= f64::from(entry.estimate(self.small));
    }
    fn done(&mut self, entry: &Entry, seconds: f64) {
        self.skip(entry);
        self.estimated += f64::from(entry.estimate(self.small));
        self.took += seconds;
    }
    fn words(&self, entry: &Entry) -> String {
        let slower = if self.estimated > 0.0 { self.took / self.estimated } else { 1.0 };
        let this = f64::from(entry.estimate(self.small)) * slower;
        format!(", about {this:.0} s; {:.0} s left in all", self.left * slower)
    }
}

impl Report {
    /// Writes a page, HTML or Markdown as the end of its name says.
    ///
    /// # Errors
    /// The name ends otherwise; the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = match Page::of(path)? {
            Page::Html => html::page(self),
            Page::Markdown => markdown::page(self),
        };
        std::fs::write(path, text).context(|| format!("cannot write the report {}", path.display()))
    }

    /// A row a table or figure: cells, errors, orders, conclusions, time.
    pub fn summary(&self) -> Table {
        let columns = vec![
            Column::text("name", "name"),
            Column::number("cells", "cells"),
            Column::unit("median_error", "median error", "%"),
            Column::number("orders", "orders"),
            Column::number("orders_kept", "kept"),
            Column::number("holds", "holds"),
            Column::number("does_not", "does not"),
            Column::number("unknown", "cannot be said"),
            Column::unit("seconds", "took", "s"),
        ];
        let mut table = Table::new("paper-all", 1, columns);
        for done in &self.done {
            let mut row = vec![Cell::text(done.entry.name)];
            if let Some(why) = done.result["error"].as_str() {
                let why = why.replace('\n', "; ");
                row.extend((1..table.width()).map(|_| Cell::missing(why.clone())));
                table.row(row);
                table.note(format!("{}: {why}", done.entry.name));
                continue;
            }
            let errors = judge::errors(done);
            let orders = judge::orders(done);
            row.push(Cell::int(errors.len() as u64));
            row.push(match judge::median(&errors) {
                Some(m) => Cell::float(m, 1),
                None => Cell::missing("the paper prints no number beside ours"),
            });
            row.extend([Cell::int(orders.all as u64), Cell::int(orders.kept as u64)]);
            row.extend(
                [Says::Holds, Says::DoesNot, Says::Unknown]
                    .map(|s| Cell::int(judge::verdicts(done).filter(|v| v.1 == s).count() as u64)),
            );
            row.push(Cell::float(done.result["seconds"].as_f64().unwrap_or(0.0), 1));
            table.row(row);
        }
        table.explain("cells: numbers that the paper prints and we have; median error: of ours over theirs");
        table.explain(
            "orders: pairs of rows that differ in the paper; kept: those that differ the same way here",
        );
        table.explain("holds, does not, cannot be said: the paper's conclusions");
        if self.partial {
            table.warn("partial: not everything ran; the same command goes on");
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_table::Table;

    /// A result of `lof-table1` with two programs' rows.
    pub(super) fn example() -> Report {
        let entry = Entry::find("lof-table1").unwrap();
        let columns = vec![
            Column::text("program", "program"),
            Column::text("scheme", "scheme"),
            Column::number("paper", "paper"),
            Column::number("ours", "ours"),
        ];
        let mut table = Table::new("lof-table1", 1, columns);
        for (program, scheme, theirs, ours) in
            [("A<B", "UMA", 1.0, 1.0), ("A<B", "SI", 1.5, 1.2), ("C", "UMA", 1.0, 1.0), ("C", "SI", 1.1, 0.9)]
        {
            let row = [Cell::text(program), Cell::text(scheme), Cell::float(theirs, 2), Cell::float(ours, 2)];
            table.row(row.to_vec());
        }
        table.row(vec![Cell::text("C"), Cell::text("PI"), Cell::missing("not printed"), Cell::float(1.0, 2)]);
        let mut shown = Shown::new(table);
        shown.judge("SI is slower", Says::DoesNot, "0.9 & less");
        shown.lacks.push("a thing");
        let result = document(entry, shown, 2.5, true).unwrap();
        let failed = Entry::find("tao-fig2").unwrap();
        let error = json!({ "error": "no compiler\n  help: get one", "command": "homenode paper tao-fig2" });
        let done = vec![Done { entry, result }, Done { entry: failed, result: error }];
        Report { done, partial: true, small: true }
    }

    #[test]
    fn the_summary_counts() {
        let summary = example().summary();
        let row: Vec<Option<f64>> = summary.rows()[0].cells.iter().skip(1).map(Cell::number).collect();
        // Errors of 0, 20, 0 and 18.2 %; SI above UMA in both programs, here in one.
        assert_eq!(row[0], Some(4.0));
        assert!((row[1].unwrap() - 9.09).abs() < 0.01, "{row:?}");
        assert_eq!(row[2..], [Some(2.0), Some(1.0), Some(0.0), Some(1.0), Some(0.0), Some(2.5)]);
        assert!(summary.notes().iter().any(|n| n.contains("no compiler")));
        assert!(!summary.warnings().is_empty());
    }

    #[test]
    fn a_report_is_written_as_its_name_says() {
        let folder = std::env::temp_dir().join(format!("homenode-papers-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let report = example();
        for (name, has) in [
            (
                "r.html",
                ["<svg", "A&lt;B", "does not hold", "no compiler", "homenode paper lof-table1 --small"],
            ),
            (
                "r.md",
                ["| program |", "A<B", "does not hold", "no compiler", "homenode paper lof-table1 --small"],
            ),
        ] {
            report.write(&folder.join(name)).unwrap();
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            for part in has {
                assert!(text.contains(part), "{name} lacks {part}: {text}");
            }
        }
        assert!(report.write(&folder.join("r.pdf")).is_err() && Page::of("r".as_ref()).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_estimate_follows_what_was_seen() {
        let entries: Vec<&Entry> = ENTRIES.iter().filter(|e| e.paper.starts_with("Rob")).collect();
        let mut pace = Pace::new(&entries, false);
        let total: u32 = entries.iter().map(|e| e.seconds).sum();
        assert_eq!(
            pace.words(entries[0]),
            format!(", about {} s; {total} s left in all", entries[0].seconds)
        );
        pace.done(entries[0], 3.0 * f64::from(entries[0].seconds));
        let left = 3 * (total - entries[0].seconds);
        assert!(pace.words(entries[1]).ends_with(&format!("{left} s left in all")));
    }
}
