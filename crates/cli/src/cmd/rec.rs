//! `homenode rec`: recordings as data.

mod agree;
mod export;
mod merge;
mod perfetto;
mod replay;
mod upgrade;

use std::path::PathBuf;

use homenode_checks::whole;
use homenode_dataset::Dataset;
use homenode_error::Result;

use crate::args::rec::{RecArgs, RecCommand};
use crate::exit::Exit;
use crate::open::{adopted, recording};
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
            RecCommand::Merge { recordings, to, json, quiet } => merge::run(&recordings, &to, json, quiet),
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
    let mut table = whole::table(several);
    let mut worst = Exit::Done;
    let mut last = None;
    for path in recordings {
        let checked = match Dataset::is_at(path) {
            true => adopted(path, "check").map(|set| whole::data_set(&mut table, &set, path)),
            false => recording(path, "check").and_then(|logs| whole::logs(&mut table, &logs, several)),
        };
        match checked {
            Ok(true) => {}
            Ok(false) => {
                if worst == Exit::Done {
                    worst = Exit::Partial;
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
