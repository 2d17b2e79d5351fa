//! A synthetic data set of any size: `cargo xtask dataset --gib 10 -o DIR`.

use crate::CommandResult;
use crate::process::{self, cargo};

/// What `dataset` takes.
#[derive(clap::Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub struct DatasetArgs {
    /// The generator's options: [--gib N] [--seed N] [--nodes N] -o DIR
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Runs the generator of `homenode-dataset`, optimised.
pub fn run(args: &DatasetArgs) -> CommandResult {
    let mut generator = cargo();
    generator.args(["run", "--release", "--locked", "--quiet", "--package", "homenode-dataset"]);
    process::run(generator.args(["--example", "synthetic", "--"]).args(&args.options))
}
