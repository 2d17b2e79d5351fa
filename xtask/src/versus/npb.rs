//! NAS programs beside a reference binary of the NAS Parallel Benchmarks, of the same program and
//! class.
//!
//! Compared is the benchmark's own timed section, as both print it, when the machine is quiet;
//! `--cpu` compares user CPU time of the whole processes instead, which other programs on the
//! machine disturb less.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::pairs::{Ratio, first_is_ours, summarise};
use crate::process::{self, program};
use crate::{CommandResult, root};

/// Where our programs are built, with the flags of kernels/CMakeLists.txt.
const FOLDER: &str = "target/versus";
const KERNELS: [&str; 5] = ["cg", "mg", "ft", "bt", "sp"];

/// What `versus npb` takes.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct NpbArgs {
    /// The reference binary
    #[arg(long, value_name = "PATH")]
    binary: PathBuf,
    /// cg, mg, ft, bt or sp; without it, the binary's name tells
    #[arg(long, default_value = "", hide_default_value = true)]
    kernel: String,
    /// S, W, A or B; without it, the binary's name tells
    #[arg(long, default_value = "", hide_default_value = true)]
    class: String,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: u32,
    /// Pairs of runs
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pairs: u32,
    /// Compare user CPU time of the whole processes
    #[arg(long)]
    cpu: bool,
}

/// One run.
struct Run {
    /// What the program prints as the time of its timed section.
    section: f64,
    /// User CPU time of the process.
    cpu: f64,
}

pub fn run(args: NpbArgs) -> CommandResult {
    let job = complete(args)?;
    process::run(program("cmake").args(["-S", "kernels", "-B", FOLDER]).stdout(Stdio::null()))?;
    let name = format!("nas-{}", job.kernel);
    process::run(program("cmake").args(["--build", FOLDER, "--target", &name]).stdout(Stdio::null()))?;
    let ours = root().join(FOLDER).join(&name);
    let mut ratios = Vec::new();
    for number in 0..job.pairs as usize {
        let (mine, other) = pair(&job, &ours, number)?;
        let (a, b) = if job.cpu { (mine.cpu, other.cpu) } else { (mine.section, other.section) };
        if !(a > 0.0 && b > 0.0) {
            return Err(format!("times of {a} s and {b} s cannot be compared: take a larger class"));
        }
        println!("pair {number}: ours {a:.3} s, reference {b:.3} s, ratio {:.3}", a / b);
        ratios.push(a / b);
    }
    println!("{}", show(&job, summarise(&ratios)));
    Ok(())
}

/// What is not said is in the binary's name, as NPB's makefiles give it: `bt.A.x`, `bt.A`.
fn complete(mut job: NpbArgs) -> Result<NpbArgs, String> {
    if !job.binary.is_file() {
        return Err(format!("--binary {}: there is no such file", job.binary.display()));
    }
    let name = job.binary.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
    let mut parts = name.split('.');
    let (kernel, class) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if job.kernel.is_empty() {
        job.kernel = kernel.to_lowercase();
    }
    if job.class.is_empty() {
        job.class = class.to_owned();
    }
    job.kernel = job.kernel.trim_start_matches("nas-").to_owned();
    if !KERNELS.contains(&job.kernel.as_str()) {
        return Err(format!("--kernel '{}': it is one of {}", job.kernel, KERNELS.join(", ")));
    }
    if !["S", "W", "A", "B"].contains(&job.class.as_str()) {
        return Err(format!("--class '{}': it is S, W, A or B", job.class));
    }
    job.binary = fs::canonicalize(&job.binary).map_err(|e| format!("{}: {e}", job.binary.display()))?;
    Ok(job)
}

/// Ours and the reference's.
fn pair(job: &NpbArgs, ours: &Path, number: usize) -> Result<(Run, Run), String> {
    let mine = || {
        let mut command = Command::new(ours);
        command.args(["--class", &job.class, "--threads", &job.threads.to_string(), "--json"]);
        once(job, command, own_section)
    };
    let other = || once(job, Command::new(&job.binary), reference_section);
    if first_is_ours(number) {
        let mine = mine()?;
        Ok((mine, other()?))
    } else {
        let other = other()?;
        Ok((mine()?, other))
    }
}

fn once(
    job: &NpbArgs,
    mut command: Command,
    section: fn(&str) -> Result<f64, String>,
) -> Result<Run, String> {
    let title = command.get_program().to_string_lossy().into_owned();
    command.env("OMP_NUM_THREADS", job.threads.to_string()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let before = children_ticks()?;
    let output = command.output().map_err(|e| format!("cannot start {title}: {e}"))?;
    // A hundred ticks a second on every Linux that this runs on.
    let cpu = (children_ticks()? - before) as f64 / 100.0;
    if !output.status.success() {
        return Err(format!("{title} failed ({})", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let section = section(&text).map_err(|why| format!("{title}: {why}"))?;
    Ok(Run { section, cpu })
}

/// User CPU time of ended children, in clock ticks: field `cutime` of proc(5)'s stat.
fn children_ticks() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/self/stat").map_err(|e| format!("/proc/self/stat: {e}"))?;
    // The name before may hold blanks; the third field comes after its bracket.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields
        .split_whitespace()
        .nth(13)
        .and_then(|t| t.parse().ok())
        .ok_or_else(|| "/proc/self/stat: no cutime".into())
}

/// Of our JSON, verified.
fn own_section(text: &str) -> Result<f64, String> {
    let json: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if json["verification"]["state"] != "successful" {
        return Err(format!("its result is {}", json["verification"]));
    }
    json["section_seconds"].as_f64().or_else(|| json["seconds"].as_f64()).ok_or_else(|| "no time".into())
}

/// Of NPB's closing table, verified.
fn reference_section(text: &str) -> Result<f64, String> {
    let field = |name: &str| {
        // BT and SP also say ' Verification Successful' before the table.
        let mut fields = text.lines().filter_map(|l| l.split_once('='));
        fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    if !field("Verification").is_some_and(|v| v.eq_ignore_ascii_case("successful")) {
        return Err("it prints no 'Verification = SUCCESSFUL': is it a NAS Parallel Benchmark?".into());
    }
    field("Time in seconds")
        .and_then(|t| t.parse().ok())
        .ok_or_else(|| "it prints no 'Time in seconds'".into())
}

fn show(job: &NpbArgs, ratio: Option<Ratio>) -> String {
    let what = if job.cpu { "user CPU time" } else { "timed section" };
    let head = format!("{} {}, {} threads, {what}, {} pairs", job.kernel, job.class, job.threads, job.pairs);
    match ratio {
        Some(Ratio { median, interval: Some((low, high)) }) => {
            format!("{head}: ratio {median:.3}, 95 % interval {low:.3} to {high:.3}")
        }
        Some(Ratio { median, interval: None }) => {
            format!("{head}: ratio {median:.3}; an interval takes six pairs")
        }
        None => head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parsed;

    #[test]
    fn both_programs_times_are_read() {
        let text = " Verification Successful\n Time in seconds =       2.59\n Verification    =               SUCCESSFUL\n";
        assert_eq!(reference_section(text), Ok(2.59));
        assert!(reference_section(&text.replace("SUCC", "UNSUCC")).is_err());
        let ours = r#"{"seconds":1.5,"section_seconds":2,"verification":{"state":"successful"}}"#;
        assert_eq!(own_section(ours), Ok(2.0));
        assert_eq!(own_section(&ours.replace("section_seconds", "x")), Ok(1.5));
        assert!(own_section(&ours.replace("successful", "FAILED")).is_err());
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        let asked = |text| parsed::<NpbArgs>(text).and_then(complete);
        for (text, word) in [
            ("--threads 1", "--binary"),
            ("--binary /none/bt.A.x", "no such file"),
            ("--binary /proc/self/exe --kernel lu", "'lu'"),
            ("--binary /proc/self/exe --kernel bt --class C", "'C'"),
            ("--binary /proc/self/exe --pairs 0", "--pairs"),
            ("--fast 1", "'--fast'"),
        ] {
            let error = asked(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        let job = asked("--binary /proc/self/exe --kernel nas-bt --class A --cpu").unwrap();
        assert_eq!((job.kernel.as_str(), job.cpu, job.pairs), ("bt", true, 9));
    }
}
