//! Whether `homenode run` gives the right verdict of each program, the same every time. The
//! programs are those of `tests/verdicts`, whose first lines say what is right. With `--explain`,
//! they are those of `tests/explain`, of which the command asks only that a program has one
//! verdict.
//!
//! Each program runs with bound and with unbound threads: on two pretended nodes, or with `--lab`
//! on two nodes of the lab. The lab's time is in instructions, so that other work on this machine
//! counts as nobody's. A CPU of the lab then waits some milliseconds for another one's answer, as
//! each arming of a page needs it, and programs with many objects get too few samples. With
//! `--wall`, on an otherwise idle machine, the lab's time is this machine's.
//!
//! With `--record`, each run is recorded, which must change no verdict.
//!
//! Unbound threads run a quarter of the rounds, because a verdict of threads that are seen for ten
//! seconds depends on the system's scheduler.
//!
//! The command prints a row for each answer: the verdict, the array of the first advice, and the
//! number of runs that gave it. It fails if an answer is wrong, or if a program has several.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::{self, cargo, program};
use crate::{CommandResult, root};

#[path = "../../tests/verdicts/expected.rs"]
mod expected;

use expected::{Expected, OPTIONS, compiler};

/// Unbound threads run one in this many rounds.
const UNBOUND: u32 = 4;
/// Seconds until the lab gives up: a run takes some seconds on a busy machine.
const LAB_SECONDS: usize = 90;

/// What `verdicts` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct VerdictsArgs {
    /// Runs of each program
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds)]
    rounds: usize,
    /// A program; without any, all
    #[arg(long, value_name = "PROGRAM")]
    only: Vec<String>,
    /// The programs of tests/explain
    #[arg(long, conflicts_with = "lab")]
    explain: bool,
    /// In the lab instead of on pretended nodes
    #[arg(long)]
    lab: bool,
    /// With the lab's clock of the wall
    #[arg(long)]
    wall: bool,
    /// With programs that are not optimised
    #[arg(long)]
    debug: bool,
    /// Record each run
    #[arg(long)]
    record: bool,
}

fn rounds(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "a number of at least 1".to_owned())
}

impl VerdictsArgs {
    /// The lab's options that choose its clock.
    fn clock(&self) -> &'static [&'static str] {
        if self.wall { &["--accel", "tcg"] } else { &["--deterministic"] }
    }
}

/// A program to run: its source, and what is right, if that is known.
struct Tried {
    name: String,
    source: PathBuf,
    right: Option<Expected>,
}

fn tried(asked: &VerdictsArgs) -> Result<Vec<Tried>, String> {
    let mut all: Vec<Tried> = if asked.explain {
        let folder = root().join("tests/explain");
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let sources = entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|s| compiler(s).is_some());
        let name = |source: &Path| source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        sources.map(|source| Tried { name: name(&source), source, right: None }).collect()
    } else {
        let all = Expected::all(&root().join("tests/verdicts"))?;
        let tried = |e: Expected| Tried { name: e.name.clone(), source: e.source.clone(), right: Some(e) };
        all.into_iter().map(tried).collect()
    };
    all.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(unknown) = asked.only.iter().find(|only| all.iter().all(|t| t.name != **only)) {
        let names: Vec<&str> = all.iter().map(|t| t.name.as_str()).collect();
        return Err(format!("there is no program '{unknown}'; there are {}", names.join(", ")));
    }
    all.retain(|t| asked.only.is_empty() || asked.only.contains(&t.name));
    Ok(all)
}

/// A run of a program.
struct Run<'a> {
    of: &'a Tried,
    bound: bool,
    number: usize,
}

impl Run<'_> {
    /// The file of its report.
    fn report(&self) -> String {
        format!("{}.{}.{}.json", self.of.name, self.binding(), self.number)
    }

    fn binding(&self) -> &'static str {
        if self.bound { "bound" } else { "unbound" }
    }

    /// The words behind `homenode`, below the folder of the program.
    fn words(&self, asked: &VerdictsArgs) -> Vec<String> {
        let mut words: Vec<String> =
            ["run", "--quiet", "--json", "--threads", "2", "--summary"].map(Into::into).into();
        words.push(self.report());
        let budget = self.of.right.as_ref().and_then(|right| right.lab_budget.clone());
        match (asked.lab, budget) {
            (true, Some(budget)) => words.extend(["--budget".into(), budget]),
            (true, None) => {}
            (false, _) => words.extend(["--pretend-nodes", "2"].map(Into::into)),
        }
        if asked.record {
            words.extend(["--record".into(), format!("{}.hnrec", self.report())]);
        }
        words.extend(self.bound.then(|| "--bind".into()));
        words.extend(["--".into(), format!("./{}", self.of.name)]);
        if let Some(right) = &self.of.right {
            let rounds = if asked.lab && !asked.wall { right.lab } else { right.rounds };
            words.push((if self.bound { rounds } else { rounds.div_ceil(UNBOUND) }).to_string());
        }
        words
    }

    /// Its answer, and whether that is right.
    fn judged(&self, folder: &Path) -> Result<(String, bool), String> {
        let path = folder.join(self.report());
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let json: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if let Some(right) = &self.of.right {
            return Ok(right.judges(&json, self.bound));
        }
        let process = &json["processes"][0];
        // Why a run of unbound threads was not judged may differ.
        let worked = match process["worked"].as_str().ok_or("the report has no verdict")? {
            "threads-not-bound" | "threads-change-nodes" => "not judged",
            other => other,
        };
        let advice = process["advice"][0].as_str().and_then(|a| a.split(", ").next());
        Ok((advice.map_or_else(|| worked.to_owned(), |array| format!("{worked}, {array}")), true))
    }
}

/// All runs in one boot of the lab.
fn in_lab(homenode: &Path, folder: &Path, runs: &[Run], asked: &VerdictsArgs) -> CommandResult {
    let lines = runs.iter().map(|run| {
        format!(
            "{} {} >/dev/null || echo {} failed\n",
            homenode.display(),
            run.words(asked).join(" "),
            run.report()
        )
    });
    let script: String = lines.collect();
    std::fs::write(folder.join("script"), script).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = Command::new(homenode);
    command.current_dir(folder).stdin(Stdio::null()).args(["lab", "run", "--nodes", "2", "--mem", "384M"]);
    command.args(asked.clock()).args(["--numa-balancing", "off", "--thp", "never", "--timeout"]);
    command.arg((60 + LAB_SECONDS * runs.len()).to_string());
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    process::run(command.args(["--", "sh", "script"]))
}

fn on_pretended_nodes(homenode: &Path, folder: &Path, runs: &[Run], asked: &VerdictsArgs) -> CommandResult {
    runs.iter().try_for_each(|run| {
        let mut command = Command::new(homenode);
        // A team that waits does not take the other threads' CPUs.
        command.current_dir(folder).env("OMP_WAIT_POLICY", "passive").args(run.words(asked));
        process::run(command.stdout(Stdio::null()))
    })
}

pub fn run(asked: &VerdictsArgs) -> CommandResult {
    let tried = tried(asked)?;
    let profile = if asked.debug { "debug" } else { "release" };
    let mut build = cargo();
    build.args(["build", "--workspace", "--locked", "--quiet"]);
    process::run(build.args((!asked.debug).then_some("--release")))?;
    let homenode = root().join("target").join(profile).join("homenode");
    let folder = root().join("target/verdicts");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for of in &tried {
        let compiler = compiler(&of.source).unwrap_or("gcc");
        process::run(program(compiler).args(OPTIONS).arg(folder.join(&of.name)).arg(&of.source))?;
    }
    println!("| program | threads | verdict, array of the first advice | runs |");
    println!("|---|---|---|---|");
    let mut wrong = Vec::new();
    for bound in [true, false] {
        let of = |of| (0..asked.rounds).map(move |number| Run { of, bound, number });
        let runs: Vec<Run> = tried.iter().flat_map(of).collect();
        // In the lab, a boot takes as long as some runs.
        for runs in runs.chunks(if asked.lab { runs.len().max(1) } else { asked.rounds }) {
            let carry_out = if asked.lab { in_lab } else { on_pretended_nodes };
            carry_out(&homenode, &folder, runs, asked)?;
            let mut seen: BTreeMap<(&str, &str, String, bool), usize> = BTreeMap::new();
            for run in runs {
                let (says, is_right) = run.judged(&folder)?;
                *seen.entry((&run.of.name, run.binding(), says, is_right)).or_default() += 1;
            }
            for ((name, binding, says, is_right), count) in &seen {
                let mark = if *is_right { "" } else { " (wrong)" };
                println!("| {name} | {binding} | {says}{mark} | {count} of {} |", asked.rounds);
                if !is_right || *count < asked.rounds {
                    wrong.push(format!("{name} ({binding})"));
                }
            }
        }
    }
    wrong.dedup();
    if wrong.is_empty() { Ok(()) } else { Err(format!("no right and steady verdict: {}", wrong.join(", "))) }
}
