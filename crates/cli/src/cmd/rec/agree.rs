//! `homenode rec agree`: whether two recordings of one program agree on its arrays, page by page.
//!
//! Counts of the lab are taken as they are. Traces are simulated with first touch on the named
//! machine. The pages' homes do not matter, because the main-memory accesses of all nodes to a page
//! are added up. A page is identified by its place in the array, and an array by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use homenode_dataset::identity::without_slot;
use homenode_dataset::tables::{Access, Interval, Object, ObjectKind};
use homenode_dataset::{Basis, Dataset};
use homenode_error::{Context, Error, Result};
use homenode_model::Bytes;
use homenode_table::{Cell, Column, Table};

use crate::exit::Exit;
use crate::open::{Simulation, open};
use crate::output::OutputArgs;
use crate::tables;
use crate::task::Terminal;

/// Bytes of the pages that are compared.
const PAGE: Bytes = Bytes::kib(4);

/// Main-memory accesses by array and page of it.
type Arrays = BTreeMap<String, BTreeMap<u64, u64>>;

pub fn run(
    first: &Path,
    second: &Path,
    machine: Option<&str>,
    smallest: Bytes,
    output: &OutputArgs,
) -> Result<Exit> {
    let task = Terminal::watching(true)?;
    let mut table = Table::new("rec-agree", 1, columns());
    let mut arrays = |path: &Path| -> Result<Arrays> {
        let (arrays, warnings) = arrays(path, machine, smallest, &task)?;
        warnings.into_iter().for_each(|w| table.warn(format!("{}: {w}", path.display())));
        Ok(arrays)
    };
    let (a, b) = (arrays(first)?, arrays(second)?);
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
    table
        .explain("difference: sum over the array's pages of |first - second|, in percent of the first's sum");
    if table.rows().is_empty() {
        return Err(Error::failed(format!("{} has no array to compare", first.display()))
            .tried(format!("look for objects of at least {} bytes that were used", smallest.0))
            .hint("--smallest 4KiB takes smaller ones; a static program has no names"));
    }
    let exit = output.print(&table)?;
    Ok(if !table.warnings().is_empty() && exit == Exit::Done { Exit::Partial } else { exit })
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
    let total = sum_of(a.values().copied());
    let mut cells = vec![Cell::text(name), Cell::int(a.len() as i128), Cell::int(total)];
    match b {
        None => cells.extend(vec![Cell::missing("the second recording does not have it"); 3]),
        Some(b) => {
            let sum = difference(a, b);
            cells.extend([Cell::int(sum_of(b.values().copied())), Cell::int(sum)]);
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
    sum_of(common.chain(rest))
}

/// A sum of numbers that a stranger may have made up.
fn sum_of(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// The arrays of a recording, and what it lacks.
fn arrays(
    path: &Path,
    machine: Option<&str>,
    smallest: Bytes,
    task: &Terminal,
) -> Result<(Arrays, Vec<String>)> {
    if Dataset::is_at(path) {
        let set = Dataset::open(path).context(|| "cannot compare".into())?;
        return match set.rows::<Access>().map(|a| a.tally.basis()).reduce(Basis::weaker) {
            None | Some(Basis::Exact | Basis::Emulated) => {
                let arrays = of_counts(&set, smallest);
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
    Ok((of_counts(&set, smallest), set.missing().iter().map(ToString::to_string).collect()))
}

fn of_counts(set: &Dataset, smallest: Bytes) -> Arrays {
    let is_array =
        |o: &Object| !matches!(o.kind, ObjectKind::Stack | ObjectKind::Other) && o.bytes >= smallest;
    let objects: BTreeMap<_, _> =
        set.rows::<Object>().filter(is_array).map(|o| (o.object, without_slot(&o.name).to_owned())).collect();
    let timed: BTreeSet<_> = set.rows::<Interval>().filter(|i| i.timed).map(|i| i.interval).collect();
    let mut all = Arrays::new();
    for a in set.rows::<Access>().filter(|a| timed.contains(&a.interval)) {
        let name = a.object.and_then(|o| objects.get(&o));
        if let (Some(name), Some(count)) = (name, a.tally.count()) {
            let known = all.entry(name.clone()).or_default().entry(a.page).or_default();
            *known = known.saturating_add(count.parts().0);
        }
    }
    all
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
