//! `homenode rec`: recordings as data.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use homenode_model::Bytes;

use crate::output::OutputArgs;
use crate::size;

/// Examples for the end of `rec replay-policy --help`.
pub const REPLAY_EXAMPLES: &str = "\
Examples:
  homenode compare mine.hnrec -p competitive --journal j         write j/sf15k-competitive.hnjournal
  homenode rec replay-policy j/sf15k-competitive.hnjournal       does a fresh policy decide the same?
  homenode rec replay-policy j/sf15k-competitive.hnjournal -p competitive:gain=30";

/// Examples for the end of `rec agree --help`.
pub const AGREE_EXAMPLES: &str = "\
Examples:
  homenode rec agree lab.hnrec emulator.hnrec -m lab-256k       counts of the lab, and a trace
  homenode rec agree a.hnrec b.hnrec -m sf15k --fail-if 'difference>5'";

/// Check recordings, replay policies
#[derive(Args, Clone, Debug, PartialEq)]
pub struct RecArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: RecCommand,
}

/// What `rec` does.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum RecCommand {
    /// Say whether recordings are whole and keep the format's rules
    Check {
        /// The recordings
        #[arg(value_name = "REC", required = true)]
        recordings: Vec<PathBuf>,
        /// The form of the table.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Say whether two recordings of one program tell the same of its arrays, page by page
    ///
    /// Main-memory accesses of all nodes to each page. Recordings of the lab have counts; traces are simulated on MACHINE.
    #[command(after_help = AGREE_EXAMPLES)]
    Agree {
        /// The first
        #[arg(value_name = "REC")]
        first: PathBuf,
        /// The second
        #[arg(value_name = "REC")]
        second: PathBuf,
        /// Whose caches the accesses of traces meet: those that a recording of the lab was made with
        #[arg(short, long, value_name = "MACHINE")]
        machine: Option<String>,
        /// Leave out smaller objects
        #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = size::parse)]
        smallest: Bytes,
        /// The form of the table.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Feed what a policy was told to a fresh one, and compare what they decide
    ///
    /// Exit status 0: every decision is the same; 1: one differs. With --policy, another policy is told the same and its
    /// decisions are printed; the homes that it is told are those of its own decisions.
    #[command(after_help = REPLAY_EXAMPLES)]
    ReplayPolicy {
        /// A journal that 'homenode compare --journal DIR' wrote
        #[arg(value_name = "JOURNAL")]
        journal: PathBuf,
        /// What would this policy have decided?
        #[arg(short, long, value_name = "P")]
        policy: Option<String>,
        /// Decisions to print at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// The form of the table.
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn check_takes_several() {
        let RecCommand::Check { recordings, .. } = parse::<RecArgs>("rec check a b").unwrap().command else {
            panic!("another command")
        };
        assert_eq!(recordings.len(), 2);
        assert!(parse::<RecArgs>("rec check").is_err());
    }

    #[test]
    fn the_examples_parse() {
        for line in REPLAY_EXAMPLES.lines().filter_map(|l| l.trim().strip_prefix("homenode rec ")) {
            let line = line.split("   ").next().unwrap();
            parse::<RecArgs>(&format!("rec {line}")).unwrap();
        }
    }
}
