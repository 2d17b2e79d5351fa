//! `homenode top`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use homenode_error::{Error, Result};
use homenode_live::budget::RunBudget;
use homenode_live::policies;

use super::run::LiveArgs;
use super::schedule::ScheduleArgs;
use super::subject::RunArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode top -- ./app input.dat       'homenode run', with its numbers while the program runs
  homenode top 4711                     a process; with all numbers if homenode records it
  homenode top mine.hnrec               while 'homenode run --record mine.hnrec -- ./app' goes on
  homenode top --json mine.hnrec        a line a second, for a program
  homenode top --plain --times 1 4711   one table

Keys: q quits, ? shows the others. Without a terminal, or with --plain, homenode prints a table a \
second. While homenode runs a program, stdout is the program's, and homenode prints to stderr. \
What the program prints to the terminal appears when top ends; of more than 4 MiB, the end.

homenode top -- APP returns the program's status. Status 3 otherwise: the recording has no end.";

/// A run while it goes on, in the terminal: nodes, objects, moves, cost
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(
    after_help = EXAMPLES,
    override_usage = "homenode top [OPTIONS] <PID | REC | kernel:NAME | -- APP [ARG]...>"
)]
pub struct TopArgs {
    /// The number of a process, a recording that a running program writes, or a kernel
    /// (kernel:NAME)
    #[arg(value_name = "PID|REC|kernel:NAME")]
    pub what: Option<OsString>,
    /// Print a table each time instead of drawing on the terminal
    #[arg(long, conflicts_with = "json")]
    pub plain: bool,
    /// Print a JSON object each time, a line each, with its schema and version
    #[arg(long)]
    pub json: bool,
    /// Seconds between two pictures
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub every: u64,
    /// End after N pictures
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    /// Of a program that homenode runs: how to decide which page moves where ('homenode run --help'
    /// lists the policies)
    #[arg(long, value_name = "POLICY", default_value = policies::DEFAULT)]
    pub policy: String,
    /// Of a program that homenode runs: pretend that the CPUs belong to N nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    pub pretend_nodes: Option<u16>,
    /// Of a program that homenode runs: bind OpenMP's threads to CPUs, node by node, unless
    /// OMP_PLACES or OMP_PROC_BIND is set
    #[arg(long)]
    pub bind: bool,
    /// Of a program that homenode runs: CPU time that homenode may spend
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<RunBudget>,
    /// Of a program that homenode runs: keep the recording in REC
    #[arg(long, value_name = "REC")]
    pub record: Option<PathBuf>,
    /// What to run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Seconds as a number with a point, in milliseconds.
fn seconds(text: &str) -> std::result::Result<u64, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is a number of seconds, such as 1 or 0.5".to_owned())?;
    match seconds {
        s if (0.1..=3600.0).contains(&s) => Ok((s * 1000.0).round() as u64),
        _ => Err("it is from 0.1 to 3600 seconds".into()),
    }
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    /// A program that homenode runs.
    Program(Box<LiveArgs>),
    /// A process.
    Process(u32),
    /// A recording under way.
    Recording(PathBuf),
}

impl TopArgs {
    /// What is looked at.
    ///
    /// # Errors
    /// There is nothing, or more than one thing; options of a run without one.
    pub fn looked(&self) -> Result<Looked> {
        let kernel = |word: &OsString| word.to_str().is_some_and(|w| w.starts_with("kernel:"));
        let Some(what) = self.what.as_ref().filter(|w| !kernel(w)) else {
            if self.what.is_none() && self.run.app.is_empty() {
                return Err(Error::usage("nothing to look at")
                    .hint("name a process (4711), a recording, or a program after two dashes (-- ./app)"));
            }
            return Ok(Looked::Program(Box::new(self.live())));
        };
        if let Some(program) = self.run.app.first() {
            let (what, program) = (what.display(), program.display());
            return Err(Error::usage(format!("both '{what}' and '{program}' are named: one is enough")));
        }
        let given = [
            (self.policy != policies::DEFAULT, "--policy"),
            (self.pretend_nodes.is_some(), "--pretend-nodes"),
            (self.bind, "--bind"),
            (self.budget.is_some(), "--budget"),
            (self.record.is_some(), "--record"),
        ];
        if let Some((_, option)) = given.iter().find(|(given, _)| *given) {
            return Err(Error::usage(format!("{option} is for a program that homenode runs"))
                .hint(format!("a program stands after two dashes: {option} … -- ./app")));
        }
        match what.to_str().map(str::parse) {
            Some(Ok(pid)) => Ok(Looked::Process(pid)),
            _ => Ok(Looked::Recording(what.into())),
        }
    }

    /// As `homenode run` takes it.
    fn live(&self) -> LiveArgs {
        LiveArgs {
            what: self.what.clone(),
            policy: self.policy.clone(),
            source: Default::default(),
            journal: None,
            record: self.record.clone(),
            view: false,
            plan: None,
            pretend_nodes: self.pretend_nodes,
            budget: self.budget,
            copy_unseen: false,
            move_while: Default::default(),
            align: false,
            bind: self.bind,
            force: false,
            summary: None,
            json: false,
            verbose: false,
            quiet: false,
            schedule: ScheduleArgs::default(),
            run: self.run.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    fn looked(line: &str) -> Result<Looked> {
        parse::<TopArgs>(&format!("top {line}")).unwrap().looked()
    }

    #[test]
    fn a_number_is_a_process_and_a_word_a_recording() {
        assert_eq!(looked("4711"), Ok(Looked::Process(4711)));
        assert_eq!(looked("mine.hnrec"), Ok(Looked::Recording("mine.hnrec".into())));
        assert!(matches!(looked("--policy competitive -- ./app 1"), Ok(Looked::Program(_))));
        assert!(matches!(looked("kernel:heat"), Ok(Looked::Program(_))));
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        let said = |line: &str| looked(line).unwrap_err().to_string();
        assert!(said("").contains("nothing to look at"));
        assert!(said("4711 -- ./app").contains("both '4711' and './app'"));
        assert!(said("4711 --record a.hnrec").contains("--record is for a program"));
        for wrong in ["4711 --every 0", "4711 --every x", "4711 --times 0", "4711 --json --plain"] {
            assert!(parse::<TopArgs>(&format!("top {wrong}")).is_err(), "{wrong}");
        }
        assert_eq!(parse::<TopArgs>("top 4711 --every 0.5").unwrap().every, 500);
    }
}
