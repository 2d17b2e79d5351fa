//! Tests with pseudo-random inputs, for any seed and number: damaged files, and SIGKILL at random
//! points of recordings. The tests themselves are `crates/cli/tests/it/mutated.rs` and `killed.rs`.

use crate::{CommandResult, process};

/// What both commands take.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeededArgs {
    /// The seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// With optimised programs
    #[arg(long)]
    release: bool,
}

/// What `fuzz-inputs` takes.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputsArgs {
    #[command(flatten)]
    common: SeededArgs,
    /// How many files
    #[arg(long, value_name = "N", default_value_t = 2000)]
    count: u64,
}

/// What `kill-points` takes.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillsArgs {
    #[command(flatten)]
    common: SeededArgs,
    /// How many points of each kind of recording
    #[arg(long, value_name = "N", default_value_t = 8)]
    rounds: u64,
}

/// Builds homenode and runs the ignored test, which reads seed and number from `variable`.
fn test(asked: SeededArgs, count: u64, name: &str, variable: &str) -> CommandResult {
    let release = if asked.release { &["--release"][..] } else { &[] };
    process::run(process::cargo().args(["build", "--workspace", "--locked", "--quiet"]).args(release))?;
    let mut test = process::cargo();
    test.args(["test", "--workspace", "--locked", "--quiet"]).args(release);
    test.args(["--test", "it", "--", "--ignored", "--nocapture", "--exact", name]);
    process::run(test.env(variable, format!("{}:{count}", asked.seed)))
}

/// Damages files of every format, and has every command read them.
pub fn inputs(args: InputsArgs) -> CommandResult {
    test(
        args.common,
        args.count,
        "mutated::a_hundred_thousand_damaged_files_of_every_format",
        "HOMENODE_MUTATIONS",
    )
}

/// Kills each kind of recording at random points, and has every command read what is left.
pub fn kills(args: KillsArgs) -> CommandResult {
    test(args.common, args.rounds, "killed::at_a_thousand_random_points_of_each_kind", "HOMENODE_KILLS")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parsed;

    #[test]
    fn options_are_read_and_others_refused() {
        let common = SeededArgs { seed: 1, release: false };
        assert_eq!(parsed(""), Ok(InputsArgs { common, count: 2000 }));
        let common = SeededArgs { seed: 7, release: true };
        assert_eq!(parsed("--release --seed 7 --rounds 3"), Ok(KillsArgs { common, rounds: 3 }));
        assert!(parsed::<KillsArgs>("--count 3").is_err() && parsed::<InputsArgs>("--seed").is_err());
    }
}
