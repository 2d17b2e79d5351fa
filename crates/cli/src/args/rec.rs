//! `homenode rec`: recordings as data.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use homenode_error::size;
use homenode_model::Bytes;

use crate::output::OutputArgs;

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

/// Examples for the end of `rec export --help`.
pub const EXPORT_EXAMPLES: &str = "\
Examples:
  homenode rec export a.hnrec -o a.parquet
  homenode rec export a.hnrec -o a.json --perfetto             open a.json in https://ui.perfetto.dev
  duckdb -c \"SELECT name, sum(pages) FROM 'a.parquet/migrations/**/*.parquet'
    JOIN 'a.parquet/objects/**/*.parquet' USING (object) GROUP BY name\"

docs/dataset.md lists tables and columns, and has more queries.";

/// Examples for the end of `rec merge --help`.
pub const MERGE_EXAMPLES: &str = "\
Examples:
  homenode rec merge rank0.hnrec rank1.hnrec rank2.hnrec -o job.hnrec
  homenode rec export job.hnrec -o job.parquet";

/// Check, export and merge recordings, replay policies
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
    /// Main-memory accesses of all nodes to each page. Recordings of the lab have counts; traces
    /// are simulated on MACHINE.
    #[command(after_help = AGREE_EXAMPLES)]
    Agree {
        /// The first
        #[arg(value_name = "REC")]
        first: PathBuf,
        /// The second
        #[arg(value_name = "REC")]
        second: PathBuf,
        /// Machine whose caches are simulated for traces. For a fair comparison, take the one that
        /// the lab's recording was made with
        #[arg(short, long, value_name = "MACHINE")]
        machine: Option<String>,
        /// Leave out smaller objects
        #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = size::parse)]
        smallest: Bytes,
        /// The form of the table.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Write a recording as Parquet, for DuckDB, Polars, Spark and Dask
    ///
    /// Each table becomes DIR/TABLE/host=H/job=J/rank=R/part-0.parquet. DIR appears whole or not at
    /// all. With --perfetto, the recording becomes one file for ui.perfetto.dev instead.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export {
        /// The recording
        #[arg(value_name = "REC")]
        recording: PathBuf,
        /// The folder to make; with --perfetto the file
        #[arg(short = 'o', long = "output", value_name = "DIR")]
        to: PathBuf,
        /// Write a trace for Perfetto: regions, iterations, moves, and counters of each node
        #[arg(long, conflicts_with_all = ["json", "csv"])]
        perfetto: bool,
        /// Replace an export that is there
        #[arg(long)]
        force: bool,
        /// Show no progress
        #[arg(short, long)]
        quiet: bool,
        /// The form of the table.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Put recordings of several ranks into one, or their parts of a summary
    ///
    /// Each keeps its rank; one that says none gets the next free one, in the order of the command
    /// line. Numbers of objects, regions, intervals, threads and processes differ between ranks
    /// afterwards; an object's id does not.
    ///
    /// The files in FILE.parts are what the ranks of a job left for 'run --summary FILE'. The last
    /// rank makes the summary; this command makes one of the parts that are there.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge {
        /// The recordings, or the parts
        #[arg(value_name = "REC", required = true)]
        recordings: Vec<PathBuf>,
        /// The recording to make, or the summary
        #[arg(short = 'o', long = "output", value_name = "REC")]
        to: PathBuf,
        /// Write the summary as a JSON object with schema and version
        #[arg(long)]
        json: bool,
        /// Show no progress
        #[arg(short, long)]
        quiet: bool,
    },
    /// Say which form and version recordings have, or write one of an older form as a data set
    Upgrade {
        /// The recordings
        #[arg(value_name = "REC", required = true)]
        recordings: Vec<PathBuf>,
        /// Write the recording as a data set of today's form here
        #[arg(short = 'o', long = "output", value_name = "NEW")]
        to: Option<PathBuf>,
        /// The form of the table.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Give the input in a policy's journal to the policy again, and compare the decisions
    ///
    /// Exit status 0: every decision is the same; 1: one differs. With --policy, another policy
    /// gets the same input, and its decisions are printed. The homes in its input follow its own
    /// decisions.
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
    fn an_export_needs_its_place() {
        assert!(parse::<RecArgs>("rec export a.hnrec").is_err());
        assert!(parse::<RecArgs>("rec export a.hnrec -o out --force").is_ok());
        assert!(parse::<RecArgs>("rec export a.hnrec -o a.json --perfetto").is_ok());
        assert!(parse::<RecArgs>("rec export a.hnrec -o a.json --perfetto --json").is_err());
        assert!(parse::<RecArgs>("rec merge -o out").is_err());
        assert!(parse::<RecArgs>("rec merge a b -o out").is_ok());
    }

    #[test]
    fn the_examples_parse() {
        for line in [REPLAY_EXAMPLES, AGREE_EXAMPLES, MERGE_EXAMPLES]
            .iter()
            .flat_map(|e| e.lines())
            .filter_map(|l| l.trim().strip_prefix("homenode rec "))
        {
            let line = line.split("   ").next().unwrap().replace('\'', "");
            parse::<RecArgs>(&format!("rec {line}")).unwrap();
        }
    }
}
