//! The benchmarks, each beside its last result.
//!
//! A benchmark is a `[[bench]]` target without a harness that prints lines
//! `bench: NAME VALUE UNIT`, lower being better; all other lines are for people. The last results
//! are kept in `target/`, so they compare one machine with itself.

use std::collections::BTreeMap;
use std::fs;

use crate::process::{self, cargo, read};
use crate::{CommandResult, root, since};

/// A benchmark: its package, its target, what it measures.
const BENCHES: &[(&str, &str, &str)] = &[
    ("homenode-cli", "table", "rendering a result"),
    ("homenode-cli", "live", "what 'homenode run' costs a program, settled and while watching"),
    ("homenode-cli", "own", "homenode's own CPU time by default, over the kernels and patterns of programs"),
    (
        "homenode-cli",
        "anew",
        "what 'homenode run' costs a program that allocates its arrays anew in each round",
    ),
    ("homenode-cli", "recorded", "what 'homenode run --record' costs over 'homenode run'"),
    ("homenode-agent", "schedule", "a chunk that homenode hands out, beside libgomp's own"),
    ("homenode-runtime", "next_touch", "next touch against plain first touch"),
    ("homenode-policy", "decide", "deciding about a million pages on four nodes"),
    ("homenode-export", "export", "exporting a data set as Parquet, and opening one"),
    ("homenode-sim", "replay", "simulating recordings of NAS CG and MG, class W, 4 threads"),
    ("homenode-lab", "boot", "booting the lab with four nodes"),
    ("homenode-cli", "lab", "what the lab's monitor, the user-mode monitor and a migration there cost"),
    ("homenode-compilers", "recording", "what a recording costs"),
];

const KEPT: &str = "target/bench-results.json";

/// Results by name: value and unit.
type Results = BTreeMap<String, (f64, String)>;

/// What `bench` takes.
#[derive(clap::Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// The benchmarks; without any, all
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(subcommand)]
    since: Option<Compared>,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum Compared {
    /// Recording and replay beside those of a revision
    Since(since::SinceArgs),
}

pub fn run(args: &BenchArgs) -> CommandResult {
    if let Some(Compared::Since(asked)) = &args.since {
        let measured = since::run(asked)?;
        let of =
            |m: since::MeasuredRatio| (format!("since/{}", m.name), (m.ratio.median, "ratio".to_owned()));
        return keep(kept_results(), measured.into_iter().map(of).collect());
    }
    let args = &args.names;
    if let Some(unknown) = args.iter().find(|a| !BENCHES.iter().any(|(_, target, _)| target == a)) {
        let names: Vec<_> = BENCHES.iter().map(|(_, target, _)| *target).collect();
        return Err(format!("there is no benchmark '{unknown}'; there are {}", names.join(", ")));
    }
    let before = kept_results();
    // What benchmarks record with: compilers and libraries of the same profile.
    process::run(cargo().args(["build", "--release", "--workspace", "--locked", "--quiet"]))?;
    let mut now = Results::new();
    for (package, target, what) in BENCHES {
        if args.is_empty() || args.iter().any(|a| a == target) {
            eprintln!("── {target}: {what}");
            let out = read(cargo().args(["bench", "--quiet", "--package", package, "--bench", target]))?;
            // What it prints for people: rates, and the ratios to the baseline of the same run.
            for line in out.lines().filter(|l| !l.starts_with("bench: ")) {
                println!("{line}");
            }
            now.extend(parse(&out)?);
        }
    }
    print!("{}", show(&now, &before));
    keep(before, now)
}

/// The last results.
fn kept_results() -> Results {
    let text = fs::read_to_string(root().join(KEPT)).ok();
    text.and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default()
}

/// Keeps new results in place of the last ones.
fn keep(before: Results, now: Results) -> CommandResult {
    let kept = root().join(KEPT);
    let all: Results = before.into_iter().chain(now).collect();
    let json = serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?;
    fs::write(&kept, json).map_err(|e| format!("{}: {e}", kept.display()))
}

fn parse(output: &str) -> Result<Results, String> {
    let mut results = Results::new();
    for line in output.lines().filter_map(|l| l.strip_prefix("bench: ")) {
        let [name, value, unit] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("'bench: {line}' is not of the form 'bench: NAME VALUE UNIT'"));
        };
        let value: f64 = value.parse().map_err(|_| format!("'{value}' of {name} is not a number"))?;
        results.insert(name.to_owned(), (value, unit.to_owned()));
    }
    Ok(results)
}

fn show(now: &Results, before: &Results) -> String {
    let width = now.keys().map(String::len).max().unwrap_or(0);
    let mut out = String::new();
    for (name, (value, unit)) in now {
        let ratio = match before.get(name) {
            Some((old, old_unit)) if old_unit == unit && *old > 0.0 => {
                format!("{:.2} × the last", value / old)
            }
            _ => "first result".to_owned(),
        };
        out += &format!("{name:width$}  {value:>12.3} {unit:<6}  {ratio}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_beside_the_last_ones() {
        let now = parse("hello\nbench: a/b 3.0 ms\nbench: c 1 s\n").unwrap();
        let before = parse("bench: a/b 2.0 ms\nbench: c 1000 ms\n").unwrap();
        let shown = show(&now, &before);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines,
            ["a/b         3.000 ms      1.50 × the last", "c           1.000 s       first result"]
        );
    }

    #[test]
    fn a_malformed_line_is_an_error() {
        assert!(parse("bench: a 3").is_err());
        assert!(parse("bench: a x ms").is_err());
    }
}
