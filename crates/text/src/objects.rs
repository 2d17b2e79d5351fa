//! The tables of `homenode show`: a row an object.

use homenode_report::objects::ObjectReport;
use homenode_report::summary::Summary;
use homenode_report::{Amount, RecordingReport};

use crate::answer::{accesses_heading, homes, name, span, users};
use crate::human::{bytes, count, glued, modelled, percent};
use crate::layout::{Alignment, TextTable};
use crate::touchers::touched_by;
use homenode_table::{Cell, Column, Table};

/// How objects are used and where they live.
pub fn uses(summary: &Summary, objects: &[&ObjectReport]) -> TextTable {
    let mut table = TextTable::default();
    let (accesses, basis) = accesses_heading(summary);
    table.column("name", "", Alignment::Text);
    table.column("size", "", Alignment::Number);
    table.column(accesses, basis, Alignment::Number);
    table.column("remote", "%", Alignment::Number);
    table.column("first touch by", "", Alignment::Text);
    let lives = |o: &ObjectReport| match o.residency[..] {
        [] => users(&o.accessed_on),
        _ => homes(&o.residency),
    };
    let form = |of: &dyn Fn(&ObjectReport) -> String| {
        let shares = objects.iter().any(|o| of(o).contains(':'));
        if shares { "node:%" } else { "" }
    };
    table.column("used by", form(&|o| users(&o.used_by)), Alignment::Text);
    table.column("lives on", form(&lives), Alignment::Text);
    for o in objects {
        table.row(vec![
            name(o),
            if o.object.is_some() { bytes(o.bytes) } else { String::new() },
            amount(&o.accesses, summary),
            o.remote.percent().map(percent).unwrap_or_default(),
            touched_by(&o.first_touch),
            users(&o.used_by),
            lives(o),
        ]);
    }
    table
}

/// An amount. Its basis stands beside it only where that of the whole recording is another.
fn amount(amount: &Amount, summary: &Summary) -> String {
    let number = count(amount.units().1);
    match amount.basis() {
        Some(basis) if Some(basis) != summary.accesses.basis() => format!("{number} ({})", basis.word()),
        _ => number,
    }
}

/// What objects are, where they are allocated, and which code touched them first.
pub fn types(objects: &[&ObjectReport]) -> TextTable {
    let mut table = TextTable::default();
    table.column("name", "", Alignment::Text);
    table.column("kind", "", Alignment::Text);
    table.column("type", "", Alignment::Text);
    table.column("allocated", "times", Alignment::Number);
    table.column("id", "", Alignment::Text);
    table.column("first touch in", "", Alignment::Text);
    for o in objects {
        let function = o.first_touch.first().and_then(|t| t.function.clone());
        table.row(vec![
            name(o),
            if o.object.is_some() { o.kind.to_string() } else { String::new() },
            type_of(o),
            if o.allocations > 1 { count(o.allocations) } else { String::new() },
            if o.id == o.name { String::new() } else { o.id.clone() },
            function.unwrap_or_default(),
        ]);
    }
    table
}

/// As the source writes it: `double [512][512]`.
fn type_of(o: &ObjectReport) -> String {
    let extents: String = o.dimensions.iter().map(|n| format!("[{n}]")).collect();
    format!("{} {extents}", o.element_type.as_deref().unwrap_or("")).trim().to_owned()
}

/// What accesses cost, and what moved.
pub fn times_and_moves(objects: &[&ObjectReport]) -> TextTable {
    let mut table = TextTable::default();
    table.column("name", "", Alignment::Text);
    table.column("time", "", Alignment::Number);
    table.column("avoidable", "", Alignment::Number);
    table.column("moved", "pages", Alignment::Number);
    table.column("back", "pages", Alignment::Number);
    table.column("refused", "pages", Alignment::Number);
    table.column("mostly", "nodes", Alignment::Text);
    table.column("why", "", Alignment::Text);
    table.column("when", "", Alignment::Text);
    for o in objects {
        let moves = o.moves.as_ref();
        let positive = |n: Option<u64>| n.filter(|n| *n > 0).map(count).unwrap_or_default();
        let route = moves.and_then(|m| m.routes.first());
        let reason = moves.and_then(|m| m.reasons.first());
        table.row(vec![
            name(o),
            o.memory_time.map(modelled).unwrap_or_default(),
            o.avoidable.map(modelled).unwrap_or_default(),
            positive(moves.map(|m| m.pages)),
            positive(moves.map(|m| m.ping_pongs)),
            positive(moves.map(|m| m.refused)),
            route.map(|r| glued(&format!("{} → {}", r.from_node.0, r.to_node.0))).unwrap_or_default(),
            reason.map(|r| r.cause.to_string()).unwrap_or_default(),
            moves.map(|m| span(m.first_ns, m.last_ns)).unwrap_or_default(),
        ]);
    }
    table
}

/// The objects for `--csv` and `--fail-if`.
pub fn table(report: &RecordingReport, top: usize) -> Table {
    let columns = vec![
        Column::text("object", "object"),
        Column::text("id", "id"),
        Column::text("kind", "kind"),
        Column::unit("bytes", "size", "bytes"),
        Column::text("type", "type"),
        Column::text("dimensions", "dimensions"),
        Column::number("accesses", "accesses"),
        Column::text("basis", "basis"),
        Column::number("seen", "seen"),
        Column::unit("remote", "remote", "%"),
        Column::unit("time", "time", "ms"),
        Column::unit("avoidable", "avoidable", "ms"),
        Column::number("moved", "pages moved"),
        Column::number("ping_pongs", "ping-pongs"),
        Column::text("first_touch", "first touch by (node:pages)"),
        Column::text("used_by", "used by (node:times)"),
        Column::text("lives_on", "lives on (node:pages)"),
    ];
    let mut table = Table::new("show", 2, columns);
    let optional = |text: Option<&str>, why: &str| text.map_or_else(|| Cell::missing(why), Cell::text);
    for o in report.objects.iter().take(top) {
        let milliseconds = |time: Option<homenode_model::Ps>| match time {
            Some(time) => Cell::float(time.secs() * 1e3, 3),
            None => Cell::missing("the recording has no counts or no latencies"),
        };
        let moves =
            |of: fn(&homenode_report::moves::MoveSummary) -> u64| Cell::int(o.moves.as_ref().map_or(0, of));
        let list = |parts: Vec<(u16, u64)>| {
            Cell::text(parts.iter().map(|(node, n)| format!("{node}:{n}")).collect::<Vec<_>>().join(" "))
        };
        table.row(vec![
            Cell::text(name(o)),
            Cell::text(o.id.as_str()),
            Cell::text(o.kind.as_str()),
            if o.object.is_some() { Cell::int(o.bytes.0) } else { Cell::missing("not one object") },
            optional(o.element_type.as_deref(), "debug information does not tell"),
            Cell::text(o.dimensions.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")),
            match o.accesses.count() {
                Some(count) => Cell::int(count.parts().0),
                None => Cell::missing("presence: the source tells who came, not how often"),
            },
            optional(o.accesses.basis().map(|b| b.word().as_str()), "nothing was accessed"),
            Cell::int(o.accesses.seen()),
            match o.remote.percent() {
                Some(percent) => Cell::Percent(percent, 1),
                None => Cell::missing("nothing was accessed"),
            },
            milliseconds(o.memory_time),
            milliseconds(o.avoidable),
            moves(|m| m.pages),
            moves(|m| m.ping_pongs),
            list(o.first_touch.iter().map(|t| (t.node.0, t.pages)).collect()),
            list(o.used_by.iter().map(|n| (n.node.0, n.units())).collect()),
            list(o.residency.iter().map(|n| (n.node.0, n.pages)).collect()),
        ]);
    }
    table
}
