//! What `homenode run` spends of its own by default, on two and on four pretended nodes: over the
//! kernels, and over a stand-in for each pattern of program in which there is little or nothing to
//! gain (`own/patterns.c`).
//!
//! The goal is own CPU time of at most 3 % of the program's or 50 ms, whichever is more. Beside it
//! stands the same run with `--budget 1%+2s`, which spends the whole budget from the start.
//! `SECONDS` in the environment sets how long a pattern runs, 2 unless told; `ONLY` names the one
//! program to be run; `NODES` the numbers of nodes, `2,4` unless told; `ALL_AT_ONCE=0` leaves the
//! second run out.
//!
//! A table that no run of which armed anything ends the benchmark: it would say nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use homenode_kernels::{BuildVariant, Kernel};
use serde_json::Value;

/// The goal: homenode's own CPU time is at most this share of the program's …
const SHARE: f64 = 0.03;
/// … or at most this many milliseconds, whichever is more.
const LEAST_MS: f64 = 50.0;

const PATTERNS: [&str; 9] =
    ["parallel", "temporaries", "regions", "barriers", "stealing", "forks", "heap", "mapped", "serial"];

/// Kernels, their class, and options for a run of one to five seconds.
const KERNELS: [(&str, &str, &[&str]); 10] = [
    ("heat", "A", &["--init", "serial", "--iterations", "200"]),
    ("heat", "A", &["--iterations", "200"]),
    ("sor", "A", &["--iterations", "100"]),
    ("nas-cg", "A", &[]),
    ("nas-mg", "A", &["--iterations", "20"]),
    ("nas-ft", "W", &["--iterations", "20"]),
    ("nas-bt", "W", &["--iterations", "40"]),
    ("lu", "W", &[]),
    ("pagerank", "W", &[]),
    ("splash-radix", "W", &[]),
];

struct Program {
    name: String,
    path: PathBuf,
    args: Vec<OsString>,
}

fn homenode() -> PathBuf {
    // target/release/deps/own-…: the command is built for the same profile (`cargo xtask bench`
    // does so).
    let here = std::env::current_exe().expect("a path of its own");
    here.parent().and_then(Path::parent).expect("target/release").join("homenode")
}

fn set(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.into())
}

/// `None`, and why on stderr: it cannot be built here.
fn kernel((name, class, more): (&str, &str, &[&str]), threads: u32) -> Option<Program> {
    let kernel = Kernel::find(name).inspect_err(|e| eprintln!("{e}")).ok()?;
    let path = kernel
        .build(BuildVariant::Native, &homenode_task::Unattended)
        .inspect_err(|e| eprintln!("{e}"))
        .ok()?;
    let mut args = kernel.arguments(Some(class), Some(threads)).inspect_err(|e| eprintln!("{e}")).ok()?;
    args.extend(more.iter().map(OsString::from));
    let serial = if more.contains(&"serial") { ", serial" } else { "" };
    Some(Program { name: format!("{name} {class}{serial}"), path, args })
}

fn patterns(folder: &Path) -> Vec<Program> {
    let (source, path) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/own/patterns.c"), folder.join("patterns"));
    let built = Command::new("gcc").args(["-O2", "-g", "-fopenmp", "-o"]).arg(&path).arg(source).status();
    if !built.is_ok_and(|s| s.success()) {
        println!("the patterns are skipped: gcc cannot build them");
        return Vec::new();
    }
    let program = |name: &&str| Program {
        name: (*name).into(),
        path: path.clone(),
        args: [OsString::from(name), set("SECONDS", "2").into()].into(),
    };
    PATTERNS.iter().map(program).collect()
}

/// What one run came to, over all of its processes.
struct Spent {
    own_ms: f64,
    cpu_ms: f64,
    arms: f64,
    copied: f64,
    moved: f64,
    rounds: f64,
    worked: String,
}

impl Spent {
    fn allowed(&self) -> f64 {
        (self.cpu_ms * SHARE).max(LEAST_MS)
    }

    fn verdict(&self) -> &'static str {
        if self.own_ms <= self.allowed() { "holds" } else { "OVER" }
    }
}

fn run(program: &Program, nodes: u32, more: &[&str], folder: &Path) -> Spent {
    let report = folder.join("report.json");
    let n = nodes.to_string();
    let mut command = Command::new(homenode());
    command.args(["run", "--pretend-nodes", &n, "--threads", &n, "--json", "--summary"]).arg(&report);
    command
        .args(more)
        .arg("--")
        .arg(&program.path)
        .args(&program.args)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.status().expect("homenode is built");
    assert!(status.success(), "{}: {status}", program.name);
    let text = std::fs::read_to_string(report).expect("a closing report");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let all = json["processes"].as_array().expect("processes");
    let sum = |key: &str| all.iter().map(|p| p[key].as_f64().unwrap_or(0.0)).sum::<f64>();
    let rounds = all.iter().map(|p| p["rounds"].as_f64().unwrap_or(0.0)).sum();
    Spent {
        own_ms: sum("own_ns") / 1e6,
        cpu_ms: sum("cpu_ns") / 1e6,
        arms: sum("arms"),
        copied: sum("pages_copied"),
        moved: sum("pages_moved"),
        rounds,
        worked: all.first().map_or(String::new(), |p| p["worked"].as_str().unwrap_or("").into()),
    }
}

fn main() {
    let folder = std::env::temp_dir().join(format!("homenode-bench-own-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let only = std::env::var("ONLY").ok();
    let both = set("ALL_AT_ONCE", "1") != "0";
    for nodes in set("NODES", "2,4").split(',').filter_map(|n| n.parse::<u32>().ok()) {
        println!(
            "\n| {nodes} nodes | CPU, s | own, ms | % | arms | copied | moved | rounds | answer | goal | own at once, ms |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|");
        let kernels = KERNELS.into_iter().filter_map(|k| kernel(k, nodes));
        let (mut armed, mut over) = (0.0, 0);
        for program in patterns(&folder).into_iter().chain(kernels) {
            if only.as_deref().is_some_and(|o| !program.name.starts_with(o)) {
                continue;
            }
            let now = run(&program, nodes, &[], &folder);
            let at_once = both.then(|| run(&program, nodes, &["--budget", "1%+2s"], &folder));
            println!(
                "| {} | {:.2} | {:.1} | {:.1} | {} | {} | {} | {} | {} | {} | {} |",
                program.name,
                now.cpu_ms / 1e3,
                now.own_ms,
                now.own_ms / now.cpu_ms.max(1.0) * 100.0,
                now.arms,
                now.copied,
                now.moved,
                now.rounds,
                now.worked,
                now.verdict(),
                at_once.map_or("-".into(), |s| format!("{:.1}", s.own_ms)),
            );
            armed += now.arms;
            over += i32::from(now.own_ms > now.allowed());
        }
        assert!(armed > 0.0, "nothing was armed in any run");
        println!("bench: own-{nodes}-nodes-over {over} programs");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
