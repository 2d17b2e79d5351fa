//! `homenode diff` of two folders of recordings: those of one name go together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use homenode_report::diff::{Diff, ObjectDiff};
use homenode_report::summary::Summary;
use serde::Serialize;

use super::report::report;
use crate::args::diff::DiffArgs;
use crate::cmd::show::json_of;
use crate::exit::Exit;
use crate::output::{Format, to_stdout};
use homenode_error::Result;
use homenode_table::{Cell, Column, Table};
use homenode_text::answer::named;

type Found = [(String, PathBuf)];

/// Objects of each pair in JSON, unless --top says otherwise.
const TOP: usize = 20;

pub fn run(args: &DiffArgs, before: &Found, after: &Found) -> Result<Exit> {
    let mut names: BTreeMap<&str, [Option<&Path>; 2]> = BTreeMap::new();
    for (i, found) in [before, after].into_iter().enumerate() {
        for (name, path) in found {
            names.entry(name).or_default()[i] = Some(path);
        }
    }
    let mut table = Table::new("diff-folders", 1, columns());
    let mut pairs = Vec::new();
    let mut whole = true;
    for (name, paths) in names {
        let [Some(before), Some(after)] = paths else {
            let only = if paths[0].is_some() { "before" } else { "after" };
            table.row(lacking(name, only));
            pairs.push(Pair { name, only: Some(only), diff: None });
            continue;
        };
        let (before, after) = (report(before)?, report(after)?);
        let mut diff = Diff::of(&before, &after);
        diff.objects.retain(ObjectDiff::is_changed);
        whole &= diff.whole;
        table.row(row(name, &diff));
        if !diff.whole {
            table.note(format!("{name}: a recording is not whole"));
        }
        for (when, s) in [("BEFORE", &diff.before), ("AFTER", &diff.after)] {
            s.missing.iter().for_each(|m| table.note(format!("{name}, {when}: {m}")));
        }
        diff.objects.truncate(args.top.unwrap_or(TOP));
        pairs.push(Pair { name, only: None, diff: Some(diff) });
    }
    let exit = args.output.judge(&table)?;
    match args.output.format() {
        Format::Json => {
            to_stdout(&json_of(&Document { schema: "homenode/diff-folders/1", whole, pairs })?)?;
        }
        _ => {
            if !whole && matches!(args.output.format(), Format::Table | Format::Markdown) {
                to_stdout("not whole: see the notes below\n\n")?;
            }
            args.output.print(&table)?;
        }
    }
    Ok(if whole || exit != Exit::Done { exit } else { Exit::Partial })
}

/// The form of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    whole: bool,
    pairs: Vec<Pair<'a>>,
}

/// Two recordings of one name.
#[derive(Serialize)]
struct Pair<'a> {
    name: &'a str,
    /// The only folder that has it: `before` or `after`. None: both have it.
    only: Option<&'a str>,
    diff: Option<Diff>,
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("recording", "recording"),
        Column::unit("remote_before", "remote before", "%"),
        Column::unit("remote_after", "after", "%"),
        Column::unit("iteration_before", "iteration before", "ms"),
        Column::unit("iteration_after", "after", "ms"),
        Column::number("moved_before", "moved before"),
        Column::number("moved_after", "after"),
        Column::text("changed_most", "changed most"),
    ]
}

fn lacking(name: &str, only: &str) -> Vec<Cell> {
    let why = format!("only in the folder {only}");
    let mut cells = vec![Cell::text(name)];
    cells.resize(columns().len(), Cell::missing(why));
    cells
}

fn row(name: &str, diff: &Diff) -> Vec<Cell> {
    let remote = |s: &Summary| match s.remote.percent() {
        Some(percent) => Cell::Percent(percent, 1),
        None => Cell::missing("no accesses are recorded"),
    };
    let iteration = |s: &Summary| match s.iterations {
        Some(i) => Cell::float(i.median_ns.0 as f64 / 1e6, 3),
        None => Cell::missing("no iterations are known"),
    };
    let most = diff.objects.first().map(|o| named(&o.name, true));
    vec![
        Cell::text(name),
        remote(&diff.before),
        remote(&diff.after),
        iteration(&diff.before),
        iteration(&diff.after),
        Cell::int(diff.pages_moved_before),
        Cell::int(diff.pages_moved_after),
        most.map_or_else(|| Cell::missing("no object changed"), Cell::text),
    ]
}
