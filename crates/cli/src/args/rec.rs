//! `homenode rec`: recordings as data.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output::OutputArgs;

/// Check recordings
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn check_takes_several() {
        let RecCommand::Check { recordings, .. } = parse::<RecArgs>("rec check a b").unwrap().command;
        assert_eq!(recordings.len(), 2);
        assert!(parse::<RecArgs>("rec check").is_err());
    }
}
