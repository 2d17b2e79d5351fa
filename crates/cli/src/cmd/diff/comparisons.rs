//! `homenode diff` of two results of `homenode compare --json`.

use homenode_report::compared::Compared;

use crate::args::diff::DiffArgs;
use crate::exit::Exit;
use homenode_error::{Context as _, FailureKind, Result};
use homenode_table::{Cell, Column, Table};

/// Keys of the columns for before, after and their ratio.
const KEYS: &[(&str, [&str; 3])] = &[
    ("time", ["time_before", "time_after", "time_ratio"]),
    ("modelled", ["modelled_before", "modelled_after", "modelled_ratio"]),
    ("remote", ["remote_before", "remote_after", "remote_ratio"]),
    ("moved", ["moved_before", "moved_after", "moved_ratio"]),
];

pub fn run(args: &DiffArgs, before: &str, after: &str) -> Result<Exit> {
    let read = |text, path: &std::path::Path| {
        Compared::from_json(text)
            .context(|| format!("cannot read the comparison {}", path.display()))
            .map_err(|e| e.kind(FailureKind::Usage))
    };
    let (before, after) = (read(before, &args.before)?, read(after, &args.after)?);
    let diff = before.diff(&after);
    let mut columns = Vec::new();
    let machines = diff.rows.iter().any(|r| r.machine.is_some());
    if machines {
        columns.push(Column::text("machine", "machine"));
    }
    columns.push(Column::text("scheme", "scheme"));
    for column in &diff.columns {
        let Some((key, keys)) = KEYS.iter().find(|(key, _)| *key == column.key) else { continue };
        let unit = match *key {
            "remote" => Some("%"),
            "moved" => None,
            _ => Some("s"),
        };
        columns.push(Column { unit, ..Column::number(keys[0], format!("{} before", column.title)) });
        columns.push(Column { unit, ..Column::number(keys[1], "after") });
        if *key != "moved" {
            columns.push(Column::number(keys[2], "ratio"));
        }
    }
    let mut table = Table::new("diff-compare", 1, columns);
    let mut same = 0;
    for row in &diff.rows {
        if row.in_both && !args.all && row.numbers.iter().all(|p| p.before == p.after) {
            same += 1;
            continue;
        }
        let mut cells = Vec::new();
        if machines {
            cells.push(row.machine.as_deref().map_or_else(|| Cell::missing("only one machine"), Cell::text));
        }
        cells.push(Cell::text(row.scheme.as_str()));
        for (column, pair) in diff.columns.iter().zip(&row.numbers) {
            let digits = match column.key.as_str() {
                "moved" => 0,
                "remote" => 2,
                _ => 4,
            };
            let why =
                if row.in_both { "the result has no number there" } else { "one result lacks the scheme" };
            let number = |n: Option<f64>| n.map_or_else(|| Cell::missing(why), |n| Cell::float(n, digits));
            cells.push(number(pair.before));
            cells.push(number(pair.after));
            if column.key != "moved" {
                let ratio = pair.before.zip(pair.after).filter(|(b, _)| *b != 0.0).map(|(b, a)| a / b);
                cells.push(ratio.map_or_else(|| Cell::missing("needs both"), |r| Cell::float(r, 3)));
            }
        }
        table.row(cells);
    }
    if same > 0 {
        table.note(format!("{same} schemes did not change; --all shows them"));
    }
    if before.schema != after.schema {
        table.note("one comparison was simulated, the other ran on the lab");
    }
    args.output.print(&table)
}
