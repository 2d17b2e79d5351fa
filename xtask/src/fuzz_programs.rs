//! Programs from a grammar, alone and under homenode, for any range of seeds
//! (`crates/agent/tests/programs.rs`).

use crate::{CommandResult, process};

/// What `fuzz-programs` takes.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramsArgs {
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How many programs
    #[arg(long, value_name = "K", default_value_t = 1000)]
    count: u64,
    /// Make smaller what differs
    #[arg(long)]
    shrink: bool,
}

/// Builds homenode and runs the programs.
pub fn run(asked: ProgramsArgs) -> CommandResult {
    process::run(process::cargo().args(["build", "--workspace", "--locked", "--quiet"]))?;
    let mut test = process::cargo();
    test.args(["test", "--workspace", "--locked", "--quiet", "--test", "programs", "--"]);
    test.args(["--ignored", "--nocapture", "ten_thousand_programs"]);
    test.env("HOMENODE_PROGRAMS", format!("{}:{}", asked.seed, asked.count));
    if asked.shrink {
        test.env("HOMENODE_PROGRAMS_SHRINK", "1");
    }
    process::run(&mut test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parsed;

    #[test]
    fn options_are_read_and_others_refused() {
        assert_eq!(parsed(""), Ok(ProgramsArgs { seed: 0, count: 1000, shrink: false }));
        assert_eq!(
            parsed("--seed 7 --count 3 --shrink"),
            Ok(ProgramsArgs { seed: 7, count: 3, shrink: true })
        );
        for wrong in ["--seed", "--seed x", "7"] {
            assert!(parsed::<ProgramsArgs>(wrong).is_err(), "{wrong}");
        }
    }
}
