//! Recorded dynamic loops under other schedules, in the simulator: the tables of docs/schedules.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, program, read, run as run_it};
use crate::{CommandResult, root};

/// A program of `tests/schedules`, and what it is measured with.
struct Subject {
    name: &'static str,
    source: &'static str,
    words: &'static [&'static str],
    schedule: &'static str,
    /// KiB of each CPU's cache.
    cache: u32,
    /// Times and remote shares are compared with a program that has this word in place of
    /// `padded`.
    by_hand: Option<&'static str>,
}

const SUBJECTS: [Subject; 6] = [
    Subject {
        name: "lu",
        source: "lu.c",
        words: &["200", "padded"],
        schedule: "dynamic,1",
        cache: 32,
        by_hand: Some("manual"),
    },
    Subject {
        name: "lu-1400",
        source: "lu.c",
        words: &["1400", "padded"],
        schedule: "dynamic,1",
        cache: 512,
        by_hand: Some("manual"),
    },
    Subject {
        name: "cg",
        source: "irregular.c",
        words: &["cg", "50000", "5"],
        schedule: "dynamic,64",
        cache: 32,
        by_hand: None,
    },
    Subject {
        name: "pic",
        source: "irregular.c",
        words: &["pic", "256", "5"],
        schedule: "dynamic,1",
        cache: 32,
        by_hand: None,
    },
    Subject {
        name: "pagerank",
        source: "irregular.c",
        words: &["pagerank", "50000", "5"],
        schedule: "dynamic,64",
        cache: 512,
        by_hand: None,
    },
    Subject {
        name: "bfs",
        source: "irregular.c",
        words: &["bfs", "100000", "4"],
        schedule: "dynamic,64",
        cache: 512,
        by_hand: None,
    },
];

/// What `dealt` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct DealtArgs {
    /// lu, lu-1400, cg, pic, pagerank, bfs; without any, all
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
}

/// `cargo xtask dealt [PROGRAM]...`: a row of Markdown for each program.
pub fn run(args: &DealtArgs) -> CommandResult {
    let known = |name: &String| SUBJECTS.iter().any(|s| s.name == name);
    if let Some(unknown) = args.programs.iter().find(|name| !known(name)) {
        let all: Vec<_> = SUBJECTS.iter().map(|s| s.name).collect();
        return Err(format!("there is no program {unknown}: {}", all.join(", ")));
    }
    run_it(cargo().args(["build", "--release", "--locked", "--workspace", "--quiet"]))?;
    println!(
        "| program | dynamic | block | cyclic | affinity | planned pages | time | imbalance | by hand |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for subject in
        SUBJECTS.iter().filter(|s| args.programs.is_empty() || args.programs.iter().any(|a| a == s.name))
    {
        println!("{}", row(subject)?);
    }
    Ok(())
}

fn homenode(folder: &Path) -> Command {
    let mut command = program(&root().join("target/release/homenode").to_string_lossy());
    command.current_dir(folder);
    command
}

fn row(subject: &Subject) -> Result<String, String> {
    let folder = root().join("target/dealt").join(subject.name);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let machine = fs::read_to_string(root().join("tests/schedules/four.toml")).map_err(|e| e.to_string())?;
    let machine = machine.replace("32 KiB", &format!("{} KiB", subject.cache));
    fs::write(folder.join("four.toml"), machine).map_err(|e| e.to_string())?;
    let mut cc = program(&root().join("target/release/homenode-cc").to_string_lossy());
    let source = root().join("tests/schedules").join(subject.source);
    cc.args(["-O2", "-g", "-fopenmp", "-o"]).arg(folder.join("app")).arg(source).arg("-lm");
    run_it(&mut cc)?;
    record(&folder, subject, subject.words, "r")?;
    let words = ["dynamic", "block", "cyclic", "affinity"].map(|s| ["--schedule", s]).concat();
    let placed: Vec<&str> = words.into_iter().chain(["-p", "first-touch", "-p", "plan"]).collect();
    let json = compared(&folder, "r", &placed)?;
    let scheme = |name: &str| json["rows"].as_array().into_iter().flatten().find(|r| r["scheme"] == name);
    let value = |name: &str, what: &str| scheme(name).and_then(|r| r[what].as_f64()).unwrap_or(f64::NAN);
    let remote = |name: &str| format!("{:.2}", value(name, "remote"));
    let mut cells: Vec<String> =
        ["dynamic", "block", "cyclic", "affinity"].map(|s| remote(&format!("{s}/first-touch"))).into();
    cells.push(remote("affinity/plan"));
    let time = |name: &str| value(name, "time");
    cells.push(format!("{:.2}", time("affinity/first-touch") / time("dynamic/first-touch")));
    cells.push(imbalance(&json["notes"].to_string()).unwrap_or_else(|| "–".into()));
    cells.push(match subject.by_hand {
        None => "–".into(),
        Some(how) => {
            record(&folder, subject, &[subject.words[0], how], "hand")?;
            let hand = compared(&folder, "hand", &["-p", "first-touch"])?;
            let of = |what: &str| hand["rows"][0][what].as_f64().unwrap_or(f64::NAN);
            let times = time("affinity/first-touch") / of("time");
            format!("{:.2} %, affinity takes {times:.2} of its time", of("remote"))
        }
    });
    Ok(format!("| {} | {} |", subject.name, cells.join(" | ")))
}

fn record(folder: &Path, subject: &Subject, words: &[&str], to: &str) -> CommandResult {
    let mut command = homenode(folder);
    command.args([
        "record",
        "--quiet",
        "--force",
        "--threads",
        "4",
        "-o",
        to,
        "--filter",
        "256",
        "--",
        "./app",
    ]);
    command.args(words).env("OMP_SCHEDULE", subject.schedule);
    read(&mut command).map(drop)
}

fn compared(folder: &Path, recording: &str, words: &[&str]) -> Result<serde_json::Value, String> {
    let text = read(homenode(folder).args(["compare", recording, "-m", "four.toml", "--json"]).args(words))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", PathBuf::from(recording).display()))
}

/// The imbalance that the note of affinity tells.
fn imbalance(notes: &str) -> Option<String> {
    let (_, of_affinity) = notes.split_once("schedule affinity: ")?;
    let (before, _) = of_affinity.split_once(" %")?;
    Some(format!("{} %", before.rsplit(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_of_affinity_tells_the_imbalance() {
        let notes = "[\"schedule block: imbalance 9.0 %\",\"schedule affinity: 3 executions of dynamic loops \
                     dealt anew, 2 of 8 chunks to another thread; imbalance 1.4 %\"]";
        assert_eq!(imbalance(notes).as_deref(), Some("1.4 %"));
        assert_eq!(imbalance("[]"), None);
    }
}
