//! An explanation as a table, which `--fail-if` judges.

use homenode_explain::Explanation;
use homenode_explain::explanation::Finding;
use homenode_table::{Cell, Column, Table};

/// The table without rows: what a condition may name.
pub fn columns() -> Table {
    Table::new(
        "explain",
        1,
        vec![
            Column::text("finding", "finding"),
            Column::number("findings", "findings"),
            Column::unit("remote", "remote", "%"),
            Column::unit("saved", "saved", "%"),
        ],
    )
}

/// A row for everything, then one a finding.
pub fn table(explanation: &Explanation) -> Table {
    let mut table = columns();
    let saved = |f: &Finding| f.fixes.first().and_then(|fix| fix.effect).map(|e| -e.change());
    let cell =
        |value: Option<f64>, why: &str| value.map_or_else(|| Cell::missing(why), |v| Cell::float(v, 1));
    let most = explanation.findings.iter().filter_map(saved).fold(0.0, f64::max);
    table.row(vec![
        Cell::text("all"),
        Cell::int(explanation.findings.len() as u64),
        cell(explanation.remote.percent(), "no accesses"),
        Cell::float(most, 1),
    ]);
    for finding in &explanation.findings {
        table.row(vec![
            Cell::text(finding.variables.first().map_or("", |v| v.name.as_str())),
            Cell::missing("not one finding's"),
            cell(finding.remote.percent(), "no accesses"),
            cell(saved(finding), "nothing was simulated"),
        ]);
    }
    table
}
