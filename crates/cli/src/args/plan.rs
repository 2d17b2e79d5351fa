//! `homenode plan`.

use std::path::PathBuf;

use clap::Args;
use homenode_schemes::regroup::Schedule;

use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode plan mine.hnrec                      for this machine, to mine.hnplan
  homenode run --plan mine.hnplan -- ./app      the next run, each page at home from the start
  homenode plan mine.hnrec --pretend-nodes 2    to try it where there is one node
  homenode plan mine.hnrec --schedule block --schedule cyclic    the best pair of schedule and pages
  homenode plan mine.hnrec -m epyc-nps4 -o big.hnplan --json";

/// The best placement for the next run, from a recording of an earlier one
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// The recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
    /// The plan [default: the recording's name with .hnplan]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Machine of the next run: a name ('homenode machine list' shows all) or a file
    #[arg(short, long, value_name = "M", default_value = "this")]
    pub machine: String,
    /// Deal this machine's CPUs into N nodes, as 'homenode run --pretend-nodes' does
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64), conflicts_with = "machine")]
    pub pretend_nodes: Option<u16>,
    /// Also try this schedule of dynamic loops, and plan for the best one: dynamic, block, cyclic,
    /// affinity, work-stealing; may be repeated
    #[arg(long = "schedule", value_name = "S")]
    pub schedules: Vec<Schedule>,
    /// How many objects to list, largest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Only speak when something is wrong
    #[arg(short, long)]
    pub quiet: bool,
    /// The form of the table.
    #[command(flatten)]
    pub output: OutputArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn the_examples_parse() {
        let a: PlanArgs = parse("plan mine.hnrec").unwrap();
        assert_eq!((a.machine.as_str(), a.file), ("this", None));
        let a: PlanArgs = parse("plan mine.hnrec -m epyc-nps4 -o big.hnplan --json").unwrap();
        assert_eq!((a.file, a.output.json), (Some("big.hnplan".into()), true));
        assert!(parse::<PlanArgs>("plan mine.hnrec -m sf15k --pretend-nodes 2").is_err());
        assert!(parse::<PlanArgs>("plan").is_err());
    }
}
