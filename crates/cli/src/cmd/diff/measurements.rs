//! `homenode diff` of two measurements.

use homenode_measure::{CellChange, Measurement, diff};

use crate::args::diff::DiffArgs;
use crate::exit::Exit;
use homenode_error::{Context, Error, FailureKind, Result};
use homenode_table::{Cell, Column, Table};

/// Compares two measurements by their JSON.
pub fn run(args: &DiffArgs, before: &str, after: &str) -> Result<Exit> {
    let a = read(before, &args.before)?;
    let b = read(after, &args.after)?;
    let columns = vec![
        Column::text("cell", "cell"),
        Column::text("unit", "unit"),
        Column::number("a", "A"),
        Column::number("b", "B"),
        Column::number("ratio", "B/A"),
        Column::text("change", "change"),
    ];
    let mut table = Table::new("measure-diff", 1, columns);
    table.fact("a", Cell::text(args.before.display().to_string()));
    table.fact("b", Cell::text(args.after.display().to_string()));
    let all = diff(&a, &b);
    let mut same = 0;
    for d in &all {
        if d.change == CellChange::Same && !args.all {
            same += 1;
            continue;
        }
        let number = |c: Option<&homenode_measure::MeasuredCell>| {
            let value = c.and_then(|c| c.value);
            value.map_or_else(|| Cell::missing("not measured, or its check failed"), |v| Cell::float(v, 1))
        };
        let unit = d.a.or(d.b).map_or("", |c| c.unit.name());
        table.row(vec![
            Cell::text(d.subject.to_string()),
            Cell::text(unit),
            number(d.a),
            number(d.b),
            d.ratio.map_or_else(|| Cell::missing("needs both"), |r| Cell::float(r, 3)),
            Cell::text(word(d.change)),
        ]);
    }
    if same > 0 {
        table.note(format!("{same} cells are the same within their noise or 2 %; --all shows them"));
    }
    if a.host.nodes.len() != b.host.nodes.len() || a.host.cpu_model != b.host.cpu_model {
        table.note("these are different machines");
    }
    args.output.print(&table)
}

const fn word(change: CellChange) -> &'static str {
    match change {
        CellChange::Same => "same",
        CellChange::Better => "better",
        CellChange::Worse => "worse",
        CellChange::OneSided => "only one",
        CellChange::Neither => "neither",
    }
}

fn read(text: &str, path: &std::path::Path) -> Result<Measurement> {
    let cannot = || format!("cannot read the measurement {}", path.display());
    let hint = |e: Error| e.hint("'homenode measure --json > FILE' makes one").kind(FailureKind::Usage);
    Measurement::from_json(text).context(cannot).map_err(hint)
}
