//! The command `homenode`: its commands, and the conventions that they share.
//!
//! | what | where |
//! |---|---|
//! | exit status | [`exit`] |
//! | stdout, stderr, `--json`, `--csv`, `--summary` | [`output`] |
//! | opening a recording as a data set | [`open`] |
//! | the error where a trace is needed and a data set is given | [`tables`] |
//! | a task of a library, seen from the terminal | [`task`], [`progress`] |
//! | Ctrl-C | [`interrupt`] |
//! | topologies of hwloc's, tried out in a child | `xml` |
//! | the arguments of each command | [`args`] |
//! | the work of each command | [`cmd`] |

#![forbid(unsafe_code)]

pub mod args;
pub mod cmd;
pub mod exit;
mod help;
pub mod interrupt;
pub mod open;
pub mod output;
pub mod progress;
#[cfg(test)]
mod reference;
pub mod tables;
pub mod task;
mod xml;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;

use exit::{Exit, StatusOwner};

/// Runs a command line and says how the process ends.
pub fn main(args: &[OsString]) -> ExitCode {
    if args.get(1).is_some_and(|a| a == "--version") {
        return output::to_stdout(&homenode_doctor::version::text())
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if let Some(child) = xml::read_in_child() {
        return child;
    }
    let family = StatusOwner::of_command_line(args);
    if let Err(error) = xml::check(args) {
        output::say(&error);
        return ExitCode::from(Exit::from(error.kind).code(family));
    }
    let result = match cmd::command_line()
        .try_get_matches_from(args::compare::joined(args))
        .and_then(|m| cmd::Cli::from_arg_matches(&m))
    {
        Ok(cli) => cli.command.run(),
        Err(error) => {
            // Help and version are no errors and go to stdout; a closed pipe is nobody's fault.
            let _ = error.print();
            Ok(if error.use_stderr() { Exit::Usage } else { Exit::Done })
        }
    };
    let exit = result.unwrap_or_else(|error| {
        output::say(&error);
        error.kind.into()
    });
    ExitCode::from(exit.code(family))
}
