//! What `homenode run` costs a program, on two pretended nodes: settled (regions are seen and nothing is armed), while watching, and after
//! its pages have moved: in the last part of twice as long a run.
//!
//! Own time is CPU time as the closing report has it. Wall time is the median ratio of interleaved pairs, with against without, and
//! its 95 % interval by order statistics: alone, settled, alone, watching, and so on, each against the mean of those next to it. Those
//! alone against one another show what this machine can resolve. `PAIRS` in the environment sets how many, 30 unless told, 0 leaves them out;
//! `ONLY` names the one program to be run, or `every-region`, which compares arming at every region with arming once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

/// Short regions, one after the other, ten thousand a second on two cores of 2.5 GHz, for about three seconds.
const REGIONS: &str = "#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v) { int n = 1 << 17, all = atoi(v[c - 1]); double *a = calloc(n, 8);\n\
    for (int r = 0; r < all; r++) {\n#pragma omp parallel for schedule(static)\n for (int b = 0; b < n; b += 64)\n\
    for (int k = 0; k < 4; k++) for (int i = b; i < b + 64; i++) a[i] += k; }\n\
    printf(\"%g\\n\", a[n / 2]); return 0; }\n";

/// A program: its name, and how it is called, its iterations last.
type Program = (&'static str, Vec<String>);

fn homenode() -> PathBuf {
    // target/release/deps/live-…: the command is built for the same profile (`cargo xtask bench` does so).
    let here = std::env::current_exe().expect("a path of its own");
    here.parent().and_then(Path::parent).expect("target/release").join("homenode")
}

fn programs(folder: &Path) -> Vec<Program> {
    let mut all = Vec::new();
    let source = folder.join("regions.c");
    let binary = folder.join("regions");
    std::fs::write(&source, REGIONS).expect("a file in the temporary folder");
    let built = Command::new("gcc").args(["-O2", "-fopenmp", "-o"]).arg(&binary).arg(&source).status();
    if built.is_ok_and(|s| s.success()) {
        all.push(("regions", vec!["--".into(), binary.display().to_string(), "30000".into()]));
    }
    for (name, class, iterations) in [("nas-cg", "A", "60"), ("heat", "A", "500"), ("nas-mg", "B", "20")] {
        let words = [format!("kernel:{name}"), "--class".into(), class.into(), "--".into()];
        let more = ["--init", "serial", "--iterations", iterations].map(str::to_owned);
        all.push((name, words.into_iter().chain(more).collect()));
    }
    all
}

/// Runs a program; wall seconds, and the closing report's first process.
fn run(program: &Program, options: &[&str], folder: &Path) -> Option<(f64, Value)> {
    let report = folder.join("report.json");
    let mut c = Command::new(homenode());
    c.args(["run", "--threads", "2", "--json", "--summary"]).arg(&report).args(options).args(&program.1);
    let begin = Instant::now();
    let ran = c.output().ok()?;
    let seconds = begin.elapsed().as_secs_f64();
    if !ran.status.success() {
        eprintln!("{}: {}", program.0, String::from_utf8_lossy(&ran.stderr));
        return None;
    }
    let json: Value = serde_json::from_str(&std::fs::read_to_string(report).ok()?).ok()?;
    Some((seconds, json["processes"][0].clone()))
}

/// Median and its 95 % interval: order statistics of a binomial with one half.
fn median(mut ratios: Vec<f64>) -> (f64, f64, f64) {
    ratios.sort_by(f64::total_cmp);
    let n = ratios.len() as f64;
    let at = |x: f64| ratios[(x.max(0.0) as usize).min(ratios.len() - 1)];
    (at(n / 2.0), at((n / 2.0 - 0.98 * n.sqrt()).floor()), at((n / 2.0 + 0.98 * n.sqrt()).ceil()))
}

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or(0.0)
}

/// How homenode is called, and the goal for the wall time.
const MODES: [(&str, &[&str], f64); 2] = [
    ("settled", &["--pretend-nodes", "2", "--policy", "next-touch=asked"], 1.01),
    ("watching", &["--pretend-nodes", "2", "--policy", "competitive:quiet=0", "--budget", "100%+60s"], 1.05),
];

/// What the closing report has.
fn own(name: &str, what: &str, report: &Value) {
    let (own, cpu, regions) =
        (number(report, "own_ns"), number(report, "cpu_ns"), number(report, "region_runs"));
    println!("bench: live-{name}-{what}-own {:.3} %", own / cpu * 100.0);
    println!("bench: live-{name}-{what}-region {:.0} ns", own / regions.max(1.0));
    let (asked, told) =
        (number(&report["watched"], "pages_asked"), number(&report["watched"], "touches_told"));
    println!(
        "{name}, {what}: {regions} regions; {}, {asked} pages asked for, {told} touches told",
        done(report)
    );
}

fn done(report: &Value) -> String {
    let [arms, faults, copied] = ["arms", "faults", "pages_copied"].map(|key| number(report, key));
    format!("{arms} arms, {faults} faults, {copied} pages copied")
}

/// Own time once pages have moved: in the last part of a run with twice the iterations, in which nothing armed was touched. `None`: the run failed.
fn after_moving(program: &Program, folder: &Path) -> Option<()> {
    let iterations: u64 = program.1.last()?.parse().ok()?;
    let mut twice = program.clone();
    *twice.1.last_mut()? = (2 * iterations).to_string();
    let options = ["--pretend-nodes", "2", "--policy", "next-touch", "--budget", "100%+60s"];
    let (_, report) = run(&twice, &options, folder)?;
    let [own, cpu, regions] = ["own_ns", "cpu_ns", "regions"].map(|key| number(&report["settled"], key));
    println!("bench: live-{}-after-moving-own {:.3} %", program.0, own / cpu.max(1.0) * 100.0);
    println!("bench: live-{}-after-moving-region {:.0} ns", program.0, own / regions.max(1.0));
    println!(
        "{}, after moving: {}; then {regions} of {} regions without",
        program.0,
        done(&report),
        number(&report, "region_runs")
    );
    let moved = ["arms", "faults", "pages_copied"].iter().all(|key| number(&report, key) > 0.0);
    assert!(moved && regions > 0.0, "nothing was armed, or nothing touched, or all the time");
    Some(())
}

/// Löf's question: memory armed at every region, as long as the guard says that it pays, beside once.
fn every_region(folder: &Path) {
    for name in ["heat", "nas-cg", "nas-mg", "nas-ft", "nas-bt", "nas-sp"] {
        let program = [
            format!("kernel:{name}"),
            "--class".into(),
            "W".into(),
            "--".into(),
            "--init".into(),
            "serial".into(),
        ];
        for policy in ["next-touch", "next-touch=region"] {
            let options = ["--bind", "--pretend-nodes", "2", "--policy", policy, "--budget", "100%+60s"];
            let Some((_, report)) = run(&(name, program.to_vec()), &options, folder) else {
                println!("{name}: {policy}: a run failed");
                continue;
            };
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

/// Alone, settled, alone, watching, alone … so many times; `None`: a run failed.
fn wall(program: &Program, pairs: usize, folder: &Path) -> Option<()> {
    let (mut ratios, mut same) = ([vec![], vec![]], vec![]);
    let seconds = |options: &[&str]| run(program, options, folder).map(|r| r.0);
    let mut before = seconds(&[])?;
    for _ in 0..pairs {
        for ((_, options, _), ratios) in MODES.iter().zip(&mut ratios) {
            let (with, after) = (seconds(options)?, seconds(&[])?);
            ratios.push(with / ((before + after) / 2.0));
            same.push(after / before);
            before = after;
        }
    }
    if pairs == 0 {
        return Some(());
    }
    let (_, aa_low, aa_high) = median(same);
    let unresolved = if aa_low > 0.995 && aa_high < 1.005 { "" } else { ": not resolved" };
    for ((what, _, most), ratios) in MODES.into_iter().zip(ratios) {
        let (ratio, low, high) = median(ratios);
        println!(
            "{}, {what}: wall ratio {ratio:.3} [{low:.3}, {high:.3}] over {pairs} pairs, goal {most}; A/A [{aa_low:.3}, \
             {aa_high:.3}]{unresolved}",
            program.0
        );
    }
    Some(())
}

fn main() {
    let folder = std::env::temp_dir().join(format!("homenode-bench-live-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let pairs = std::env::var("PAIRS").ok().and_then(|v| v.parse().ok()).unwrap_or(30);
    let only = std::env::var("ONLY").ok();
    for program in programs(&folder) {
        if only.as_deref().is_some_and(|o| o != program.0) {
            continue;
        }
        // Once, so that kernels are built and pages of files are there.
        if run(&program, &["--quiet"], &folder).is_none() {
            println!("{}: skipped, it does not run here", program.0);
            continue;
        }
        for (what, options, _) in MODES {
            if let Some((_, report)) = run(&program, options, &folder) {
                own(program.0, what, &report);
            }
        }
        if after_moving(&program, &folder).is_none() || wall(&program, pairs, &folder).is_none() {
            println!("{}: a run failed", program.0);
        }
    }
    if only.is_none_or(|o| o == "every-region") {
        every_region(&folder);
    }
    let _ = std::fs::remove_dir_all(&folder);
}
