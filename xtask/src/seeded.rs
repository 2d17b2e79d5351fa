//! Tests with pseudo-random inputs, for any seed and number: damaged files, and SIGKILL at random
//! points of recordings. The tests themselves are `crates/cli/tests/it/mutated.rs` and `killed.rs`.

use crate::{Outcome, process};

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    seed: u64,
    count: u64,
    release: bool,
}

/// Reads the options. `count` is the name of the option for the number.
fn parse(args: &[String], count: &str, default: u64) -> Result<Asked, String> {
    let mut asked = Asked { seed: 1, count: default, release: false };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let number = match word.as_str() {
            "--seed" => &mut asked.seed,
            name if name == count => &mut asked.count,
            "--release" => {
                asked.release = true;
                continue;
            }
            other => {
                return Err(format!("there is no '{other}': it takes --seed S, {count} N and --release"));
            }
        };
        let value = words.next().ok_or_else(|| format!("{word} needs a number"))?;
        *number = value.parse().map_err(|e| format!("{word} {value}: {e}"))?;
    }
    Ok(asked)
}

/// Builds homenode and runs the ignored test, which reads seed and number from `variable`.
fn test(asked: &Asked, name: &str, variable: &str) -> Outcome {
    let release = if asked.release { &["--release"][..] } else { &[] };
    process::run(process::cargo().args(["build", "--workspace", "--locked", "--quiet"]).args(release))?;
    let mut test = process::cargo();
    test.args(["test", "--workspace", "--locked", "--quiet"]).args(release);
    test.args(["--test", "it", "--", "--ignored", "--nocapture", "--exact", name]);
    process::run(test.env(variable, format!("{}:{}", asked.seed, asked.count)))
}

/// Damages files of every format, and has every command read them.
pub fn inputs(args: &[String]) -> Outcome {
    let asked = parse(args, "--count", 2000)?;
    test(&asked, "mutated::a_hundred_thousand_damaged_files_of_every_format", "HOMENODE_MUTATIONS")
}

/// Kills each kind of recording at random points, and has every command read what is left.
pub fn kills(args: &[String]) -> Outcome {
    let asked = parse(args, "--rounds", 8)?;
    test(&asked, "killed::at_a_thousand_random_points_of_each_kind", "HOMENODE_KILLS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_others_refused() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parse(&[], "--count", 5), Ok(Asked { seed: 1, count: 5, release: false }));
        assert_eq!(
            parse(&words("--release --seed 7 --count 3"), "--count", 5),
            Ok(Asked { seed: 7, count: 3, release: true })
        );
        assert!(parse(&words("--count 3"), "--rounds", 5).unwrap_err().contains("--rounds N"));
        assert!(parse(&words("--seed"), "--rounds", 5).unwrap_err().contains("needs a number"));
    }
}
