//! `homenode show`.

use std::path::PathBuf;

use clap::Args;

use crate::output::OutputArgs;
use crate::size;
use homenode_model::Bytes;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode show mine.hnrec                        objects by avoidable time on the default machine
  homenode show mine.hnrec -m epyc-nps4 --top 5   on another machine
  homenode show mine.hnrec -p round-robin --json  as if pages were placed otherwise";

/// Objects by the time that a better placement would save: who touches them, where they live
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// The recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
    /// Machine to simulate: a name ('homenode machine list' shows all) or a file [default: sf15k]
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
    /// How many objects to list, largest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// The form of the table.
    #[command(flatten)]
    pub output: OutputArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn a_recording_is_needed() {
        assert!(parse::<ShowArgs>("show").is_err());
        assert_eq!(parse::<ShowArgs>("show x.hnrec --top 3").unwrap().top, 3);
    }
}
