//! `homenode rec replay-policy`: whether a policy decides on this machine what it decided when its
//! journal was written.

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use homenode_error::{Context, Error, Failure, Result};
use homenode_log::regular;
use homenode_model::Decision;
use homenode_policy::Step;
use homenode_policy::journal::{self, Checked, Difference, JournalError};
use homenode_table::{Cell, Column, Table};

use crate::exit::Exit;
use crate::output::OutputArgs;

/// Journals from here on are refused: they are read as a whole.
const MOST: u64 = 4 << 30;

pub(super) fn run(path: &Path, policy: Option<&str>, limit: usize, output: &OutputArgs) -> Result<Exit> {
    let bytes = read(path)?;
    match policy {
        None => check(path, &bytes, output),
        Some(spec) => ask(path, &bytes, spec, limit, output),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read the journal {}", path.display());
    let mut file = regular::open(path).context(cannot).map_err(|e| e.kind(Failure::Usage))?;
    let length = file.metadata().context(cannot)?.len();
    if length > MOST {
        return Err(Error::usage(cannot())
            .tried(format!("it is of {length} bytes, more than {MOST}"))
            .hint("name a file that 'homenode run --journal' wrote"));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MOST).read_to_end(&mut bytes).context(cannot)?;
    Ok(bytes)
}

fn refused(path: &Path) -> impl Fn(JournalError) -> Error + '_ {
    move |e| {
        Error::usage(format!("cannot replay {}", path.display()))
            .tried(e)
            .hint("name a file that 'homenode run --journal' or 'compare --journal' wrote")
    }
}

fn check(path: &Path, bytes: &[u8], output: &OutputArgs) -> Result<Exit> {
    let header = journal::header(bytes).map_err(refused(path))?;
    let checked = journal::check(bytes).map_err(refused(path))?;
    let columns = vec![
        Column::text("policy", "policy"),
        Column::number("events", "events"),
        Column::number("polls", "polls"),
        Column::number("decisions", "decisions"),
        Column::text("identical", "identical"),
    ];
    let mut table = Table::new("rec-replay-policy", 1, columns);
    let Checked { events, polls, decisions, difference, complete } = checked;
    let mut row = vec![Cell::text(super::clean(&header.spec))];
    row.extend([events, polls, decisions].map(Cell::int));
    row.push(Cell::text(if difference.is_none() { "yes" } else { "no" }));
    table.row(row);
    if let Some(d) = difference {
        table.note(told(&d));
    }
    if difference.is_none() && !complete {
        table.note("the journal has no end: the run that wrote it was cut off; what there is was compared");
    }
    let exit = output.print(&table)?;
    Ok(if difference.is_some() { Exit::ConditionHeld } else { exit })
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

fn ask(path: &Path, bytes: &[u8], spec: &str, limit: usize, output: &OutputArgs) -> Result<Exit> {
    let header = journal::header(bytes).map_err(refused(path))?;
    let columns = vec![Column::unit("time", "time", "ns"), Column::text("decision", "decision")];
    let mut table = Table::new("rec-replay-policy-ask", 1, columns);
    let mut all = 0usize;
    let asked = journal::ask(bytes, spec, |now, decision| {
        all += 1;
        if all <= limit {
            table.row(vec![Cell::int(now.0), Cell::text(Said(decision).to_string())]);
        }
    })
    .map_err(refused(path))?;
    table.fact("recorded", Cell::text(super::clean(&header.spec)));
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
    output.print(&table)
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
            other => write!(f, "{other:?}"),
        }
    }
}
