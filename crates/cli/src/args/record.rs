//! `homenode record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::subject::{RunArgs, Subject};
use crate::error::Result;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode record kernel:nas-cg --class W           one of the papers' programs
  homenode record -o mine.hnrec -- ./app input.dat  a program built with homenode-cc, -c++ or -fc

The program's output is its own; homenode reports on stderr and ends with the program's status.";

/// Record who touches what
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = EXAMPLES, override_usage = "homenode record [OPTIONS] <kernel:NAME | -- APP [ARG]...>")]
pub struct RecordArgs {
    /// A kernel: kernel:nas-cg ('homenode kernel list' shows all)
    #[arg(value_name = "kernel:NAME")]
    pub what: Option<OsString>,
    /// The recording, a directory [default: the program's name and the first free number, .hnrec]
    #[arg(short, long, value_name = "REC")]
    pub output: Option<PathBuf>,
    /// Replace the recording when it exists
    #[arg(long, requires = "output")]
    pub force: bool,
    /// What the recorder leaves out
    #[arg(long, value_enum, default_value_t = Filter::Repeats)]
    pub filter: Filter,
    /// Write the report to FILE instead of stderr
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Only speak when something is wrong
    #[arg(short, long)]
    pub quiet: bool,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What the recorder leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Filter {
    /// Accesses that every modelled cache would hold between two synchronisations
    Repeats,
    /// Nothing: for small programs, and machines that do not cache remote memory
    None,
}

impl RecordArgs {
    /// What to record.
    ///
    /// # Errors
    /// A usage error when there is nothing, or more than one thing.
    pub fn subject(&self) -> Result<Subject> {
        self.run.subject(self.what.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn the_examples_parse() {
        let a: RecordArgs = parse("record kernel:nas-cg --class W").unwrap();
        assert_eq!(a.subject().unwrap(), Subject::Kernel { name: "nas-cg".into(), args: vec![] });
        assert_eq!((a.run.class.as_deref(), a.filter), (Some("W"), Filter::Repeats));
        let a: RecordArgs = parse("record -o mine.hnrec -- ./app input.dat").unwrap();
        let program = Subject::Program { program: "./app".into(), args: vec!["input.dat".into()] };
        assert_eq!(a.subject().unwrap(), program);
        assert_eq!(a.output, Some("mine.hnrec".into()));
    }

    #[test]
    fn replacing_needs_a_name() {
        assert!(parse::<RecordArgs>("record --force -- ./app").is_err());
        assert!(parse::<RecordArgs>("record -o x --force --filter none -- ./app").is_ok());
    }
}
