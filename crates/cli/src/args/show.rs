//! `homenode show`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use homenode_error::size;
use homenode_model::Bytes;

use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode show mine.hnrec                        what is remote, and which arrays
  homenode show mine.hnrec -v --top 5             more about the five with most remote accesses
  homenode show mine.hnrec --map                  where pages lived, over time
  homenode show mine.hnrec --json                 everything, for programs
  homenode show mine.hnrec -m epyc-nps4           a recording without homes, on another machine
  homenode show mine.hnrec -p round-robin         the same, as if pages were placed otherwise

Status 3: the recording is not whole; the first line says what is missing.";

/// Objects listed for people unless --top says otherwise.
const TOP: usize = 20;

/// What is remote in a recording: which arrays, who touches them, where they live
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// The recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
    /// Machine to simulate: a name ('homenode machine list' shows all) or a file [default: this one
    /// if it has two nodes, else 2s-xeon]
    #[arg(short, long, value_name = "M")]
    pub machine: Option<String>,
    /// Placement policy; first-touch is what Linux does [default: first-touch]
    #[arg(short, long, value_name = "P")]
    pub policy: Option<String>,
    /// Page size, one that the machine offers [default: the machine's smallest]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub page: Option<Bytes>,
    /// Only speak when something is wrong
    #[arg(short, long)]
    pub quiet: bool,
    /// More columns: types, times, moves and their reasons
    #[arg(short, long)]
    pub verbose: bool,
    /// How many objects to list, those with most remote accesses first [default: 20; all with
    /// --json and --csv]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Draw where pages lived: time from left to right, pages by object from top to bottom
    #[arg(long, conflicts_with_all = ["csv", "fail_if", "verbose", "top"])]
    pub map: bool,
    /// Columns of the output [default: the terminal's, else 80]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub width: Option<u16>,
    /// Lines of pages in the map [default: 24]
    #[arg(long, value_name = "N", requires = "map", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub height: Option<u16>,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Colour,
    /// The form of the table.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Whether standard output gets colours.
    pub fn wanted(self) -> bool {
        use std::io::IsTerminal as _;
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => std::io::stdout().is_terminal() && crate::output::colours(),
        }
    }
}

impl ShowArgs {
    /// Objects to list for people.
    pub fn top(&self) -> usize {
        self.top.unwrap_or(TOP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn a_recording_is_needed() {
        assert!(parse::<ShowArgs>("show").is_err());
        assert_eq!(parse::<ShowArgs>("show x.hnrec --top 3").unwrap().top(), 3);
        assert_eq!(parse::<ShowArgs>("show x.hnrec").unwrap().top(), 20);
    }

    #[test]
    fn a_map_has_a_width_and_no_rows_to_judge() {
        let a: ShowArgs = parse("show x.hnrec --map --width 120 --height 10").unwrap();
        assert_eq!((a.width, a.height), (Some(120), Some(10)));
        for wrong in ["--map --csv", "--height 3", "--map --width 10", "--map --top 3"] {
            assert!(parse::<ShowArgs>(&format!("show x.hnrec {wrong}")).is_err(), "{wrong}");
        }
    }
}
