//! `homenode run` gives the right verdict of the stand-ins in `tests/verdicts`: on pretended nodes,
//! and the same in the lab. `cargo xtask verdicts` does so for all of them, several times.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::lab::{alone, deterministic_lab, there};
use crate::support::{fresh, homenode, outcome};

#[path = "../../../../tests/verdicts/expected.rs"]
mod expected;

use expected::{Expected, OPTIONS, compiler};

/// The programs that also run in the lab, where each takes some seconds.
const IN_LAB: [&str; 4] = ["one_line", "other_schedule", "same_schedule", "serial_allocatable"];

fn programs() -> Vec<Expected> {
    Expected::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/verdicts")).unwrap()
}

/// Builds a program. `false`: there is no compiler for it.
fn built(of: &Expected, dir: &Path) -> bool {
    let name = compiler(&of.source).unwrap();
    if Command::new(name).arg("--version").output().is_err() {
        eprintln!("skipped: {}: there is no {name}", of.name);
        return false;
    }
    let output = Command::new(name).args(OPTIONS).arg(dir.join(&of.name)).arg(&of.source).output().unwrap();
    assert!(output.status.success(), "{}: {}", of.name, String::from_utf8_lossy(&output.stderr));
    true
}

fn report(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// What `homenode run --bind` says of a program on two pretended nodes, and whether that is right.
fn on_pretended_nodes(of: &Expected, dir: &Path) -> (String, bool) {
    let mut run = homenode(dir);
    run.args(["run", "--quiet", "--json", "--threads", "2", "--bind", "--pretend-nodes", "2", "--summary"]);
    run.arg(format!("{}.json", of.name)).arg("--").arg(format!("./{}", of.name)).arg(of.rounds.to_string());
    // A team that waits does not take the other threads' CPUs.
    let output = run.env("OMP_WAIT_POLICY", "passive").stdout(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}: {:?}", of.name, outcome(&output));
    of.judges(&report(dir.join(format!("{}.json", of.name))), true)
}

#[test]
fn verdicts_on_pretended_nodes_are_right() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return println!("skipped: there is one CPU");
    }
    let _alone = alone();
    let dir = fresh("verdicts");
    let mut wrong = Vec::new();
    for of in programs().iter().filter(|of| built(of, &dir)) {
        let (says, is_right) = on_pretended_nodes(of, &dir);
        println!("{}: {says}", of.name);
        if !is_right {
            wrong.push(format!("{}: {says} for {} {:?}", of.name, of.bound, of.arrays));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "the lab's runs differ with each build: one program of four may get another verdict"]
fn verdicts_in_the_lab_are_those_of_pretended_nodes() {
    let dir = fresh("verdicts-lab");
    if !there() {
        return;
    }
    let _alone = alone();
    let all = programs();
    let all: Vec<&Expected> =
        all.iter().filter(|of| IN_LAB.contains(&of.name.as_str()) && built(of, &dir)).collect();
    let tool = Path::new(env!("CARGO_BIN_EXE_homenode"));
    let run = format!("{} run --quiet --json --threads 2 --bind --summary", tool.display());
    let runs = all.iter().map(|of| {
        let (name, rounds) = (&of.name, of.lab);
        format!("{run} {name}.json -- ./{name} {rounds} >/dev/null || exit 9\n")
    });
    std::fs::write(dir.join("script"), runs.collect::<String>()).unwrap();
    let mut command = deterministic_lab(&dir, "--nodes 2 --mem 384M --numa-balancing off --thp never");
    command.args(["--timeout", "500", "--with"]).arg(tool);
    command.arg("--with").arg(tool.with_file_name("libhomenode.so"));
    let done = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(done.0, Some(0), "{done:?}");
    for of in all {
        let (says, is_right) = of.judges(&report(dir.join(format!("{}.json", of.name))), true);
        assert!(is_right, "{}: {says} for {} {:?}", of.name, of.bound, of.arrays);
    }
}
