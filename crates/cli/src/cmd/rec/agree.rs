//! `homenode rec agree`: whether two recordings of one program agree on its arrays, page by page.
//!
//! Counts of the lab are taken as they are. Traces are simulated with first touch on the named
//! machine.

use std::path::Path;

use homenode_checks::agree::{self, Arrays};
use homenode_dataset::tables::Access;
use homenode_dataset::{Basis, Dataset};
use homenode_error::{Error, Result};
use homenode_model::Bytes;
use homenode_table::Cell;

use crate::exit::Exit;
use crate::open::{Simulation, data_set, open};
use crate::output::OutputArgs;
use crate::tables;
use crate::task::Terminal;

/// Bytes of the pages that are compared.
const PAGE: Bytes = Bytes::kib(4);

pub fn run(
    first: &Path,
    second: &Path,
    machine: Option<&str>,
    smallest: Bytes,
    output: &OutputArgs,
) -> Result<Exit> {
    let task = Terminal::watching(true)?;
    let ((a, lacking), (b, more)) =
        (arrays(first, machine, smallest, &task)?, arrays(second, machine, smallest, &task)?);
    let mut table = agree::table(&a, &b);
    for (path, warnings) in [(first, lacking), (second, more)] {
        warnings.into_iter().for_each(|w| table.warn(format!("{}: {w}", path.display())));
    }
    table.fact("first", Cell::text(first.display().to_string()));
    table.fact("second", Cell::text(second.display().to_string()));
    if let Some(machine) = machine {
        table.fact("machine", Cell::text(machine));
    }
    if table.rows().is_empty() {
        return Err(Error::failed(format!("{} has no array to compare", first.display()))
            .tried(format!("look for objects of at least {} bytes that were used", smallest.0))
            .hint("--smallest 4KiB takes smaller ones; a static program has no names"));
    }
    let exit = output.print(&table)?;
    Ok(if !table.warnings().is_empty() && exit == Exit::Done { Exit::Partial } else { exit })
}

/// The arrays of a recording, and what it lacks.
fn arrays(
    path: &Path,
    machine: Option<&str>,
    smallest: Bytes,
    task: &Terminal,
) -> Result<(Arrays, Vec<String>)> {
    if Dataset::is_at(path) {
        let set = data_set(path, "compare")?;
        return match set.rows::<Access>().map(|a| a.tally.basis()).reduce(Basis::weaker) {
            None | Some(Basis::Exact | Basis::Emulated) => {
                let arrays = agree::arrays(&set, smallest);
                Ok((arrays, set.missing().iter().map(ToString::to_string).collect()))
            }
            Some(_) => Err(tables::refuse(path, "compare counts of").err().unwrap_or_else(|| {
                Error::usage(format!("cannot compare counts of {}: it has none", path.display()))
                    .hint("name a recording of the lab ('record --on lab') or one of every access")
            })),
        };
    }
    let name = machine.ok_or_else(|| {
        Error::usage(format!("{} is a trace: which machine has the caches?", path.display()))
            .hint("name the one that the other recording was made with: -m MACHINE")
    })?;
    let how = Simulation { machine: Some(name), page: Some(PAGE), ..Simulation::default() };
    let set = open(path, &how, task)?;
    Ok((agree::arrays(&set, smallest), set.missing().iter().map(ToString::to_string).collect()))
}
