//! `homenode explain`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use homenode_error::{Error, Result, size};
use homenode_model::Bytes;
use homenode_table::FailIf;

use super::subject::{CommandSubject, RunArgs};

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode-cc -g -O2 -fopenmp app.c -o app
  homenode explain -- ./app                       record it, then say what to change
  homenode explain mine.hnrec -m epyc-nps4        on another machine
  homenode explain kernel:nas-cg --class W        one of the papers' programs
  homenode explain --against old.hnrec -- ./app   what a change brought
  homenode explain mine.hnrec --json              for programs
  homenode explain mine.hnrec --markdown          for the comment of a merge request
  homenode explain mine.hnrec --fail-if 'saved>5'   status 1 if a fix saves over 5 %

homenode records every access of a program that homenode-cc built. It runs any
other program under an emulator, which records the same and takes longer.
The program's own output goes to stderr.

Status 3: the recording is not whole. The first warning says what is missing.";

/// What is wrong, in which line, what to do, what it would bring
#[derive(Args, Clone, Debug, PartialEq)]
#[command(
    after_help = EXAMPLES,
    override_usage = "homenode explain [OPTIONS] <REC | kernel:NAME | -- APP [ARG]...>"
)]
pub struct ExplainArgs {
    /// A recording, or a kernel (kernel:nas-cg) that is recorded first
    #[arg(value_name = "REC | kernel:NAME")]
    pub what: Option<OsString>,
    /// Simulate this machine: a name ('homenode machine list' shows all) or a file [default: this
    /// machine if it has several nodes, else 2s-xeon]
    #[arg(short, long, value_name = "M")]
    pub machine: Option<String>,
    /// Simulate pages of this size, one that the machine offers [default: the machine's smallest]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub page: Option<Bytes>,
    /// Say what a change brought: BEFORE is a recording of the program as it was
    #[arg(long, value_name = "BEFORE")]
    pub against: Option<PathBuf>,
    /// Show all findings, all fixes and their evidence
    #[arg(short, long)]
    pub verbose: bool,
    /// Print a JSON object that carries its schema and version
    #[arg(long)]
    pub json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// End with status 1 when the condition holds: findings>0, remote>20, or saved>5 (percent of
    /// the time); with --against also new>0, gone<1, time_change>2
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<FailIf>,
    /// Simulate all rounds of a long recording [default: the first ones]
    #[arg(long)]
    pub all_rounds: bool,
    /// Simulate with N threads of this machine; the result is the same for any N [default: one a
    /// CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Keep the recording in DIR
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print the answer and problems only
    #[arg(short, long)]
    pub quiet: bool,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
}

impl ExplainArgs {
    /// What to explain.
    ///
    /// # Errors
    /// A usage error when there is nothing or more than one thing, and for a recording that is a
    /// program.
    pub fn subject(&self) -> Result<CommandSubject> {
        let subject = self.run.subject_or_recording(self.what.as_deref())?;
        match &subject {
            CommandSubject::Recording(path) if path.is_file() => {
                let path = path.display();
                Err(Error::usage(format!("{path} is a file; a recording is a directory"))
                    .hint(format!("to record and explain that program: homenode explain -- {path}")))
            }
            _ => Ok(subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn the_examples_parse() {
        let a: ExplainArgs = parse("explain -- ./app").unwrap();
        assert_eq!(a.subject().unwrap(), CommandSubject::Program { program: "./app".into(), args: vec![] });
        let a: ExplainArgs = parse("explain mine.hnrec -m epyc-nps4").unwrap();
        assert_eq!(a.machine.as_deref(), Some("epyc-nps4"));
        let a: ExplainArgs = parse("explain kernel:nas-cg --class W").unwrap();
        assert_eq!(a.subject().unwrap(), CommandSubject::Kernel { name: "nas-cg".into(), args: vec![] });
        assert!(parse::<ExplainArgs>("explain mine.hnrec --json").unwrap().json);
        assert!(parse::<ExplainArgs>("explain mine.hnrec --markdown").unwrap().markdown);
        assert_eq!(parse::<ExplainArgs>("explain mine.hnrec --fail-if saved>5").unwrap().fail_if.len(), 1);
        assert!(parse::<ExplainArgs>("explain mine.hnrec --markdown --json").is_err());
    }

    #[test]
    fn nothing_and_a_file_are_usage_errors() {
        let a: ExplainArgs = parse("explain").unwrap();
        assert!(a.subject().is_err());
        let a = ExplainArgs { what: Some(std::env::current_exe().unwrap().into()), ..a };
        assert!(a.subject().unwrap_err().hint.unwrap().contains("homenode explain -- "));
    }
}
