//! A measurement as a table with a row a cell, and as matrices for people.

mod matrices;

pub use matrices::matrices;

use homenode_measure::{Credibility, Measurement, Subject};
use homenode_table::{Cell, Column, Table};

/// A row a cell: `--csv`, `--fail-if`.
pub fn table(m: &Measurement) -> Table {
    let columns = vec![
        Column::text("kind", "kind"),
        Column::text("cell", "cell"),
        Column::number("cpu_node", "thread's node"),
        Column::number("memory_node", "memory's node"),
        Column::number("value", "value"),
        Column::text("unit", "unit"),
        Column::text("verdict", "verdict"),
        Column::number("min", "min"),
        Column::number("median", "median"),
        Column::number("p99", "p99"),
        Column::number("cv", "cv"),
        Column::number("cv_of_median", "cv of the median"),
        Column::number("slit", "SLIT"),
        Column::number("hmat", "HMAT"),
        Column::text("why", "why"),
    ];
    let mut table = Table::new("measure-cells", 1, columns);
    for c in &m.cells {
        let (kind, pair) = about(&c.subject);
        let (verdict, why) = match &c.verdict {
            Credibility::Ok => ("ok", String::new()),
            Credibility::Noisy => ("noisy", String::new()),
            Credibility::Failed { why } => ("failed", why.clone()),
            Credibility::Absent { why, remedy } => ("absent", format!("{why}; {remedy}")),
        };
        let float = |v: Option<f64>| v.map_or_else(|| Cell::missing("not measured"), |v| Cell::float(v, 3));
        let node = |n: Option<homenode_measure::NodeNumber>| {
            n.map_or_else(|| Cell::missing("several"), |n| Cell::int(n.0))
        };
        let summary = c.summary.filter(|_| c.is_measured());
        let slit = pair.and_then(|(a, b)| m.host.distance(a, b));
        let hmat = pair.and_then(|(a, b)| m.host.firmware(a, b));
        let hmat = hmat.and_then(|f| if kind == "bandwidth" { f.read_mb_per_s } else { f.read_ns });
        table.row(vec![
            Cell::text(kind),
            Cell::text(c.subject.to_string()),
            node(pair.map(|p| p.0)),
            node(pair.map(|p| p.1)),
            float(c.value),
            Cell::text(c.unit.name()),
            Cell::text(verdict),
            float(summary.map(|s| s.min)),
            float(summary.map(|s| s.median)),
            float(summary.map(|s| s.p99)),
            float(summary.map(|s| s.cv)),
            float(summary.map(|s| s.cv_of_median)),
            slit.map_or_else(|| Cell::missing("not given by firmware"), Cell::int),
            hmat.map_or_else(|| Cell::missing("not given by firmware"), Cell::int),
            Cell::text(why),
        ]);
    }
    table
}

/// The kind's word, and the pair of nodes where there is one.
fn about(
    subject: &Subject,
) -> (&'static str, Option<(homenode_measure::NodeNumber, homenode_measure::NodeNumber)>) {
    match subject {
        Subject::Latency { pair, .. } => ("latency", Some((pair.cpu, pair.memory))),
        Subject::Bandwidth { pairs, share, .. } => {
            let one = share.and_then(|i| pairs.get(i)).or(match &pairs[..] {
                [one] => Some(one),
                _ => None,
            });
            ("bandwidth", one.map(|p| (p.cpu, p.memory)))
        }
        Subject::Loaded { pair, .. } => ("loaded", Some((pair.cpu, pair.memory))),
        Subject::Core { nodes, .. } => ("core", Some(*nodes)),
        Subject::Migration { from, to, .. } => ("migration", Some((*from, *to))),
        // Whose thread, whose memory: as in every other row.
        Subject::NextTouch { from, to, .. } => ("next-touch", Some((*to, *from))),
    }
}
