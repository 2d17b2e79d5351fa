//! `cargo xtask bench since REV`: what recording and replay cost beside an older revision.
//!
//! The revision's tools are built in `target/since/`, from `git archive`, by the same compiler as
//! those of the working tree. Both sides then run in turns (A B B A …), and the CPU time of each
//! pair gives one ratio. The median of the ratios comes with its 95 % interval.
//!
//! | what | program | runs |
//! |---|---|---|
//! | recording | the working tree's kernels, built by each side's `homenode-cc` and `homenode-fc`, recorded by that side's library | one thread |
//! | replay | one recording, made by the older side | `homenode compare` of each side, two policies, one worker |

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{self, cargo, program};
use crate::versus::pairs::{Ratio, first_is_ours, summarise};
use crate::{CommandResult, root};

/// Pairs of each measurement unless told: the interval then leaves out four at each end.
const ROUNDS: usize = 17;
/// The kernels, and their arguments: programs in C, because today's module for Fortran names
/// functions that an older library lacks. A recording takes half a second to two seconds.
const KERNELS: [(&str, &[&str]); 2] =
    [("nas-cg", &["--class", "W", "--iterations", "15"]), ("nas-ft", &["--class", "W", "--iterations", "3"])];
/// Threads of the recording that is replayed.
const THREADS: &str = "4";
/// Ratios above it are a regression.
const GOAL: f64 = 1.03;

/// One of the two sides.
struct Side {
    /// Where its tools are.
    tools: PathBuf,
    /// Where its instrumented kernels are.
    kernels: PathBuf,
}

/// A measurement: its name, and the ratio of now to then.
pub struct MeasuredRatio {
    /// What was measured.
    pub name: String,
    /// CPU time of the working tree over that of the revision.
    pub ratio: Ratio,
}

/// Measures, prints, and returns what is to be kept.
pub fn run(args: &SinceArgs) -> Result<Vec<MeasuredRatio>, String> {
    let SinceArgs { rev, rounds, built } = args;
    let (rounds, built) = (*rounds, *built);
    let commit =
        process::read(program("git").args(["rev-parse", "--verify", "--short=12"]).arg(commit_of(rev)))?;
    let commit = commit.trim();
    let folder = root().join("target/since").join(commit);
    if !built {
        build_then(commit, &folder)?;
        build(&root(), &root().join("target"))?;
    }
    let then = Side { tools: folder.join("target/release"), kernels: folder.join("kernels") };
    let now = Side { tools: root().join("target/release"), kernels: root().join("target/since/kernels") };
    for side in [&then, &now] {
        instrument(side)?;
    }
    println!("CPU time of the working tree over that of {commit}, {rounds} pairs: median (95 % interval)");
    let mut all = Vec::new();
    for (kernel, arguments) in KERNELS {
        all.push(pairs(&format!("record-{kernel}"), rounds, &now, &then, |side| {
            record(side, kernel, arguments, &folder.join("recording"), "1")
        })?);
        let replayed = folder.join("replayed.hnrec");
        let mut whole = Command::new(then.tools.join("homenode"));
        whole.args(["record", "-q", "--force", "--threads", THREADS, "-o"]).arg(&replayed).arg("--");
        process::run(quiet(
            whole.arg(then.kernels.join(kernel)).args(arguments).args(["--threads", THREADS]),
        ))?;
        all.push(pairs(&format!("replay-{kernel}"), rounds, &now, &then, |side| replay(side, &replayed))?);
    }
    Ok(all)
}

/// What `bench since` takes.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct SinceArgs {
    /// The older revision
    rev: String,
    /// Pairs of each measurement, six at least
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = rounds)]
    rounds: usize,
    /// Take the tools of both sides as they were built last
    #[arg(long)]
    built: bool,
}

/// An interval takes six pairs.
fn rounds(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n >= 6).ok_or_else(|| "a number of at least 6".to_owned())
}

fn commit_of(rev: &str) -> String {
    format!("{rev}^{{commit}}")
}

/// Builds the tools of a commit. What is there already is used again.
fn build_then(commit: &str, folder: &Path) -> CommandResult {
    let (source, target) = (folder.join("src"), folder.join("target"));
    if !source.join("Cargo.toml").exists() {
        fs::create_dir_all(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        let archive = folder.join("src.tar");
        process::run(program("git").args(["archive", "-o"]).arg(&archive).arg(commit))?;
        process::run(program("tar").arg("-xf").arg(&archive).arg("-C").arg(&source))?;
        let _ = fs::remove_file(archive);
    }
    build(&source, &target)
}

fn build(source: &Path, target: &Path) -> CommandResult {
    let mut build = cargo();
    build.current_dir(source).env("CARGO_TARGET_DIR", target).args([
        "build",
        "--release",
        "--locked",
        "--quiet",
    ]);
    for package in ["homenode-cli", "homenode-compilers", "homenode-tracer", "homenode-agent"] {
        build.args(["--package", package]);
    }
    process::run(&mut build)
}

/// Builds the working tree's kernels with a side's compilers.
fn instrument(side: &Side) -> CommandResult {
    let _ = fs::remove_dir_all(&side.kernels);
    let mut configure = program("cmake");
    configure.args(["-S", "kernels", "-B"]).arg(&side.kernels);
    configure.env("CC", side.tools.join("homenode-cc")).env("FC", side.tools.join("homenode-fc"));
    let mut libraries = std::ffi::OsString::from("-DHOMENODE_LIB_DIR=");
    libraries.push(&side.tools);
    process::run(quiet(configure.arg(libraries)))?;
    let mut build = program("cmake");
    build.arg("--build").arg(&side.kernels).arg("--target").args(KERNELS.map(|(name, _)| name));
    process::run(quiet(&mut build))
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}

/// One pair a round, in turns.
fn pairs(
    name: &str,
    rounds: usize,
    now: &Side,
    then: &Side,
    run: impl Fn(&Side) -> Result<f64, String>,
) -> Result<MeasuredRatio, String> {
    // The files are read once before anything is timed.
    for side in [now, then] {
        run(side)?;
    }
    let (mut ratios, mut least) = (Vec::new(), [f64::INFINITY; 2]);
    for round in 0..rounds {
        let (ours, theirs) = if first_is_ours(round) {
            let ours = run(now)?;
            (ours, run(then)?)
        } else {
            let theirs = run(then)?;
            (run(now)?, theirs)
        };
        ratios.push(ours / theirs);
        least = [least[0].min(ours), least[1].min(theirs)];
    }
    let ratio = summarise(&ratios).ok_or("no pairs")?;
    println!("{name:<16} {}", show(&ratio, least));
    Ok(MeasuredRatio { name: name.to_owned(), ratio })
}

fn show(ratio: &Ratio, [now, then]: [f64; 2]) -> String {
    let (low, high) = ratio.interval.unwrap_or((f64::NAN, f64::NAN));
    let verdict = if low > GOAL {
        "a regression"
    } else if high <= GOAL {
        "within 3 %"
    } else {
        "open: more rounds, or an idle machine"
    };
    format!(
        "{:.4} ({low:.4} to {high:.4}); least {now:.2} s and {then:.2} s, {:.4}; {verdict}",
        ratio.median,
        now / then
    )
}

/// CPU seconds of a recorded kernel.
fn record(side: &Side, kernel: &str, args: &[&str], recording: &Path, threads: &str) -> Result<f64, String> {
    let _ = fs::remove_dir_all(recording);
    let wrong = |e: std::io::Error| format!("{}: {e}", recording.display());
    fs::create_dir_all(recording.join("threads")).map_err(wrong)?;
    fs::write(recording.join("status"), [b'\n'; 4096]).map_err(wrong)?;
    let mut command = Command::new(side.kernels.join(kernel));
    command.args(args).args(["--threads", threads]).env("OMP_NUM_THREADS", threads);
    let seconds = timed(command.env("HOMENODE_TRACE_DIR", recording))?;
    let written = fs::read_dir(recording.join("threads")).map_err(wrong)?.count();
    if written == 0 { Err(format!("{kernel} recorded nothing")) } else { Ok(seconds) }
}

/// CPU seconds of a simulation.
fn replay(side: &Side, recording: &Path) -> Result<f64, String> {
    let mut command = Command::new(side.tools.join("homenode"));
    command.args([OsStr::new("compare"), "-q".as_ref()]).arg(recording);
    command.args(["-m", "sf15k", "-p", "first-touch", "-p", "competitive"]);
    timed(command.args(["--jobs", "1", "--yardsticks=none", "--json"]))
}

fn timed(command: &mut Command) -> Result<f64, String> {
    let before = children()?;
    process::run(quiet(command))?;
    Ok(children()? - before)
}

/// User and system time of all processes that were waited for, in seconds.
fn children() -> Result<f64, String> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|e| format!("/proc/self/stat: {e}"))?;
    // The name may hold spaces. Behind it, fields 16 and 17 of proc(5), in hundredths of a second
    // on every Linux.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n - 3)?.parse::<f64>().ok();
    let sum = ticks(16).zip(ticks(17)).map(|(user, system)| (user + system) / 100.0);
    sum.ok_or_else(|| "no times in /proc/self/stat".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parsed;

    #[test]
    fn a_verdict_follows_from_the_interval() {
        let of = |low, high| show(&Ratio { median: 1.0, interval: Some((low, high)) }, [1.0, 1.0]);
        assert!(of(1.04, 1.06).ends_with("a regression"));
        assert!(of(0.99, 1.02).ends_with("within 3 %"));
        assert!(of(0.99, 1.06).contains("open"));
    }

    #[test]
    fn the_arguments_are_a_revision_and_a_number_of_rounds() {
        let asked = |rounds, built| Ok(SinceArgs { rev: "v1".into(), rounds, built });
        assert_eq!(parsed::<SinceArgs>("v1"), asked(ROUNDS, false));
        assert_eq!(parsed::<SinceArgs>("v1 --rounds 9 --built"), asked(9, true));
        for wrong in ["", "--built", "v1 --rounds 2", "v1 9"] {
            assert!(parsed::<SinceArgs>(wrong).is_err(), "{wrong}");
        }
    }
}
