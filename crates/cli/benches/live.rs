//! What `homenode run` costs a program, on two pretended nodes: unarmed (regions are seen and
//! nothing is armed), settled (its pages have moved, and nothing armed is touched any more) and
//! while watching.
//!
//! Own time is CPU time as the closing report has it; settled, of the run's last part, as that
//! tells. Wall time is the median ratio of interleaved pairs, with against without, and its 95 %
//! interval by order statistics: alone, settled, alone, watching, and so on, each against the mean
//! of those next to it. Alone is the program itself, without `homenode`. Settled, the ratio is of
//! the later half of the iterations by the times that the program prints; those alone against one
//! another show what this machine can resolve. `PAIRS` in the environment sets how many, 30 unless
//! told, 0 leaves them out; `ONLY` names the one program to be run, or `every-region`, which
//! compares arming at every region with arming once.
//!
//! A run in which nothing was armed, touched or copied that should have been ends the benchmark:
//! its times would say nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use homenode_kernels::{BuildVariant, Kernel};
use homenode_statistics::Sorted;
use serde_json::Value;

/// Threads of each program.
const THREADS: u32 = 2;
/// Pairs that the requirement is for.
const PAIRS: usize = 30;
/// The part of a run that counts as later, of its iterations.
const LATER: f64 = 0.5;

/// Short regions, one after the other, ten thousand a second on two cores of 2.5 GHz, for about
/// three seconds. A hundredth of them is an iteration, with its time.
const REGIONS: &str = "#include <omp.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    int main(int c, char **v) { int n = 1 << 17, all = atoi(v[c - 1]); double *a = calloc(n, 8), since = omp_get_wtime();\n\
    for (int r = 0; r < all; r++) {\n#pragma omp parallel for schedule(static)\n for (int b = 0; b < n; b += 64)\n\
    for (int k = 0; k < 4; k++) for (int i = b; i < b + 64; i++) a[i] += k;\n\
    if ((r + 1) % (all / 100) == 0) { double now = omp_get_wtime(); printf(\"%d %f\\n\", r / (all / 100), now - since); since = now; } }\n\
    printf(\"%g\\n\", a[n / 2]); return 0; }\n";

/// A program: its name, its file, its arguments.
struct Program {
    name: &'static str,
    path: PathBuf,
    args: Vec<OsString>,
}

impl Program {
    /// `None`, and why on stderr: it cannot be built here.
    fn kernel(name: &'static str, class: &str, iterations: Option<&str>) -> Option<Self> {
        let built = Kernel::find(name).and_then(|kernel| {
            Ok((
                kernel.build(BuildVariant::Native, &homenode_task::Unattended)?,
                kernel.arguments(Some(class), Some(THREADS))?,
            ))
        });
        let (path, mut args) = built.inspect_err(|e| eprintln!("{e}")).ok()?;
        args.extend(["--init", "serial"].map(Into::into));
        args.extend(iterations.into_iter().flat_map(|n| ["--iterations".into(), n.into()]));
        Some(Self { name, path, args })
    }

    fn regions(folder: &Path) -> Option<Self> {
        let (source, path) = (folder.join("regions.c"), folder.join("regions"));
        std::fs::write(&source, REGIONS).expect("a file in the temporary folder");
        let built = Command::new("gcc").args(["-O2", "-fopenmp", "-o"]).arg(&path).arg(&source).status();
        built.is_ok_and(|s| s.success()).then(|| Self { name: "regions", path, args: vec!["30000".into()] })
    }

    /// Without homenode. `None`: it does not run here.
    fn alone(&self) -> Option<Times> {
        let mut command = Command::new(&self.path);
        command.args(&self.args).env("OMP_NUM_THREADS", THREADS.to_string());
        let begin = Instant::now();
        let out = command.output().ok()?;
        out.status.success().then(|| Times::of(begin, &out))
    }

    /// Under `homenode run`; with the closing report's first process.
    fn with(&self, options: &[&str], folder: &Path) -> (Times, Value) {
        let report = folder.join("report.json");
        let mut command = Command::new(homenode());
        command.args(["run", "--threads", &THREADS.to_string(), "--json", "--summary"]).arg(&report);
        command.args(options).arg("--").arg(&self.path).args(&self.args);
        let begin = Instant::now();
        let out = command.output().expect("homenode is built");
        let times = Times::of(begin, &out);
        assert!(out.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&out.stderr));
        let text = std::fs::read_to_string(report).expect("a closing report");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        (times, json["processes"][0].clone())
    }
}

fn homenode() -> PathBuf {
    // target/release/deps/live-…: the command is built for the same profile (`cargo xtask bench`
    // does so).
    let here = std::env::current_exe().expect("a path of its own");
    here.parent().and_then(Path::parent).expect("target/release").join("homenode")
}

fn programs(folder: &Path) -> Vec<Program> {
    let kernels = [("nas-cg", "A", "60"), ("heat", "A", "500"), ("nas-mg", "B", "20")];
    let kernels = kernels.into_iter().filter_map(|(name, class, n)| Program::kernel(name, class, Some(n)));
    Program::regions(folder).into_iter().chain(kernels).collect()
}

/// Seconds of one run.
#[derive(Clone, Copy)]
struct Times {
    whole: f64,
    /// Of the later half of the iterations, by the program.
    later: f64,
}

impl Times {
    fn of(begin: Instant, out: &Output) -> Self {
        let whole = begin.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&out.stdout);
        // A line an iteration: its number and its time.
        let time = |line: &str| {
            let mut words = line.split_whitespace();
            let (number, time) = (words.next()?.parse::<u32>(), words.next()?.parse::<f64>());
            number.ok().and(time.ok()).filter(|_| words.next().is_none())
        };
        let all: Vec<f64> = text.lines().filter_map(time).collect();
        let later = &all[(all.len() as f64 * (1.0 - LATER)) as usize..];
        Self { whole, later: later.iter().sum() }
    }
}

/// Median and its 95 % interval; all of the ratios where they are too few for one.
fn median(ratios: Vec<f64>) -> (f64, f64, f64) {
    let ratios = Sorted::of(ratios);
    let all = || ratios.smallest().zip(ratios.largest());
    let (low, high) = ratios.interval().or_else(all).expect("there are pairs");
    (ratios.upper_median().expect("there are pairs"), low, high)
}

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or(0.0)
}

/// How homenode is called.
const UNARMED: &[&str] = &["--pretend-nodes", "2", "--policy", "next-touch=asked"];
const SETTLED: &[&str] = &["--pretend-nodes", "2", "--policy", "next-touch", "--budget", "100%+60s"];
const WATCHING: &[&str] =
    &["--pretend-nodes", "2", "--policy", "competitive:quiet=0", "--budget", "100%+60s"];

fn done(report: &Value) -> String {
    let [arms, faults, copied] = ["arms", "faults", "pages_copied"].map(|key| number(report, key));
    format!("{arms} arms, {faults} faults, {copied} pages copied")
}

/// Memory was armed, touched and copied, or the run says nothing.
fn check_moved(name: &str, report: &Value) {
    let moved = ["arms", "faults", "pages_copied"].iter().all(|key| number(report, key) > 0.0);
    assert!(moved, "{name}: {}; could not: {}", done(report), report["could_not"]);
}

/// Whether nothing armed was touched in the later half of the run.
fn is_settled(report: &Value) -> bool {
    number(&report["settled"], "regions") >= LATER * number(report, "region_runs")
}

/// Pages were asked for. Some programs write little (CG): in one run of a second it may be none of
/// these. How many touches were told.
fn check_watched(name: &str, report: &Value) -> f64 {
    let [asked, told] = asked(report);
    assert!(asked + told > 0.0, "{name}: nothing was watched; could not: {}", report["could_not"]);
    told
}

fn asked(report: &Value) -> [f64; 2] {
    ["pages_asked", "touches_told"].map(|key| number(&report["watched"], key))
}

/// What the closing report has of own time, of the whole run or of its settled part.
fn show_own(name: &str, what: &str, part: &Value, regions: f64) {
    let (own, cpu) = (number(part, "own_ns"), number(part, "cpu_ns"));
    println!("bench: live-{name}-{what}-own {:.3} %", own / cpu.max(1.0) * 100.0);
    println!("bench: live-{name}-{what}-region {:.0} ns", own / regions.max(1.0));
}

/// Own time in one run of each kind.
fn own(program: &Program, folder: &Path) {
    let name = program.name;
    let (_, report) = program.with(UNARMED, folder);
    let regions = number(&report, "region_runs");
    assert!(regions > 0.0, "{name}: no region was seen; could not: {}", report["could_not"]);
    show_own(name, "unarmed", &report, regions);
    println!("{name}, unarmed: {regions} regions; {}, as nothing asks for it", done(&report));

    let (_, report) = program.with(SETTLED, folder);
    check_moved(name, &report);
    let (all, settled) = (number(&report, "region_runs"), number(&report["settled"], "regions"));
    show_own(name, "settled", &report["settled"], settled);
    println!("{name}, settled: {}; then {settled} of {all} regions without", done(&report));
    assert!(is_settled(&report), "{name}: armed memory was touched in the later half");

    let (_, report) = program.with(WATCHING, folder);
    check_watched(name, &report);
    let [asked, told] = asked(&report);
    let regions = number(&report, "region_runs");
    show_own(name, "watching", &report, regions);
    println!(
        "{name}, watching: {regions} regions; {asked} pages asked for, {told} touches told; {}",
        done(&report)
    );
}

/// Löf's question: memory armed at every region, as long as the guard says that it pays, beside
/// once.
fn every_region(folder: &Path) {
    for name in ["heat", "nas-cg", "nas-mg", "nas-ft", "nas-bt", "nas-sp"] {
        let Some(program) = Program::kernel(name, "W", None) else {
            println!("{name}: skipped, it cannot be built here");
            continue;
        };
        for policy in ["next-touch", "next-touch=region"] {
            let options = ["--bind", "--pretend-nodes", "2", "--policy", policy, "--budget", "100%+60s"];
            let (_, report) = program.with(&options, folder);
            check_moved(name, &report);
            let [runs, moved, back] =
                ["region_runs", "pages_moved", "ping_pongs"].map(|key| number(&report, key));
            let own = number(&report, "own_ns") / number(&report, "cpu_ns") * 100.0;
            println!(
                "{name}, {policy}: {runs} region runs, {}, {moved} moved, {back} of them back, own {own:.2} %",
                done(&report)
            );
        }
    }
}

/// A time with homenode over that of the program alone, just before and just after.
struct Ratios {
    what: &'static str,
    goal: Option<f64>,
    time: fn(&Times) -> f64,
    with: Vec<f64>,
    /// After over before.
    same: Vec<f64>,
}

impl Ratios {
    const fn new(what: &'static str, goal: Option<f64>, time: fn(&Times) -> f64) -> Self {
        Self { what, goal, time, with: Vec::new(), same: Vec::new() }
    }

    fn add(&mut self, before: &Times, with: &Times, after: &Times) {
        let [before, with, after] = [before, with, after].map(self.time);
        assert!(before > 0.0 && with > 0.0 && after > 0.0, "{}: the program printed no times", self.what);
        self.with.push(with / ((before + after) / 2.0));
        self.same.push(after / before);
    }

    fn show(self, name: &str) {
        let (pairs, what) = (self.with.len(), self.what);
        let goal = self.goal.map_or("no goal".to_owned(), |goal| format!("goal {goal}"));
        let (ratio, low, high) = median(self.with);
        let (_, aa_low, aa_high) = median(self.same);
        let unresolved = if aa_low > 0.995 && aa_high < 1.005 { "" } else { ": not resolved" };
        println!(
            "{name}, {what}: wall ratio {ratio:.3} [{low:.3}, {high:.3}] over {pairs} pairs, {goal}; A/A [{aa_low:.3}, \
             {aa_high:.3}]{unresolved}"
        );
    }
}

/// Alone, settled, alone, watching, alone …, repeated.
fn wall(program: &Program, pairs: usize, folder: &Path) {
    let name = program.name;
    let alone = || program.alone().expect("the program alone");
    let mut settled = Ratios::new("settled, the later half", Some(1.01), |t| t.later);
    let mut moving = Ratios::new("the same runs from begin to end, with the moving", None, |t| t.whole);
    let mut watching = Ratios::new("watching", Some(1.05), |t| t.whole);
    let (mut before, mut late, mut told) = (alone(), 0, 0.0);
    for _ in 0..pairs {
        let ((with, report), after) = (program.with(SETTLED, folder), alone());
        check_moved(name, &report);
        late += u32::from(!is_settled(&report));
        settled.add(&before, &with, &after);
        moving.add(&before, &with, &after);
        let ((with, report), last) = (program.with(WATCHING, folder), alone());
        told += check_watched(name, &report);
        watching.add(&after, &with, &last);
        before = last;
    }
    if pairs > 0 {
        [settled, moving, watching].into_iter().for_each(|ratios| ratios.show(name));
        println!(
            "{name}: armed memory was touched in the later half of {late} of these runs; {told} touches told while watching"
        );
        assert!(told > 0.0, "{name}: no touch was told of in any run");
    }
}

fn main() {
    let folder = std::env::temp_dir().join(format!("homenode-bench-live-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let pairs = std::env::var("PAIRS").ok().and_then(|v| v.parse().ok()).unwrap_or(PAIRS);
    if pairs < PAIRS {
        println!("PAIRS={pairs}: the requirement is {PAIRS} pairs, these do not show whether it is met");
    }
    let only = std::env::var("ONLY").ok();
    let wanted = |name: &str| only.as_deref().is_none_or(|o| o == name);
    for program in programs(&folder).iter().filter(|p| wanted(p.name)) {
        // Once, so that pages of files are there.
        if program.alone().is_none() {
            println!("{}: skipped, it does not run here", program.name);
            continue;
        }
        own(program, &folder);
        wall(program, pairs, &folder);
    }
    if wanted("every-region") {
        every_region(&folder);
    }
    let _ = std::fs::remove_dir_all(&folder);
}
