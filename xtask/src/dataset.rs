//! A synthetic data set of any size: `cargo xtask dataset --gib 10 -o DIR`.

use crate::Outcome;
use crate::process::{self, cargo};

/// Runs the generator of `homenode-dataset`, optimised.
pub fn run(args: &[String]) -> Outcome {
    let mut generator = cargo();
    generator.args(["run", "--release", "--locked", "--quiet", "--package", "homenode-dataset"]);
    process::run(generator.args(["--example", "synthetic", "--"]).args(args))
}
