//! `homenode diff`.

use std::fs;
use std::path::Path;

use homenode_measure::{Change, Measurement, diff};

use crate::args::measure::DiffArgs;
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::table::{Cell, Column, Table};

impl DiffArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let (a, b) = (read(&self.a)?, read(&self.b)?);
        let columns = vec![
            Column::text("cell", "cell"),
            Column::text("unit", "unit"),
            Column::number("a", "A"),
            Column::number("b", "B"),
            Column::number("ratio", "B/A"),
            Column::text("change", "change"),
        ];
        let mut table = Table::new("measure-diff", 1, columns);
        table.fact("a", Cell::text(self.a.display().to_string()));
        table.fact("b", Cell::text(self.b.display().to_string()));
        let all = diff(&a, &b);
        let mut same = 0;
        for d in &all {
            if d.change == Change::Same && !self.all {
                same += 1;
                continue;
            }
            let number = |c: Option<&homenode_measure::Cell>| {
                let value = c.and_then(|c| c.value);
                value
                    .map_or_else(|| Cell::missing("not measured, or its check failed"), |v| Cell::float(v, 1))
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
        self.output.print(&table)
    }
}

const fn word(change: Change) -> &'static str {
    match change {
        Change::Same => "same",
        Change::Better => "better",
        Change::Worse => "worse",
        Change::OneSided => "only one",
        Change::Neither => "neither",
    }
}

fn read(path: &Path) -> Result<Measurement> {
    let cannot = || format!("cannot read the measurement {}", path.display());
    let hint = |e: CliError| e.hint("'homenode measure --json > FILE' makes one").code(Exit::Usage);
    let text = fs::read_to_string(path).context(cannot).map_err(hint)?;
    Measurement::from_json(&text).context(cannot).map_err(hint)
}
