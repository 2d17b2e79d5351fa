//! How near the best on-line policy comes to what no policy can beat: four programs, from three
//! initial placements, on three machines.
//!
//! Two figures for each: the time of all iterations over the bound, moves included, and the time of
//! the last iteration over an n-th of the bound, which says where the policy ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{self, cargo, read};
use crate::{CommandResult, root};

const MACHINES: [&str; 3] = ["sf15k", "origin2000", "epyc-nps4"];
const FROM: [&str; 3] = ["first-touch", "round-robin", "farthest"];
/// Policies and their options.
const POLICIES: [(&str, &str); 5] = [
    ("next-touch", "at=first-region,"),
    ("competitive", ""),
    ("competitive-balanced", ""),
    ("daemon", ""),
    ("out-u", ""),
];
/// Programs with classes whose data do not fit into the machines' caches, and iterations; all
/// initialised by one thread.
const PROGRAMS: [(&str, &str, &[&str]); 4] = [
    ("nas-cg", "A", &[]),
    ("nas-mg", "A", &["--iterations", "10"]),
    ("heat", "A", &["--iterations", "30"]),
    ("sor", "B", &["--iterations", "20"]),
];

/// What `matrix` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct MatrixArgs {
    /// Where recordings are kept
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// A program or machine; without any, all
    #[arg(long, value_name = "PROGRAM|MACHINE", value_parser = known)]
    only: Vec<String>,
}

fn known(name: &str) -> Result<String, String> {
    let is_known = MACHINES.contains(&name) || PROGRAMS.iter().any(|p| p.0 == name);
    let names = || PROGRAMS.iter().map(|p| p.0).chain(MACHINES).collect::<Vec<_>>().join(", ");
    if is_known { Ok(name.to_owned()) } else { Err(format!("it is one of {}", names())) }
}

pub fn run(args: &MatrixArgs) -> CommandResult {
    let dir = args.keep.clone().unwrap_or_else(|| root().join("target/matrix"));
    let only: Vec<&str> = args.only.iter().map(String::as_str).collect();
    let machines: Vec<&str> = chosen(&MACHINES, &only);
    let programs: Vec<&str> = chosen(&PROGRAMS.map(|p| p.0), &only);
    std::fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    process::run(cargo().args(["build", "--release", "--workspace", "--locked", "--quiet"]))?;
    println!(
        "| program | machine | from | ends | over an n-th of the bound, % | in total | over the bound, % |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (program, class, options) in PROGRAMS.into_iter().filter(|p| programs.contains(&p.0)) {
        let recording = dir.join(format!("{program}-{class}.hnrec"));
        if !recording.exists() {
            record(&recording, program, class, options)?;
        }
        for &machine in &machines {
            let table = compare(&recording, machine)?;
            for from in FROM {
                println!("{}", line(&table, from).map(|l| format!("| {program} {class} | {machine} {l}"))?);
            }
        }
    }
    Ok(())
}

/// Those of `all` that are among `only`; all if none is.
fn chosen<'a>(all: &[&'a str], only: &[&str]) -> Vec<&'a str> {
    let some: Vec<&str> = all.iter().copied().filter(|name| only.contains(name)).collect();
    if some.is_empty() { all.to_vec() } else { some }
}

fn homenode() -> Command {
    let mut command = process::program("target/release/homenode");
    command.current_dir(root());
    command
}

fn record(to: &Path, program: &str, class: &str, options: &[&str]) -> CommandResult {
    let kernel = format!("kernel:{program}");
    let mut command = homenode();
    command.args(["record", "--quiet", "--output"]).arg(to).args([
        "--threads",
        "4",
        &kernel,
        "--class",
        class,
    ]);
    read(command.args(["--", "--init", "serial"]).args(options)).map(drop)
}

fn compare(recording: &Path, machine: &str) -> Result<Value, String> {
    let mut command = homenode();
    command.arg("compare").arg(recording).args(["--quiet", "--json", "--statistics", "--yardsticks=bound"]);
    command.args(["--machine", machine]);
    for (policy, options) in POLICIES {
        for from in FROM {
            command.args(["--policy", &format!("{policy}:{options}from={from}")]);
        }
    }
    serde_json::from_str(&read(&mut command)?).map_err(|e| format!("compare --json: {e}"))
}

/// What one policy did.
#[derive(Clone, Copy)]
struct Did<'a> {
    policy: &'a str,
    /// Percent over the bound, all iterations.
    total: f64,
    /// Percent over an n-th of the bound, the last of n iterations.
    end: f64,
}

/// The rest of a table's line: the policy that ends nearest to the bound, and the one that is
/// nearest in total.
fn line(table: &Value, from: &str) -> Result<String, String> {
    let rows = table["rows"].as_array().ok_or("compare --json: no rows")?;
    let of = |scheme: &str| rows.iter().find(|r| r["scheme"] == scheme);
    let number = |row: &Value, column: &str| {
        row[column].as_f64().ok_or_else(|| format!("compare --json: no {column} in {row}"))
    };
    let bound = number(of("bound").ok_or("compare --json: no bound")?, "time")?;
    let mut did = Vec::new();
    for (policy, options) in POLICIES {
        let scheme = format!("{policy}:{options}from={from}");
        let row = of(&scheme).ok_or_else(|| format!("compare --json: no {scheme}"))?;
        let iterations = table["iterations"]["rows"].as_array().ok_or("compare --json: no iterations")?;
        let times: Vec<f64> =
            iterations.iter().filter(|i| i["scheme"] == scheme).filter_map(|i| i["time"].as_f64()).collect();
        let last = times.last().ok_or_else(|| format!("compare --json: no iterations of {scheme}"))?;
        let total = number(row, "over_bound")?;
        did.push(Did { policy, total, end: (last * times.len() as f64 / bound - 1.0) * 100.0 });
    }
    let least = |key: fn(&Did) -> f64| did.iter().copied().min_by(|a, b| key(a).total_cmp(&key(b)));
    let (Some(end), Some(total)) = (least(|d| d.end), least(|d| d.total)) else {
        return Err("no policies".into());
    };
    Ok(format!("| {from} | `{}` | {:.1} | `{}` | {:.1} |", end.policy, end.end, total.policy, total.total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_at_the_end_and_in_total_are_told() {
        let scheme = |(policy, options): (&str, &str)| format!("{policy}:{options}from=farthest");
        let mut rows = vec![serde_json::json!({"scheme": "bound", "time": 4.0})];
        let mut iterations = Vec::new();
        for (n, policy) in POLICIES.into_iter().enumerate() {
            rows.push(serde_json::json!({"scheme": scheme(policy), "over_bound": 50.0 - n as f64}));
            for time in [9.0, 2.1 + n as f64] {
                iterations.push(serde_json::json!({"scheme": scheme(policy), "time": time}));
            }
        }
        let table = serde_json::json!({"rows": rows, "iterations": {"rows": iterations}});
        assert_eq!(line(&table, "farthest").unwrap(), "| farthest | `next-touch` | 5.0 | `out-u` | 46.0 |");
        assert!(line(&table, "round-robin").unwrap_err().contains("from=round-robin"));
    }
}
