//! `homenode rec agree`: do two recordings of one program tell the same of its arrays, page by page?
//!
//! Counts of the lab are taken as they are. Traces are simulated on the machine that is named, with first touch; where the pages
//! lie does not matter, for the main-memory accesses of all nodes to a page are added up. Pages are told apart by their place in
//! the array, and arrays by their names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use homenode_log::recording::Recording;
use homenode_model::{Bytes, PageNo};
use homenode_sim::memory::MemoryOptions;

use crate::cmd::show::owners;
use crate::counted::objects::Kind;
use crate::counted::{self, Counted, PAGE};
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Second};
use crate::output::OutputArgs;
use crate::sighted;
use crate::simulate::scheme::{self, Variant};
use crate::simulate::yardsticks::Extent;
use crate::simulate::{self, Loaded, Plan};
use crate::table::{Cell, Column, Table};

/// Main-memory accesses by array and page of it.
type Arrays = BTreeMap<String, BTreeMap<u64, u64>>;

pub fn run(
    first: &Path,
    second: &Path,
    machine: Option<&str>,
    smallest: Bytes,
    output: &OutputArgs,
) -> Result<Exit> {
    let interrupt = Interrupt::install(Second::Ends).context(|| "cannot watch for Ctrl-C".into())?;
    let a = arrays(first, machine, smallest, &interrupt)?;
    let b = arrays(second, machine, smallest, &interrupt)?;
    let mut table = Table::new("rec-agree", 1, columns());
    for (name, pages) in &a {
        let other = b.get(name);
        table.row(row(name, pages, other));
    }
    for name in b.keys().filter(|n| !a.contains_key(*n)) {
        table.note(format!("{name} is in the second recording alone"));
    }
    table.fact("first", Cell::text(first.display().to_string()));
    table.fact("second", Cell::text(second.display().to_string()));
    if let Some(machine) = machine {
        table.fact("machine", Cell::text(machine));
    }
    table.note("difference: sum over the array's pages of |first - second|, in percent of the first's sum");
    if table.rows().is_empty() {
        return Err(CliError::failed("the first recording has no array to compare")
            .tried(format!("look for objects of at least {} bytes that were used", smallest.0))
            .hint("--smallest 4KiB takes smaller ones; a static program has no names"));
    }
    output.print(&table)
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("array", "array"),
        Column::number("pages", "pages"),
        Column::number("first", "first"),
        Column::number("second", "second"),
        Column::number("sum", "sum of differences"),
        Column::unit("difference", "difference", "%"),
    ]
}

fn row(name: &str, a: &BTreeMap<u64, u64>, b: Option<&BTreeMap<u64, u64>>) -> Vec<Cell> {
    let total: u64 = a.values().sum();
    let mut cells = vec![Cell::text(name), Cell::int(a.len() as i128), Cell::int(total)];
    match b {
        None => cells.extend(vec![Cell::missing("the second recording does not have it"); 3]),
        Some(b) => {
            let sum = difference(a, b);
            cells.extend([Cell::int(b.values().sum::<u64>()), Cell::int(sum)]);
            cells.push(Cell::percent(sum as f64 / total.max(1) as f64, 2));
        }
    }
    cells
}

/// Sum over pages of the absolute differences.
fn difference(a: &BTreeMap<u64, u64>, b: &BTreeMap<u64, u64>) -> u64 {
    let of = |map: &BTreeMap<u64, u64>, page: &u64| map.get(page).copied().unwrap_or(0);
    let common = a.iter().map(|(page, n)| n.abs_diff(of(b, page)));
    let rest = b.iter().filter(|(page, _)| !a.contains_key(*page)).map(|(_, n)| *n);
    common.chain(rest).sum()
}

fn arrays(path: &Path, machine: Option<&str>, smallest: Bytes, interrupt: &Interrupt) -> Result<Arrays> {
    let recording =
        Recording::open(path).context(|| "cannot compare".into()).map_err(|e| e.code(Exit::Usage))?;
    sighted::refuse(&recording, "compare counts of")?;
    if counted::is(&recording) {
        return Ok(of_counts(&Counted::open(&recording)?, smallest));
    }
    let name = machine.ok_or_else(|| {
        CliError::usage(format!("{} is a trace: which machine has the caches?", path.display()))
            .hint("name the one that the other recording was made with: -m MACHINE")
    })?;
    of_trace(recording, name, smallest, interrupt)
}

fn of_counts(counted: &Counted, smallest: Bytes) -> Arrays {
    let mut all = Arrays::new();
    for r in counted.timed() {
        let Some(o) = r.object.and_then(|o| counted.objects.get(o)) else { continue };
        if o.kind != Kind::Stack && o.bytes >= smallest.0 {
            let page = (r.address / PAGE).saturating_sub(o.address / PAGE);
            *all.entry(o.name.clone()).or_default().entry(page).or_default() += r.loads + r.stores;
        }
    }
    all
}

fn of_trace(recording: Recording, machine: &str, smallest: Bytes, interrupt: &Interrupt) -> Result<Arrays> {
    let machine = Arc::new(simulate::machine(machine)?.topology);
    let page = simulate::page_size(&machine, Some(Bytes(PAGE)))?;
    simulate::fit(&machine, recording.meta.filter_lines)?;
    let loaded = Loaded::new(recording)?;
    let plan = Plan {
        machines: vec![machine],
        pages: vec![page],
        schemes: scheme::select(&scheme::of_recording(), &["first-touch".to_owned()])?,
        jobs: 1,
        options: MemoryOptions::default(),
        extent: Extent::None,
    };
    let mut simulated = plan.run(&loaded, Variant::Serial, true, interrupt)?;
    let outcome = match simulated.cells.remove(&(0, 0)) {
        Some(Ok(outcome)) => outcome,
        Some(Err(why)) => return Err(CliError::failed("cannot simulate this recording").tried(why)),
        None => return Err(CliError::failed("nothing was simulated")),
    };
    let trace = &simulated.trace;
    let owners = owners(page, trace, outcome.histogram.pages());
    let mut all = Arrays::new();
    for (range, id) in &trace.ranges {
        let Some(object) = trace.objects.get(id.index()).filter(|o| o.bytes >= smallest.0) else { continue };
        let name = loaded.object_name(object);
        let first = range.first / PAGE;
        for p in first..(range.first + range.bytes).div_ceil(PAGE) {
            let own = owners.get(p as usize).copied().flatten().is_some_and(|(o, _)| o == id.index());
            let Some(row) = outcome.histogram.row(PageNo(p)).filter(|_| own) else { continue };
            let n: u64 = row.iter().map(|[r, w]| u64::from(*r) + u64::from(*w)).sum();
            if n > 0 {
                *all.entry(name.clone()).or_default().entry(p - first).or_default() += n;
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_either_side_count() {
        let a = BTreeMap::from([(0, 10), (1, 20)]);
        let b = BTreeMap::from([(0, 12), (2, 5)]);
        assert_eq!(difference(&a, &b), 2 + 20 + 5);
        assert_eq!(difference(&b, &a), 27);
        let cells = row("x", &a, Some(&b));
        assert_eq!(cells[5], Cell::percent(27.0 / 30.0, 2));
        assert!(matches!(row("x", &a, None)[5], Cell::Missing(_)));
    }
}
