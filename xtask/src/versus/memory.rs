//! `homenode measure` beside programs that measure the same: idle latency beside multichase, triad
//! beside STREAM.
//!
//! Both are asked for the same: one random cycle through a buffer of that size and stride in pages
//! of that size; arrays of the length that the STREAM binary was built with, as many threads, bound
//! to CPUs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::pairs::{Ratio, first_is_ours, summarise};
use crate::process::{self, cargo};
use crate::{CommandResult, root};

/// What is asked for: within so much of the peer.
const GOAL: f64 = 0.03;

/// What both comparisons take.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct PeerArgs {
    /// The peer's binary
    #[arg(long, value_name = "PATH", value_parser = file)]
    binary: PathBuf,
    /// Our binary; built if it is not named
    #[arg(long, value_name = "PATH", value_parser = file)]
    homenode: Option<PathBuf>,
    /// Pairs of runs
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pairs: u32,
}

/// What `versus multichase` takes.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct MultichaseArgs {
    #[command(flatten)]
    peer: PeerArgs,
    /// MiB of the buffer
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    buffer: u64,
    /// Bytes from one access to the next
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    stride: u64,
    /// Size of pages
    #[arg(long, default_value = "2m", value_parser = ["4k", "2m"])]
    pages: String,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    seconds: u64,
}

/// What `versus stream` takes.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct StreamArgs {
    #[command(flatten)]
    peer: PeerArgs,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    threads: u64,
}

/// Idle latency.
pub fn multichase(job: MultichaseArgs) -> CommandResult {
    compare(
        &job.peer,
        "ns",
        &format!("idle latency, {} MiB, stride {}, {} pages", job.buffer, job.stride, job.pages),
        &|| {
            let time = (job.seconds * 1000).to_string();
            let mut words = vec!["--only", "latency", "--pages", &job.pages, "--time", &time];
            let (buffer, stride) = (format!("{}M", job.buffer), job.stride.to_string());
            words.extend(["--buffer", &buffer, "--stride", &stride]);
            ours(&job.peer, &words, "latency", None)
        },
        &|| {
            let mut peer = Command::new(&job.peer.binary);
            // Samples are of half a second each; the whole buffer is one neighbourhood, or pages
            // would be visited in turns.
            let (size, samples) = (format!("{}m", job.buffer), (2 * job.seconds).to_string());
            peer.args(["-v", "-m", &size, "-T", &size, "-s", &job.stride.to_string(), "-n", &samples]);
            if job.pages == "2m" {
                peer.arg("-H");
            }
            median_sample(&output(peer)?)
        },
    )
}

/// Triad.
pub fn stream(job: StreamArgs) -> CommandResult {
    let length = array_size(&theirs(&job)?)?;
    compare(
        &job.peer,
        "MB/s",
        &format!("triad, arrays of {length} numbers, {} threads, best of ten rounds", job.threads),
        &|| {
            let (buffer, threads) = ((length * 8).to_string(), job.threads.to_string());
            let loops = ["--only", "bandwidth", "--ops", "copy,scale,add,triad", "--stores", "regular"];
            let mut words = loops.to_vec();
            words.extend(["--pages", "4k", "--time", "300000", "--buffer", &buffer, "--threads", &threads]);
            ours(&job.peer, &words, "bandwidth", Some("triad"))
        },
        &|| triad(&theirs(&job)?),
    )
}

fn compare(
    job: &PeerArgs,
    unit: &str,
    what: &str,
    mine: &dyn Fn() -> Result<f64, String>,
    other: &dyn Fn() -> Result<f64, String>,
) -> CommandResult {
    if job.homenode.is_none() {
        process::run(cargo().args(["build", "--release", "--quiet", "-p", "homenode-cli"]))?;
    }
    let mut ratios = Vec::new();
    for number in 0..job.pairs as usize {
        let (a, b) = if first_is_ours(number) {
            let a = mine()?;
            (a, other()?)
        } else {
            let b = other()?;
            (mine()?, b)
        };
        if !(a > 0.0 && b > 0.0) {
            return Err(format!("{a} and {b} {unit} cannot be compared"));
        }
        println!("pair {number}: ours {a:.2} {unit}, reference {b:.2} {unit}, ratio {:.4}", a / b);
        ratios.push(a / b);
    }
    println!("{what}, {} pairs: {}", job.pairs, show(summarise(&ratios)));
    Ok(())
}

fn show(ratio: Option<Ratio>) -> String {
    match ratio {
        Some(Ratio { median, interval: Some((low, high)) }) => {
            let within = |r: f64| (r - 1.0).abs() <= GOAL;
            let said = match (within(low) && within(high), within(median)) {
                (true, _) => "within 3 %, the whole interval",
                (false, true) => "within 3 %, but the interval is wider",
                (false, false) => "not within 3 %",
            };
            format!("ratio {median:.4}, 95 % interval {low:.4} to {high:.4}: {said}")
        }
        Some(Ratio { median, interval: None }) => format!("ratio {median:.4}; an interval takes six pairs"),
        None => "nothing was run".into(),
    }
}

/// A file that exists, by its whole path.
fn file(path: &str) -> Result<PathBuf, String> {
    if !Path::new(path).is_file() {
        return Err("there is no such file".to_owned());
    }
    fs::canonicalize(path).map_err(|e| e.to_string())
}

fn output(mut command: Command) -> Result<String, String> {
    let title = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cannot start {title}: {e}"))?;
    // 3, of ours: a cell has no number, and says why.
    if !output.status.success() && output.status.code() != Some(3) {
        return Err(format!("{title} failed ({})", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The one cell of a kind that we measured on the first node, proved.
fn ours(job: &PeerArgs, words: &[&str], kind: &str, op: Option<&str>) -> Result<f64, String> {
    let built = || root().join("target/release/homenode");
    let mut command = Command::new(job.homenode.clone().unwrap_or_else(built));
    command.args(["measure", "--nodes", "0", "--json"]).args(words);
    value(&output(command)?, kind, op)
}

fn value(json: &str, kind: &str, op: Option<&str>) -> Result<f64, String> {
    let json: serde_json::Value = serde_json::from_str(json).map_err(|e| e.to_string())?;
    let cells = json["cells"].as_array().ok_or("our measurement has no cells")?;
    let wanted = |c: &&serde_json::Value| c["kind"] == kind && op.is_none_or(|op| c["op"] == op);
    let cell = cells.iter().find(wanted).ok_or("our measurement has no such cell")?;
    cell["value"].as_f64().ok_or_else(|| format!("our cell has no number: {}", cell["why"]))
}

fn theirs(job: &StreamArgs) -> Result<String, String> {
    let mut peer = Command::new(&job.peer.binary);
    peer.env("OMP_NUM_THREADS", job.threads.to_string()).env("OMP_PROC_BIND", "true");
    output(peer)
}

/// The median of multichase's samples (`avg=103.2` with -v), as ours is one: its own result is the
/// best or the mean.
fn median_sample(text: &str) -> Result<f64, String> {
    let mut samples: Vec<f64> =
        text.split_whitespace().filter_map(|w| w.strip_prefix("avg=")?.parse().ok()).collect();
    samples.sort_by(f64::total_cmp);
    let n = samples.len();
    match n {
        0 => Err(format!("it prints no samples: is it multichase? '{}'", text.trim())),
        _ => Ok(f64::midpoint(samples[(n - 1) / 2], samples[n / 2])),
    }
}

/// `Array size = 20000000 (elements), Offset = 0 (elements)`
fn array_size(text: &str) -> Result<u64, String> {
    let line = text.lines().find_map(|l| l.trim().strip_prefix("Array size ="));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| "it prints no 'Array size': is it STREAM 5.10?".into())
}

/// The best rate of triad, validated.
fn triad(text: &str) -> Result<f64, String> {
    if !text.contains("Solution Validates") {
        return Err("it does not say 'Solution Validates'".into());
    }
    let line = text.lines().find_map(|l| l.trim().strip_prefix("Triad:"));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| "it prints no 'Triad:'".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parsed;

    #[test]
    fn both_programs_numbers_are_read() {
        assert_eq!(
            median_sample("  103.2  avg=103.2\n  99.5  avg=99.5\n  98.1  avg=98.1\n 98.1\n"),
            Ok(99.5)
        );
        assert!(median_sample("usage:").is_err());
        let text = "Array size = 20000000 (elements), Offset = 0 (elements)\n\
                    Triad:          11420.5     0.042109     0.042029     0.042210\nSolution Validates: avg error\n";
        assert_eq!((array_size(text), triad(text)), (Ok(20_000_000), Ok(11_420.5)));
        assert!(triad(&text.replace("Validates", "Fails")).is_err());
        let ours = r#"{"cells":[{"kind":"latency","value":99.5},{"kind":"bandwidth","op":"triad","value":null,"why":"astray"}]}"#;
        assert_eq!(value(ours, "latency", None), Ok(99.5));
        assert!(value(ours, "bandwidth", Some("triad")).unwrap_err().contains("astray"));
        assert!(value(ours, "core", None).is_err());
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        for (text, word) in [
            ("--pairs 3", "--binary"),
            ("--binary /none/x", "no such file"),
            ("--binary /proc/self/exe --pages 1g", "4k, 2m"),
            ("--binary /proc/self/exe --pairs 0", "--pairs"),
            ("--fast 1", "'--fast'"),
        ] {
            let error = parsed::<MultichaseArgs>(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        let job = parsed::<StreamArgs>("--binary /proc/self/exe --threads 2").unwrap();
        assert_eq!((job.threads, job.peer.pairs), (2, 9));
        let own_size = parsed::<StreamArgs>("--binary /proc/self/exe --buffer 2");
        assert!(own_size.is_err(), "the binary has its size");
    }

    #[test]
    fn an_interval_is_judged_as_a_whole() {
        let of = |low, high| show(Some(Ratio { median: 1.01, interval: Some((low, high)) }));
        assert!(of(0.98, 1.02).ends_with("the whole interval"));
        assert!(of(0.98, 1.05).ends_with("wider"));
        assert!(show(Some(Ratio { median: 1.2, interval: Some((1.1, 1.3)) })).ends_with("not within 3 %"));
    }
}
