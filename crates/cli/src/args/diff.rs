//! `homenode diff`.

use std::path::PathBuf;

use clap::Args;

use super::show::Colour;
use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
BEFORE and AFTER are of one kind:
  recordings     of the same program, or of an edited one
  comparisons    folders of 'homenode compare --keep', or its results with --json
  measurements   results of 'homenode measure --json'

Examples:
  homenode diff before.hnrec after.hnrec       what changed in which array
  homenode diff before.hnrec after.hnrec --json
  homenode diff kept-monday/ kept-friday/      recordings of one name in two folders
  homenode diff monday.json friday.json        two comparisons or measurements

An array is the same in two recordings if its id is; else if its name is; else if \
the same function allocates it. Its address, line and number may change.
Status 3: a recording is not whole; the first line says what is missing.";

/// What changed between two recordings, comparisons or measurements
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// The first recording, comparison or measurement
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The second one
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// Show unchanged rows, too
    #[arg(long)]
    pub all: bool,
    /// Number of objects to list, the most changed ones first [default: 20; all with --json and
    /// --csv]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Colour,
    /// The form of the table.
    #[command(flatten)]
    pub output: OutputArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn both_sides_are_needed() {
        assert!(parse::<DiffArgs>("diff a").is_err());
        let a: DiffArgs = parse("diff a b --top 3 --color never").unwrap();
        assert_eq!((a.top, a.color), (Some(3), Colour::Never));
    }
}
