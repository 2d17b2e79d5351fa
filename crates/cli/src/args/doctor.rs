//! `homenode doctor`.

use std::ffi::OsString;

use clap::Args;

use crate::output::OutputArgs;

/// Examples for the end of `--help`.
pub const EXAMPLES: &str = "\
Examples:
  homenode doctor                what this machine offers, and what to change
  homenode doctor -- ./app       … and what of the program bears on it
  homenode doctor --json         for scripts

Status 0: 'homenode run' can do its job here; 3: it would run the program as it is.";

/// What this machine offers, and what homenode will do with it
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// A program to look into; it is not run
    #[arg(last = true, value_name = "APP")]
    pub app: Vec<OsString>,
    /// Only probe, and print the findings
    #[arg(long, hide = true)]
    pub probe: bool,
    /// The form of the table.
    #[command(flatten)]
    pub output: OutputArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn the_examples_parse() {
        let a: DoctorArgs = parse("doctor -- ./app x").unwrap();
        assert_eq!(a.app, ["./app", "x"]);
        assert!(parse::<DoctorArgs>("doctor ./app").is_err());
    }
}
