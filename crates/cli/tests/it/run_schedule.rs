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

/// Loads a library as Python loads packages, and runs its `main`.
const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    char *args[] = {"partition", NULL};
    void *h = dlopen("./partition.so", RTLD_NOW | RTLD_LOCAL);
    if (!h) { puts(dlerror()); return 1; }
    return ((int (*)(int, char **))dlsym(h, "main"))(1, args);
}
"#;

#[test]
fn memory_of_openmps_allocators_lies_where_its_partition_says() {
    let dir = fresh("run-partition");
    if !compilers() {
        return;
    }
    std::fs::write(dir.join("host.c"), HOST).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules/partition.c");
    let build = |compiler: &str, options: &[&str]| {
        let mut command = std::process::Command::new(compiler);
        let built = command.current_dir(&dir).args(["-O1"]).args(options).output();
        let is_built = built.is_ok_and(|b| b.status.success());
        if !is_built {
            println!("skipped: {compiler} {options:?}");
        }
        is_built
    };
    let source = source.to_str().unwrap();
    // clang 14 cuts an allocator's address to 32 bits in `allocate`.
    let mut programs = vec![];
    if build("gcc", &["-fopenmp", "-o", "by-gcc", source]) {
        programs.push("./by-gcc");
    }
    if build("clang", &["-fopenmp", "-no-pie", "-o", "by-clang", source]) {
        programs.push("./by-clang");
    }
    let is_local = build("gcc", &["-fopenmp", "-shared", "-fPIC", "-o", "partition.so", source]);
    if is_local && build("gcc", &["-o", "host", "host.c", "-ldl"]) {
        programs.push("./host");
    }
    let run = |args: &[&str]| {
        let mut command = homenode(&dir);
        command.args(["run", "--pretend-nodes", "2", "--"]).args(args);
        let (status, out, err) = outcome(&command.output().unwrap());
        assert_eq!(status, Some(0), "{args:?} {err}");
        out
    };
    let turns = " 1x0 1x1".repeat(32);
    for program in &programs {
        let out = run(&[program]);
        let lines: Vec<(&str, &str)> =
            out.lines().map(|l| l.split_at(l.find(|c: char| c.is_ascii_digit()).unwrap() - 1)).collect();
        assert_eq!(lines.len(), 18, "{out}");
        for (partition, lines) in ["blocked", "interleaved", "nearest"].iter().zip(lines.chunks(6)) {
            let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
            let by = ["default", "aligned", "cleared", "again", "aligned and cleared"];
            assert_eq!((names[0], &names[1..]), (*partition, &by[..]));
            for (name, pages) in lines {
                match *partition {
                    "blocked" => assert_eq!(*pages, " 32x0 32x1", "{program} {name}"),
                    "interleaved" => assert_eq!(*pages, turns, "{program} {name}"),
                    _ => assert!([" 64x0", " 64x1"].contains(pages), "{program} {name}"),
                }
            }
        }
        let alone = std::process::Command::new(program).arg("clause").current_dir(&dir).output().unwrap();
        match alone.status.success() && *program != "./host" {
            true => assert_eq!(run(&[program, "clause"]), "clause 32x0 32x1\n", "{program}"),
            false => println!("skipped: {program} clause does not run by itself"),
        }
    }
}
