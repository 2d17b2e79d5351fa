//! `homenode machine`.

use clap::{Args, Subcommand};

use crate::output::OutputArgs;

/// Machines that programs can be simulated on
#[derive(Args, Clone, Debug, PartialEq)]
pub struct MachineArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: MachineCommand,
}

/// What `machine` does.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum MachineCommand {
    /// List all machines
    List {
        /// The form of the table.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one machine: nodes, latencies, bandwidths, caches, and where each number comes from
    Show {
        /// A name or a file
        #[arg(value_name = "M")]
        machine: String,
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
    fn show_takes_one() {
        let MachineCommand::Show { machine, output } =
            parse::<MachineArgs>("machine show sf15k --json").unwrap().command
        else {
            panic!("not show")
        };
        assert_eq!((machine.as_str(), output.json), ("sf15k", true));
        assert!(parse::<MachineArgs>("machine").is_err());
    }
}
