//! Whether `homenode run` says the same of a program every time. The programs are those of
//! `tests/explain`, on two pretended nodes, with bound and unbound threads.
//!
//! The command prints each distinct verdict of a program, and the number of runs that gave it. A
//! verdict is the report's first line without its numbers, and the array of the first advice. The
//! command fails if a program has more than one verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{self, cargo, program};
use crate::{Outcome, root};

const USAGE: &str = "[--rounds N] [--only PROGRAM]…";
const BINDING: [(&str, &[&str]); 2] = [("unbound", &[]), ("bound", &["--bind"])];

/// The number of runs, and the names of programs from the command line. No names: all programs.
fn asked(mut args: &[String]) -> Result<(usize, Vec<&str>), String> {
    let (mut rounds, mut only) = (5, Vec::new());
    while let [option, value, rest @ ..] = args {
        match option.as_str() {
            "--rounds" => rounds = value.parse().map_err(|_| format!("--rounds {value}: not a number"))?,
            "--only" => only.push(value.as_str()),
            _ => break,
        }
        args = rest;
    }
    if args.is_empty() && rounds > 0 { Ok((rounds, only)) } else { Err(format!("verdicts takes {USAGE}")) }
}

/// The compiler of a source. `None`: the file is not a program that is compiled.
fn compiler(source: &Path) -> Option<&'static str> {
    match source.extension()?.to_str()? {
        "c" => Some("gcc"),
        "cpp" => Some("g++"),
        "F90" => Some("gfortran"),
        _ => None,
    }
}

fn name(source: &Path) -> String {
    source.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The sources of all programs, by name.
fn sources() -> Result<Vec<PathBuf>, String> {
    let folder = root().join("tests/explain");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut all: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    all.retain(|path| compiler(path).is_some());
    all.sort();
    Ok(all)
}

/// Runs the program once and returns its verdict.
fn verdict(homenode: &Path, program: &Path, options: &[&str], folder: &Path) -> Result<String, String> {
    let report = folder.join("report.json");
    let mut command = std::process::Command::new(homenode);
    command.args(["run", "--quiet", "--json", "--pretend-nodes", "2", "--threads", "2", "--summary"]);
    command.arg(&report).args(options).arg("--").arg(program).stdout(std::process::Stdio::null());
    process::run(&mut command)?;
    let text = std::fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", report.display()))?;
    let worked = json["answer"]["worked"].as_str().ok_or("the report has no answer")?;
    // The reason why a run was not judged may differ.
    let worked = worked.find("not judged").map_or(worked, |_| "not judged");
    let words: String = worked.chars().filter(|c| !c.is_ascii_digit()).collect();
    let advice = json["processes"][0]["advice"][0].as_str().and_then(|a| a.split(", ").next());
    Ok(advice.map_or_else(|| words.clone(), |array| format!("{words} [{array}]")))
}

pub fn run(args: &[String]) -> Outcome {
    let (rounds, only) = asked(args)?;
    let sources = sources()?;
    if let Some(unknown) = only.iter().find(|only| sources.iter().all(|s| name(s) != **only)) {
        let names: Vec<String> = sources.iter().map(|s| name(s)).collect();
        return Err(format!("there is no program '{unknown}'; there are {}", names.join(", ")));
    }
    process::run(cargo().args(["build", "--release", "--workspace", "--locked", "--quiet"]))?;
    let homenode = root().join("target/release/homenode");
    let folder = root().join("target/verdicts");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    println!(
        "| program | threads | the report's first line, without numbers; array of the first advice | runs |"
    );
    println!("|---|---|---|---|");
    let mut unsteady = Vec::new();
    for source in sources {
        let name = name(&source);
        if !only.is_empty() && !only.contains(&name.as_str()) {
            continue;
        }
        let built = folder.join(&name);
        let compiler = compiler(&source).unwrap_or("gcc");
        let options = ["-O2", "-g", "-fopenmp", "-w", "-o"];
        process::run(program(compiler).args(options).arg(&built).arg(&source))?;
        for (binding, options) in BINDING {
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for _ in 0..rounds {
                *seen.entry(verdict(&homenode, &built, options, &folder)?).or_default() += 1;
            }
            for (line, runs) in &seen {
                println!("| {name} | {binding} | {line} | {runs} of {rounds} |");
            }
            if seen.len() > 1 {
                unsteady.push(format!("{name} ({binding})"));
            }
        }
    }
    if unsteady.is_empty() { Ok(()) } else { Err(format!("no steady verdict: {}", unsteady.join(", "))) }
}
