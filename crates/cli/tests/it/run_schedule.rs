//! `homenode run --schedule`: options, report and file, on one node and on two pretended ones. What
//! the modes do to loops is tested in `crates/agent/tests/schedules.rs`.

use std::path::Path;

use crate::support::{compilers, fresh, homenode, outcome};

/// The program of the modes' own test.
fn built(dir: &Path) -> bool {
    if !compilers() {
        return false;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules/loops.c");
    let mut gcc = std::process::Command::new("gcc");
    let gcc = gcc.args(["-O1", "-std=gnu17", "-fopenmp", "-o"]).arg(dir.join("loops")).arg(source);
    let gcc = gcc.output().unwrap();
    assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
    true
}

fn run(dir: &Path, options: &str, what: &[&str]) -> (Option<i32>, String, String) {
    let mut command = homenode(dir);
    command.arg("run").args(options.split(' ')).args(["--", "./loops"]).args(what);
    command.envs([("OMP_NUM_THREADS", "4"), ("OMP_DYNAMIC", "false"), ("OMP_WAIT_POLICY", "passive")]);
    outcome(&command.output().unwrap())
}

#[test]
fn one_line_says_what_the_schedule_did() {
    let dir = fresh("run-schedule");
    if !built(&dir) {
        return;
    }
    for nodes in ["", "--pretend-nodes 2 "] {
        let (status, out, err) = run(&dir, &format!("{nodes}--schedule replay"), &["map", "20"]);
        assert_eq!((status, out.as_str()), (Some(0), "19 of 19\n"), "{err}");
        // Where no page can move, the loops are the answer; else they follow it.
        let line = if nodes.is_empty() { err.lines().next() } else { err.lines().last() }.unwrap_or_default();
        assert!(line.starts_with("homenode: schedule replay: 1 loop, 95.0 % of chunks replayed"), "{err}");
        assert!(err.lines().all(|l| l.chars().count() <= 80), "{err}");
    }
    let (status, _, err) = run(&dir, "--pretend-nodes 2 --schedule cyclic --json", &["map", "20"]);
    let json: serde_json::Value = serde_json::from_str(&err).unwrap();
    let schedule = &json["processes"][0]["schedule"];
    assert_eq!((status, schedule["mode"].as_str()), (Some(0), Some("cyclic")), "{schedule}");
    assert_eq!(
        (schedule["executions_dealt"].as_u64(), schedule["chunks_dealt"].as_u64()),
        (Some(20), Some(5000))
    );
    // Without the option there is nothing to tell.
    let (_, _, err) = run(&dir, "--pretend-nodes 2 --json", &["map", "20"]);
    let json: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert!(json["processes"][0]["schedule"].is_null(), "{json:#}");
}

#[test]
fn a_schedule_goes_from_one_run_to_the_next() {
    let dir = fresh("run-schedule-file");
    if !built(&dir) {
        return;
    }
    let (status, first, err) = run(&dir, "--schedule record --schedule-to mine.schedules", &["owners"]);
    assert_eq!(status, Some(0), "{err}");
    let (status, again, err) = run(&dir, "--schedule replay --schedule-from mine.schedules", &["owners"]);
    assert_eq!(status, Some(0), "{err}");
    let first = first.lines().next().unwrap();
    assert_eq!(again.lines().collect::<Vec<_>>(), [first, first], "{err}");
    assert!(err.contains("100.0 % of chunks replayed"), "{err}");
    // Another trip count, a file of something else, no file.
    let (_, _, err) = run(&dir, "--schedule replay --schedule-from mine.schedules", &["owners", "300"]);
    assert!(err.contains("schedule replay: a loop has 300 iterations"), "{err}");
    let (status, _, err) = run(&dir, "--schedule replay --schedule-from loops", &["owners"]);
    assert!(status == Some(125) && err.contains("cannot read the schedules loops"), "{status:?} {err}");
    let (status, _, err) = run(&dir, "--schedule-from mine.schedules", &["owners"]);
    assert!(status.is_some_and(|s| s != 0) && err.contains("--schedule <MODE>"), "{status:?} {err}");
}

#[test]
fn memory_of_openmps_allocators_lies_where_its_partition_says() {
    let dir = fresh("run-partition");
    if !compilers() {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules/partition.c");
    let mut gcc = std::process::Command::new("gcc");
    let built = gcc.args(["-O1", "-fopenmp", "-o"]).arg(dir.join("partition")).arg(source).output().unwrap();
    if !built.status.success() {
        return println!("skipped: {}", String::from_utf8_lossy(&built.stderr));
    }
    let mut command = homenode(&dir);
    command.args(["run", "--pretend-nodes", "2", "--", "./partition"]);
    let (status, out, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    let turns = " 1x0 1x1".repeat(32);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..2], ["blocked 32x0 32x1", &format!("interleaved{turns}")], "{err}");
    assert!(["nearest 64x0", "nearest 64x1"].contains(&lines[2]), "{out}");
}
