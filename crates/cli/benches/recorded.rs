//! What `homenode run --record` costs over `homenode run`, on two pretended nodes.
//!
//! The baseline is the same command without `--record`. Both run in turn, and each run with it is
//! compared with its two neighbours without. The median of the ratios counts, with its 95 %
//! interval. CPU time is user and system time:
//!
//! | what | of whom | goal |
//! |---|---|---|
//! | in the program | the process with the library, by the closing report | 1.01 |
//! | own | homenode in that process, by its own clocks: what a busy machine does not blur | 1 % more |
//! | all of it | `homenode` and what it starts, with names and tables made at the end | – |
//!
//! Bytes are those of the stream, which is what the program writes while it runs. The file is
//! looked at every two milliseconds until homenode has made tables of it. Goals: 32 bytes a page of
//! the objects that take part, and 1 MB a second. `ROUNDS` in the environment sets how many pairs
//! there are, 9 unless told; `ONLY` names one program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homenode_dataset::Dataset;
use homenode_dataset::tables::Object;
use homenode_kernels::{BuildVariant, Kernel};
use homenode_statistics::Sorted;
use serde_json::Value;

/// Threads of each program.
const THREADS: u32 = 2;
/// Pairs unless told.
const ROUNDS: usize = 9;
/// The policies: pages are armed, or watched.
const POLICIES: [(&str, &[&str]); 2] =
    [("moving", &["--policy", "next-touch"]), ("watching", &["--policy", "competitive"])];

struct Program {
    name: &'static str,
    path: PathBuf,
    args: Vec<OsString>,
}

/// `None`, and why on stderr: it cannot be built here.
fn kernel(name: &'static str, class: &str, iterations: &str) -> Option<Program> {
    let built = Kernel::find(name).and_then(|kernel| {
        Ok((
            kernel.build(BuildVariant::Native, &homenode_task::Unattended)?,
            kernel.arguments(Some(class), Some(THREADS))?,
        ))
    });
    let (path, mut args) = built.inspect_err(|e| eprintln!("{e}")).ok()?;
    args.extend(["--init", "serial", "--iterations", iterations].map(Into::into));
    Some(Program { name, path, args })
}

fn homenode() -> PathBuf {
    // target/release/deps/recorded-…: the command is built for the same profile.
    let here = std::env::current_exe().expect("a path of its own");
    here.parent().and_then(Path::parent).expect("target/release").join("homenode")
}

/// User and system time of all processes that were waited for, in seconds.
fn children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: f64 = rest.split_whitespace().skip(13).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
    // What Linux calls USER_HZ is 100 everywhere.
    ticks / 100.0
}

/// Bytes of all files in a folder.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|e| e.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum()
}

/// One run, with or without a recording.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    /// CPU seconds in the program.
    inside: f64,
    /// CPU seconds of homenode in the program, as its own clocks tell.
    own: f64,
    /// CPU seconds of all of it.
    all: f64,
    /// Seconds of the program.
    elapsed: f64,
    /// Bytes of the stream.
    streamed: u64,
}

fn run(program: &Program, policy: &[&str], record: Option<&Path>, folder: &Path) -> Ran {
    let report = folder.join("report.json");
    let mut command = Command::new(homenode());
    command.args(["run", "--pretend-nodes", "2", "--threads", &THREADS.to_string(), "--json", "--summary"]);
    command.arg(&report).args(policy);
    if let Some(record) = record {
        let _ = fs::remove_dir_all(record);
        command.arg("--record").arg(record);
    }
    command.arg("--").arg(&program.path).args(&program.args).stdout(Stdio::null()).stderr(Stdio::piped());
    let (before, begin) = (children(), Instant::now());
    let mut child = command.spawn().expect("homenode is built");
    let streams = record.map(|r| r.join("streams"));
    let (mut streamed, mut elapsed) = (0, 0.0);
    let status = loop {
        if let Some(now) = streams.as_deref().map(size).filter(|now| *now > streamed) {
            (streamed, elapsed) = (now, begin.elapsed().as_secs_f64());
        }
        match child.try_wait().expect("a child of ours") {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    assert!(status.success(), "{}: {status}", program.name);
    let text = fs::read_to_string(report).expect("a closing report");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let cpu: f64 =
        json["processes"].as_array().into_iter().flatten().filter_map(|p| p["cpu_ns"].as_f64()).sum();
    assert!(cpu > 0.0, "{}: the report tells no CPU time", program.name);
    let own: f64 =
        json["processes"].as_array().into_iter().flatten().filter_map(|p| p["own_ns"].as_f64()).sum();
    Ran { inside: cpu / 1e9, own: own / 1e9, all: children() - before, elapsed, streamed }
}

fn median(all: Vec<f64>) -> f64 {
    Sorted::of(all).upper_median().expect("there are rounds")
}

/// The interval that covers the median of such ratios with at least 95 %. All of them where they
/// are fewer than six.
fn interval(all: Vec<f64>) -> (f64, f64) {
    let all = Sorted::of(all);
    all.interval().or_else(|| all.smallest().zip(all.largest())).expect("there are rounds")
}

fn spread(all: &[f64]) -> (f64, f64) {
    all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), r| (low.min(*r), high.max(*r)))
}

/// Pages of the objects in a recording, and what it says was coarsened or lost.
fn pages(recording: &Path) -> (u64, Vec<String>) {
    let set = Dataset::open(recording).expect("a recording");
    assert!(set.missing().is_empty(), "{:?}", set.missing());
    (set.rows::<Object>().map(|o| o.bytes.0.div_ceil(4096)).sum(), set.meta().coarsened.clone())
}

fn compare(program: &Program, what: &str, policy: &[&str], rounds: usize, folder: &Path) {
    let name = program.name;
    let recording = folder.join("r.hnrec");
    let (mut inside, mut all, mut same) = (Vec::new(), Vec::new(), Vec::new());
    let mut own = Vec::new();
    let (mut streamed, mut seconds) = (0, 1.0);
    let mut before = run(program, policy, None, folder);
    for _ in 0..rounds {
        let with = run(program, policy, Some(&recording), folder);
        let after = run(program, policy, None, folder);
        inside.push(with.inside * 2.0 / (before.inside + after.inside));
        own.push((with.own - (before.own + after.own) / 2.0) / with.inside * 100.0);
        all.push(with.all * 2.0 / (before.all + after.all));
        same.push(after.inside / before.inside);
        if with.streamed > streamed {
            (streamed, seconds) = (with.streamed, with.elapsed);
        }
        before = after;
    }
    let (pages, coarsened) = pages(&recording);
    assert!(streamed > 0 && pages > 0, "{name}: nothing was recorded");
    let ((low, high), (same_low, same_high)) = (interval(inside.clone()), interval(same));
    let ((all_low, all_high), all) = (interval(all.clone()), median(all));
    let inside = median(inside);
    let (a_page, a_second) = (streamed as f64 / pages as f64, streamed as f64 / seconds);
    println!(
        "{name}, {what}: CPU time in the program {inside:.4} × (95 % interval of {rounds} pairs {low:.4} to {high:.4}), without \
         against without {same_low:.4} to {same_high:.4}; all of it {all:.4} × ({all_low:.4} to {all_high:.4}), {:.2} s alone",
        before.all
    );
    println!(
        "{name}, {what}: {streamed} bytes in {seconds:.2} s: {a_page:.2} a page of {pages}, {:.3} MB/s",
        a_second / 1e6
    );
    coarsened.iter().for_each(|c| println!("{name}, {what}: {c}"));
    let ((own_low, own_high), own) = (spread(&own), median(own.clone()));
    println!(
        "{name}, {what}: homenode's own time, with less without: {own:.3} % ({own_low:.3} to {own_high:.3}) of the CPU time"
    );
    println!("bench: record-{name}-{what}-cpu {inside:.4} ratio");
    println!("bench: record-{name}-{what}-page {a_page:.3} bytes");
    println!("bench: record-{name}-{what}-second {:.1} kB/s", a_second / 1e3);
}

fn main() {
    let folder = std::env::temp_dir().join(format!("homenode-bench-recorded-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    let rounds = std::env::var("ROUNDS").ok().and_then(|v| v.parse().ok()).unwrap_or(ROUNDS).max(1);
    let only = std::env::var("ONLY").ok();
    let all = [("heat", "A", "500"), ("nas-cg", "A", "45"), ("nas-mg", "A", "12")];
    let wanted = all.into_iter().filter(|(name, ..)| only.as_deref().is_none_or(|o| o == *name));
    for program in wanted.filter_map(|(name, class, iterations)| kernel(name, class, iterations)) {
        for (what, policy) in POLICIES {
            compare(&program, what, policy, rounds, &folder);
        }
    }
    let _ = fs::remove_dir_all(&folder);
}
