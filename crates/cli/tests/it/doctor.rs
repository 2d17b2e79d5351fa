//! `homenode doctor`, really run: here, and behind a filter of system calls such as containers
//! have.

use std::process::Command;

use crate::support::{compilers, fresh, homenode, outcome, plain, run};

/// Forbids calls by number (EPERM) and becomes another program.
pub const FILTER: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define FORBID(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1)
int main(int argc, char **argv) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        FORBID(SYS_move_pages), FORBID(SYS_mbind), FORBID(SYS_get_mempolicy),
        FORBID(SYS_perf_event_open), FORBID(SYS_userfaultfd),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    (void)argc;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        puts("skipped");
        return 0;
    }
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
"#;

fn state(json: &serde_json::Value, what: &str) -> (String, String) {
    let row = json["rows"].as_array().unwrap().iter().find(|r| r["what"] == what);
    let row = row.unwrap_or_else(|| panic!("no {what} in {json}"));
    let text = |key: &str| row[key].as_str().unwrap().to_owned();
    (text("state"), text("found"))
}

#[test]
fn this_machine_is_told_and_a_program_is() {
    if !compilers() {
        return;
    }
    let dir = fresh("doctor");
    let (status, out, err) = run(&dir, &["doctor", "--json", "--", "ls"]);
    assert!(matches!(status, Some(0 | 3)), "{status:?} {err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["schema"], "homenode/doctor/1");
    assert_eq!(state(&json, "library").0, "works");
    assert_eq!(state(&json, "loading").0, "works");
    let (status, out, _) = run(&dir, &["doctor"]);
    assert!(matches!(status, Some(0 | 3)) && out.contains("'homenode run' would"), "{out}");
    assert!(out.lines().all(|l| l.chars().count() <= 100), "{out}");
    let (status, _, err) = run(&dir, &["doctor", "--", "./no-such"]);
    assert!(status == Some(127) && err.contains("./no-such"), "{status:?} {err}");
}

#[test]
fn a_static_program_and_the_launcher_are_told() {
    if !compilers() {
        return;
    }
    let dir = fresh("doctor-static");
    std::fs::write(
        dir.join("hello.c"),
        "#include <omp.h>\nint main(void) {\n#pragma omp parallel\n  omp_get_thread_num();\n  return 0;\n}\n",
    )
    .unwrap();
    let built = Command::new("gcc")
        .args(["-static", "-fopenmp", "-o", "hello", "hello.c"])
        .current_dir(&dir)
        .output();
    if !built.is_ok_and(|o| o.status.success()) {
        return println!("skipped: programs cannot be linked statically here");
    }
    let mut command = homenode(&dir);
    command.args(["doctor", "--json", "--", "./hello"]);
    let in_a_job = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4")];
    let (status, out, err) = outcome(&command.envs(in_a_job).output().unwrap());
    assert_eq!(status, Some(3), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(state(&json, "linking").0, "no");
    assert!(out.contains("libgomp is built into the program"), "{out}");
    assert!(state(&json, "launched").1.starts_with("rank 2 of 4 of Open MPI"), "{out}");
    assert!(json["facts"]["run"].as_str().unwrap().contains("as it is"), "{out}");
}

#[test]
fn a_filter_of_system_calls_is_found_by_trying() {
    let dir = fresh("doctor-filter");
    let Some(filter) = plain(&dir, "filter", FILTER) else { return };
    let own = homenode(&dir).get_program().to_owned();
    let mut filtered = Command::new(filter);
    filtered.arg(own).args(["doctor", "--json"]).current_dir(&dir);
    let (status, out, err) = outcome(&filtered.output().unwrap());
    if out.starts_with("skipped") {
        return println!("skipped: filters of system calls cannot be installed here");
    }
    assert!(matches!(status, Some(0 | 3)), "{status:?} {out}{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    for what in ["move_pages, mbind", "next touch", "perf_event_open"] {
        let (state, found) = state(&json, what);
        assert!(state == "less well" && found.contains("EPERM"), "{what}: {state}, {found}");
    }
}

#[test]
fn the_version_says_what_is_installed() {
    let dir = fresh("version");
    let (status, out, err) = run(&dir, &["--version"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let first = out.lines().next().unwrap();
    assert!(first.starts_with(concat!("homenode ", env!("CARGO_PKG_VERSION"), " (commit ")), "{out}");
    for name in ["build: ", "recorder: ", "live runtime: ", "kernels: ", "lab: "] {
        assert!(out.lines().any(|l| l.starts_with(name)), "{name} in {out}");
    }
    let (_, short, _) = run(&dir, &["-V"]);
    assert_eq!(short, concat!("homenode ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_comparison_is_checked_without_a_run() {
    let dir = fresh("compare-check");
    let check =
        |words: &[&str]| run(&dir, &[&["compare", "--check"], words, &["--", "./not-there"]].concat());
    let good = ["-m", "2s-xeon", "-m", "epyc-nps4", "-p", "competitive:gain=30", "-p", "round-robin"];
    assert_eq!(check(&good), (Some(0), String::new(), String::new()));
    for (words, said) in [
        (["-m", "2s-xeno", "-p", "round-robin"], "2s-xeon"),
        (["-m", "2s-xeon", "-p", "next-tuch"], "next-touch"),
        (["-m", "2s-xeon", "-p", "competitive:gian=30"], "no option `gian`"),
        (["-m", "2s-xeon", "-p", "competitive:gain=much"], "gain=much"),
        (["-m", "2s-xeon", "--page", "3KiB"], "no pages of 3 KiB"),
    ] {
        let (status, out, err) = check(&words);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
    }
}
