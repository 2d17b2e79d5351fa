//! Whether recordings are whole: their threads' logs, or the tables of a data set.

use std::path::Path;

use homenode_dataset::tables::{ALL, Access, Object};
use homenode_dataset::{Dataset, foreign};
use homenode_error::{Context as _, Result};
use homenode_log::check::check;
use homenode_log::file::LogReader;
use homenode_log::recording::Recording;
use homenode_table::{Cell, Column, Table};

/// The table without rows; with a column for the recording if there are `several`.
pub fn table(several: bool) -> Table {
    let mut columns = Vec::new();
    if several {
        columns.push(Column::text("recording", "recording"));
    }
    columns.extend([
        Column::text("thread", "thread"),
        Column::number("records", "records"),
        Column::number("accesses", "accesses"),
        Column::number("marks", "marks"),
        Column::number("chunks", "chunks"),
        Column::number("ticks", "clock"),
        Column::number("bypassed", "bypassed"),
        Column::text("complete", "complete"),
        Column::number("problems", "problems"),
    ]);
    Table::new("rec-check", 1, columns)
}

/// Adds the threads of a recording of every access, and what is wrong with it as notes. Returns
/// whether it is whole.
///
/// # Errors
/// Its logs cannot be listed.
pub fn logs(table: &mut Table, recording: &Recording, several: bool) -> Result<bool> {
    let name = recording.path.display().to_string();
    let logs = recording.logs().context(|| format!("cannot check {name}"))?;
    let (mut cut_off, mut problems) = (0, Vec::from_iter(recording.damage.clone()));
    for log in &logs {
        let thread = log.file_stem().unwrap_or_default().to_string_lossy();
        let mut row = if several { vec![Cell::text(name.clone())] } else { Vec::new() };
        row.push(Cell::text(thread));
        let report = match LogReader::open(log).map(|mut l| check(&mut l)) {
            Ok((report, damage)) => {
                problems.extend(report.problems.iter().map(|p| format!("{}: {p}", log.display())));
                let wrong = report.problems.len() + usize::from(damage.is_some());
                problems.extend(damage.map(|d| d.to_string()));
                Ok((report, wrong))
            }
            Err(e) => {
                problems.push(e.to_string());
                Err(e)
            }
        };
        match report {
            Ok((r, wrong)) => {
                cut_off += u32::from(!r.complete);
                row.extend([r.records, r.accesses, r.marks, r.chunks, r.ticks].map(Cell::int));
                row.push(match r.totals {
                    Some([_, _, bypassed, _]) => Cell::int(bypassed),
                    None => Cell::missing("told at the thread's end, which is missing"),
                });
                row.push(Cell::text(if r.complete { "yes" } else { "no" }));
                row.push(Cell::int(wrong as i128));
            }
            Err(_) => {
                cut_off += 1;
                row.extend(vec![Cell::missing("the log cannot be read"); 6]);
                row.extend([Cell::text("no"), Cell::int(1)]);
            }
        }
        table.row(row);
    }
    if let Err(e) = recording.symbols() {
        problems.push(e.to_string());
    }
    // A recording that was cut off lacks its end anyway.
    if cut_off == 0 && problems.len() == usize::from(recording.damage.is_some()) {
        let lacking = homenode_simulated::gaps(recording);
        problems.extend(lacking.or_else(|| homenode_simulated::members_without_log(recording)));
    }
    let verdict = verdict(recording, logs.len(), cut_off, problems.len());
    let whole = verdict.is_none();
    for problem in problems {
        table.note(foreign::clean(&problem));
    }
    table.note(foreign::clean(&format!("{name}: {}", verdict.unwrap_or_else(|| "whole".into()))));
    Ok(whole)
}

/// What is wrong with a recording in one line; `None`: nothing.
fn verdict(recording: &Recording, logs: usize, cut_off: u32, problems: usize) -> Option<String> {
    if let Some(why) = recording.stopped() {
        return Some(format!("readable up to where recording stopped: {why}"));
    }
    if logs == 0 {
        return Some("empty: no thread was recorded: there is no log in its folder threads".into());
    }
    if recording.damage.is_some() && problems == 1 && cut_off == 0 {
        return Some("damaged: its description; its logs are whole".into());
    }
    if problems > 0 {
        return Some(match problems {
            1 => "damaged: 1 problem; what comes before it is readable".into(),
            n => format!("damaged: {n} problems; what comes before them is readable"),
        });
    }
    if cut_off > 0 {
        let why = match recording.meta.ended.as_ref().map(|e| e.signal) {
            Some(Some(signal)) => format!("signal {signal} ended the program"),
            Some(None) => "the program ended without telling the recorder".into(),
            None => "the program is still running, or the machine went down".into(),
        };
        return Some(format!("readable and cut off ({cut_off} of {logs} threads have no end): {why}"));
    }
    recording.meta.ended.is_none().then(|| "readable and never finished: its objects have no names".into())
}

/// Reads every row of every table of the data set at `path`, and notes what is missing. Returns
/// whether it is whole.
pub fn data_set(table: &mut Table, set: &Dataset, path: &Path) -> bool {
    let name = path.display().to_string();
    let mut note = |text: String| table.note(foreign::clean(&format!("{name}: {text}")));
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
    let is_whole = missing.is_empty();
    missing.into_iter().for_each(note);
    is_whole
}
