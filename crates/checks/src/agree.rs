//! Whether two recordings of one program agree on its arrays, page by page.
//!
//! The pages' homes do not matter, because the main-memory accesses of all nodes to a page are
//! added up. A page is identified by its place in the array, and an array by its name.

use std::collections::{BTreeMap, BTreeSet};

use homenode_dataset::Dataset;
use homenode_dataset::identity::without_slot;
use homenode_dataset::tables::{Access, Interval, Object, ObjectKind};
use homenode_model::Bytes;
use homenode_table::{Cell, Column, Table};

/// Main-memory accesses by array and page of it.
pub type Arrays = BTreeMap<String, BTreeMap<u64, u64>>;

/// A row for each array of the first recording, with what the second counts.
pub fn table(first: &Arrays, second: &Arrays) -> Table {
    let mut table = Table::new("rec-agree", 1, columns());
    for (name, pages) in first {
        table.row(row(name, pages, second.get(name)));
    }
    for name in second.keys().filter(|n| !first.contains_key(*n)) {
        table.note(format!("{name} is in the second recording alone"));
    }
    table
        .explain("difference: sum over the array's pages of |first - second|, in percent of the first's sum");
    table
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

/// The arrays of a data set with counts that have at least `smallest` bytes, in its timed part.
pub fn arrays(set: &Dataset, smallest: Bytes) -> Arrays {
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
