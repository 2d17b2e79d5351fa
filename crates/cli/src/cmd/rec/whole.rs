//! Whether a data set is whole.

use std::path::Path;

use homenode_dataset::tables::{ALL, Access, Object};

use super::clean;
use crate::exit::Exit;
use crate::open::adopted;
use homenode_error::Result;
use homenode_table::Table;

/// Reads every row of every table, and notes what is missing.
///
/// # Errors
/// It cannot be read as a data set.
pub fn check(table: &mut Table, path: &Path) -> Result<Exit> {
    let name = path.display().to_string();
    let mut note = |text: String| table.note(clean(&format!("{name}: {text}")));
    let set = adopted(path, "check")?;
    let (rows, objects) = (set.rows::<Access>().count(), set.rows::<Object>().count());
    let mut wrong = Vec::new();
    for table in ALL {
        for chunk in set.chunks_of(table.name, &(table.columns)()) {
            let bad = (0..chunk.rows()).find_map(|row| (table.check)(&chunk, row).err().map(|e| (row, e)));
            wrong.extend(bad.map(|(row, why)| format!("row {row} of a chunk of {}: {}", table.name, why.0)));
        }
    }
    let mut missing: Vec<String> = set.missing().iter().map(ToString::to_string).collect();
    missing.extend(wrong);
    let basis = &set.meta().basis;
    let state = if missing.is_empty() { "whole" } else { "not whole" };
    note(format!("{basis} by page and node: {rows} rows of {objects} objects, {state}"));
    if rows == 0 && missing.is_empty() {
        missing.push("empty: nothing was seen".into());
    }
    let exit = if missing.is_empty() { Exit::Done } else { Exit::Partial };
    missing.into_iter().for_each(note);
    Ok(exit)
}
