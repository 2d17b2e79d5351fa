//! `homenode rec`: recordings as data.

mod agree;
mod export;
mod merge;
mod perfetto;
mod replay;
mod upgrade;
mod whole;

use std::path::PathBuf;

use homenode_dataset::Dataset;
use homenode_error::{Context, Result};
use homenode_log::check::check;
use homenode_log::file::LogReader;
use homenode_log::recording::Recording;
use homenode_table::{Cell, Column, Table};

use crate::args::rec::{RecArgs, RecCommand};
use crate::exit::Exit;
use crate::open::recording;
use crate::output::{OutputArgs, say};

impl RecArgs {
    pub(super) fn run(self) -> Result<Exit> {
        match self.command {
            RecCommand::Check { recordings, output } => check_all(&recordings, &output),
            RecCommand::Agree { first, second, machine, smallest, output } => {
                agree::run(&first, &second, machine.as_deref(), smallest, &output)
            }
            RecCommand::Export { recording, to, perfetto: true, force, quiet, .. } => {
                perfetto::run(&recording, &to, force, quiet)
            }
            RecCommand::Export { recording, to, force, quiet, output, .. } => {
                export::run(&recording, &to, force, quiet, &output)
            }
            RecCommand::Merge { recordings, to, quiet } => merge::run(&recordings, &to, quiet),
            RecCommand::Upgrade { recordings, to, output } => {
                upgrade::run(&recordings, to.as_deref(), &output)
            }
            RecCommand::ReplayPolicy { journal, policy, limit, output } => {
                replay::run(&journal, policy.as_deref(), limit, &output)
            }
        }
    }
}

fn check_all(recordings: &[PathBuf], output: &OutputArgs) -> Result<Exit> {
    let several = recordings.len() > 1;
    let mut table = table(several);
    let mut worst = Exit::Done;
    let mut last = None;
    for path in recordings {
        let checked = match Dataset::is_at(path) {
            true => whole::check(&mut table, path),
            false => recording(path, "check").and_then(|recording| one(&mut table, &recording, several)),
        };
        match checked {
            Ok(exit) => {
                if exit == Exit::Partial && worst == Exit::Done {
                    worst = exit;
                }
            }
            Err(error) => {
                if let Some(before) = last.replace(error) {
                    say(before);
                }
                worst = Exit::Usage;
            }
        }
    }
    let all = last.is_some() && table.rows().is_empty() && table.notes().is_empty();
    if !all && output.print(&table)? == Exit::ConditionHeld && worst != Exit::Usage {
        worst = Exit::ConditionHeld;
    }
    match last {
        Some(error) => Err(error),
        None => Ok(worst),
    }
}

fn table(several: bool) -> Table {
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

/// Adds a recording's threads, and what is wrong with it as notes.
fn one(table: &mut Table, recording: &Recording, several: bool) -> Result<Exit> {
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
        table.note(clean(&problem));
    }
    table.note(clean(&format!("{name}: {}", verdict.unwrap_or_else(|| "whole".into()))));
    Ok(if whole { Exit::Done } else { Exit::Partial })
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
        return Some(format!("damaged: {problems} problems; what comes before them is readable"));
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

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
