//! Programs from a grammar, alone and under homenode, for any range of seeds
//! (`crates/agent/tests/programs.rs`).

use crate::{Outcome, process};

/// What is asked for: the first seed, how many, and whether to make smaller what differs.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    seed: u64,
    count: u64,
    shrink: bool,
}

fn parse(args: &[String]) -> Result<Asked, String> {
    let mut asked = Asked { seed: 0, count: 1000, shrink: false };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let number = match word.as_str() {
            "--seed" => &mut asked.seed,
            "--count" => &mut asked.count,
            "--shrink" => {
                asked.shrink = true;
                continue;
            }
            other => return Err(format!("there is no '{other}': it takes --seed N, --count K and --shrink")),
        };
        let value = words.next().ok_or_else(|| format!("{word} needs a number"))?;
        *number = value.parse().map_err(|e| format!("{word} {value}: {e}"))?;
    }
    Ok(asked)
}

/// Builds homenode and runs the programs.
pub fn run(args: &[String]) -> Outcome {
    let asked = parse(args)?;
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

    #[test]
    fn options_are_read_and_others_refused() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parse(&[]), Ok(Asked { seed: 0, count: 1000, shrink: false }));
        assert_eq!(
            parse(&words("--seed 7 --count 3 --shrink")),
            Ok(Asked { seed: 7, count: 3, shrink: true })
        );
        assert!(parse(&words("--seed")).unwrap_err().contains("needs a number"));
        assert!(parse(&words("--seed x")).unwrap_err().contains("--seed x"));
        assert!(parse(&words("7")).unwrap_err().contains("--count K"));
    }
}
