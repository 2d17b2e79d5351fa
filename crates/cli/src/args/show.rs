//! `homenode show`.

use std::path::PathBuf;

use clap::Args;

use crate::output::OutputArgs;

/// Show what is in a recording: objects, regions, who touched what
#[derive(Args, Clone, Debug, PartialEq)]
pub struct ShowArgs {
    /// The recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
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
