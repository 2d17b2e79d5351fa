//! Whether a policy decides on this machine what it decided when its journal was written, and what
//! another policy would have decided.

use std::fmt;

use homenode_dataset::foreign;
use homenode_model::Decision;
use homenode_policy::Step;
use homenode_policy::journal::{self, Checked, Difference, JournalError};
use homenode_table::{Cell, Column, Table};

/// A fresh policy's decisions beside those of the journal `bytes`, and whether they are the same.
///
/// # Errors
/// The bytes are no journal, or the policy is not known here.
pub fn check(bytes: &[u8]) -> Result<(Table, bool), JournalError> {
    let header = journal::header(bytes)?;
    let checked = journal::check(bytes)?;
    let columns = vec![
        Column::text("policy", "policy"),
        Column::number("events", "events"),
        Column::number("polls", "polls"),
        Column::number("decisions", "decisions"),
        Column::text("identical", "identical"),
    ];
    let mut table = Table::new("rec-replay-policy", 1, columns);
    let Checked { events, polls, decisions, difference, complete } = checked;
    let mut row = vec![Cell::text(foreign::clean(&header.spec))];
    row.extend([events, polls, decisions].map(Cell::int));
    row.push(Cell::text(if difference.is_none() { "yes" } else { "no" }));
    table.row(row);
    if let Some(d) = &difference {
        table.note(told(d));
    }
    if difference.is_none() && !complete {
        table.note("the journal has no end: the run that wrote it was cut off; what there is was compared");
    }
    Ok((table, difference.is_none()))
}

fn told(d: &Difference) -> String {
    let said = |(decision, step): (Option<Decision>, Step)| match (decision, step) {
        (Some(decision), _) => Said(decision).to_string(),
        (None, Step::WakeAt(at)) => format!("to be polled again at {at}"),
        (None, _) => "nothing more".into(),
    };
    format!(
        "first difference after event {} at {}, decision {} of the poll: recorded {}, a fresh policy says {}",
        d.event,
        d.now,
        d.decision + 1,
        said(d.recorded),
        said(d.fresh)
    )
}

/// What the policy `spec` decides of the journal's events, `limit` decisions at most in the table.
///
/// # Errors
/// The bytes are no journal, or `spec` names no policy.
pub fn ask(bytes: &[u8], spec: &str, limit: usize) -> Result<Table, JournalError> {
    let header = journal::header(bytes)?;
    let columns = vec![Column::unit("time", "time", "ns"), Column::text("decision", "decision")];
    let mut table = Table::new("rec-replay-policy-ask", 1, columns);
    let mut all = 0usize;
    let asked = journal::ask(bytes, spec, |now, decision| {
        all += 1;
        if all <= limit {
            table.row(vec![Cell::int(now.0), Cell::text(Said(decision).to_string())]);
        }
    })?;
    table.fact("recorded", Cell::text(foreign::clean(&header.spec)));
    table.fact("asked", Cell::text(spec));
    table.fact("events", Cell::int(asked.events));
    table.fact("homes given", Cell::int(asked.places));
    table.fact("moves", Cell::int(asked.moves));
    table.fact("copies", Cell::int(asked.replicas));
    table.fact("refused", Cell::int(asked.refused));
    if all > limit {
        table.note(format!("{limit} of {all} decisions are shown; --limit N shows more"));
    }
    table.note(
        "times and touches are those of the recorded policy's run: a policy's opinion, not a simulation",
    );
    Ok(table)
}

/// A decision in words.
struct Said(Decision);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Decision::Place { page, node } => write!(f, "{page} is placed on {node}"),
            Decision::Move { page, to } => write!(f, "{page} moves to {to}"),
            Decision::Arm { pages } => write!(f, "{} pages from {} are armed", pages.count, pages.first),
            Decision::Replicate { page, on } => write!(f, "{page} is copied to {on}"),
            Decision::ReplicateLines { page, on } => write!(f, "{page} gets a frame on {on}"),
            other => write!(f, "{other:?}"),
        }
    }
}
