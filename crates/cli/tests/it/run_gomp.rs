//! `homenode run` and every entry point of libgomp that it stands in front of.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::number;
use crate::run_matrix::libomp;
use crate::support::{compilers, fresh, homenode, outcome, plain};

/// Three barriers a region: one that is written, and the ends of a loop and of a `single`. The
/// region's own end is none.
const BARRIERS: &str = r#"
#include <stdio.h>
int main(void) {
    long s = 0;
    for (int round = 0; round < 50; round++) {
#pragma omp parallel num_threads(2) reduction(+ : s)
        {
#pragma omp barrier
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 10; i++) s += i;
#pragma omp single
            s++;
        }
    }
    printf("%ld\n", s);
    return 0;
}
"#;

fn built(dir: &Path) -> Option<PathBuf> {
    if !compilers() {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/gomp.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-o"]);
    let gcc = gcc.arg(dir.join("gomp")).arg(source).output().unwrap();
    assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
    Some(dir.join("gomp"))
}

/// What a program printed under homenode, and how many regions and barriers that saw, with libgomp
/// or with the libomp that goes by its name in a folder.
fn counted(
    dir: &Path,
    program: &str,
    libomp: Option<&Path>,
    settings: &[(&str, &str)],
) -> (String, [u64; 2]) {
    let mut run = homenode(dir);
    run.args(["run", "--json", "--force", "--summary", "gomp.json", "--pretend-nodes", "2"]);
    run.args(["--budget", "100%+60s", "--", program]).envs(settings.iter().copied());
    if let Some(folder) = libomp {
        run.env("LD_LIBRARY_PATH", folder);
    }
    let (status, out, err) = outcome(&run.output().unwrap());
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    let json = std::fs::read_to_string(dir.join("gomp.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    if libomp.is_some() {
        let modules = json["processes"][0]["modules"].to_string();
        assert!(modules.contains("/libomp/libgomp.so.1"), "{modules}");
    }
    (out, [number(&json, "region_runs"), number(&json, "barriers")])
}

#[test]
fn every_entry_point_of_libgomp_counts_once_and_answers_as_without() {
    let dir = fresh("run-gomp");
    let Some(program) = built(&dir) else { return };
    // Teams of two, whatever the machine has, that sleep while they wait.
    let settings = [("OMP_CANCELLATION", "true"), ("OMP_DYNAMIC", "false"), ("OMP_WAIT_POLICY", "passive")];
    let (status, alone, _) = outcome(&Command::new(program).envs(settings).output().unwrap());
    // 25 teams and 8 barriers in each of 20 rounds.
    assert_eq!((status, alone.as_str()), (Some(0), "500 regions 160 barriers\nok\n"));
    let forced = [&settings[..], &[("HOMENODE_RUN_FORCE_ARM", "1")]].concat();
    for settings in [&settings[..], &forced] {
        assert_eq!(counted(&dir, "./gomp", None, settings), (alone.clone(), [500, 160]), "{settings:?}");
        let report = std::fs::read_to_string(dir.join("gomp.json")).unwrap();
        // In each round the second thread of a team starts two teams of its own.
        assert!(report.contains("\"40 regions that other threads started"), "{report}");
    }
    match libomp(&dir) {
        Some(folder) => {
            assert_eq!(counted(&dir, "./gomp", Some(&folder), &settings), (alone, [500, 160]), "libomp");
        }
        None => println!("skipped: there is no libomp (it comes with clang)"),
    }
}

#[test]
fn barriers_are_those_of_the_programs_text_with_both_libraries() {
    let dir = fresh("run-barriers");
    let Some(_) = plain(&dir, "barriers", BARRIERS) else { return };
    let want = ("2300\n".to_owned(), [50, 150]);
    assert_eq!(counted(&dir, "./barriers", None, &[]), want);
    let Some(folder) = libomp(&dir) else {
        return println!("skipped: there is no libomp (it comes with clang)");
    };
    assert_eq!(counted(&dir, "./barriers", Some(&folder), &[]), want, "GCC's code on libomp");
    let mut clang = Command::new("clang");
    clang.args(["-O1", "-fopenmp", "-o", "barriers", "barriers.c"]).current_dir(&dir);
    if clang.output().is_ok_and(|o| o.status.success()) {
        assert_eq!(counted(&dir, "./barriers", None, &[]), want, "clang's code");
    }
}
