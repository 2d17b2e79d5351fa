//! `homenode rec export`.

use std::path::Path;

use homenode_dataset::foreign::clean;
use homenode_error::{Error, FailureKind, Result};
use homenode_export::export::size;
use homenode_export::{ExportError, ExportOptions, Exported, export};
use homenode_table::{Cell, Column, Table};
use homenode_task::Task as _;

use crate::exit::Exit;
use crate::open::{Simulation, open};
use crate::output::{OutputArgs, say};
use crate::task::Terminal;

pub(super) fn run(
    recording: &Path,
    to: &Path,
    force: bool,
    quiet: bool,
    output: &OutputArgs,
) -> Result<Exit> {
    let task = Terminal::watching(quiet)?;
    let set = open(recording, &Simulation::default(), &task)?;
    let known = set.missing();
    known.iter().for_each(|m| say(format_args!("{} is partial: {m}", recording.display())));
    let mut progress = task.progress(&format!("exporting {}", recording.display()), Some(size(&set)));
    let exported = export(&set, to, ExportOptions { force }, &mut |more| {
        progress.advance(more);
        !task.stop_asked()
    });
    progress.finish();
    let exported = exported.map_err(|e| cannot(to, &e))?;
    let found = exported.missing.iter().filter(|m| !known.contains(m));
    found.for_each(|m| say(format_args!("{} is partial: {m}", recording.display())));
    let exit = output.print(&table(to, &exported))?;
    Ok(if exported.missing.is_empty() || exit != Exit::Done { exit } else { Exit::Partial })
}

fn cannot(to: &Path, error: &ExportError) -> Error {
    let cli = Error::failed(format!("cannot export to {}", to.display())).tried(error);
    match error {
        ExportError::Exists(_) => {
            cli.hint("--force replaces an export; -o names another place").kind(FailureKind::Usage)
        }
        ExportError::NotAnExport { .. } => cli
            .hint("look at it, and remove it yourself or name another place: -o DIR")
            .kind(FailureKind::Usage),
        ExportError::Twice(_) => cli.hint("merge recordings of different ranks").kind(FailureKind::Usage),
        ExportError::Stopped => cli.hint("nothing is left of it").kind(FailureKind::Partial),
        ExportError::Io { .. } => {
            cli.hint("name a place where you may write and where there is room: -o DIR")
        }
    }
}

fn table(to: &Path, exported: &Exported) -> Table {
    let columns = vec![
        Column::text("table", "table"),
        Column::number("rows", "rows"),
        Column::unit("bytes", "size", "B"),
        Column::number("files", "files"),
    ];
    let mut table = Table::new("rec-export", 1, columns);
    table.fact("output", Cell::text(clean(&to.display().to_string())));
    for t in &exported.tables {
        let cells = [t.written.rows, t.written.bytes, t.files].map(Cell::int);
        table.row(std::iter::once(Cell::text(t.name)).chain(cells).collect());
        if t.written.clipped > 0 {
            table.note(format!(
                "{}: {} numbers are above 2^63-1, which SQL cannot hold, and are written as that",
                t.name, t.written.clipped
            ));
        }
    }
    table
}
