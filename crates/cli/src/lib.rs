//! The command `homenode`: its commands, and the conventions that they share.
//!
//! | what | where |
//! |---|---|
//! | exit status | [`exit`] |
//! | errors, and how they read | [`error`] |
//! | "did you mean" | [`suggest`] |
//! | stdout, stderr, `--json`, `--csv`, `--summary` | [`output`] |
//! | the table behind all three | [`table`] |
//! | `--fail-if` | [`fail_if`] |
//! | progress | [`progress`] |
//! | Ctrl-C | [`interrupt`] |
//! | sizes such as `8KiB` | [`size`] |
//! | recording a program | [`recorder`] |
//! | what this machine offers | [`doctor`] |
//! | running one under the live runtime | [`live`] |
//! | a measurement as tables | [`measured`] |
//! | placements worked out for the next run | [`plan`] |
//! | names for addresses | [`symbols`] |
//! | the papers' programs, and building them | [`kernels`] |
//! | what commands take | [`args`] |
//! | what commands do | [`cmd`] |

#![forbid(unsafe_code)]

pub mod args;
mod child;
pub mod cmd;
pub mod counted;
pub mod doctor;
pub mod error;
pub mod exit;
pub mod fail_if;
mod help;
pub mod interrupt;
pub mod kernels;
pub mod live;
pub mod measured;
pub mod output;
pub mod paper;
pub mod places;
pub mod plan;
pub mod progress;
pub mod recorder;
pub mod sighted;
pub mod simulate;
pub mod size;
pub mod suggest;
pub mod symbols;
pub mod table;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;

use exit::{Exit, Family};

/// Runs a command line and says how the process ends.
pub fn main(args: &[OsString]) -> ExitCode {
    let family = Family::of_command_line(args);
    let result =
        match cmd::command_line().try_get_matches_from(args).and_then(|m| cmd::Cli::from_arg_matches(&m)) {
            Ok(cli) => cli.command.run(),
            Err(error) => {
                // Help and version are no errors and go to stdout; a closed pipe is nobody's fault.
                let _ = error.print();
                Ok(if error.use_stderr() { Exit::Usage } else { Exit::Done })
            }
        };
    let exit = result.unwrap_or_else(|error| {
        output::say(&error);
        error.code
    });
    ExitCode::from(exit.code(family))
}
