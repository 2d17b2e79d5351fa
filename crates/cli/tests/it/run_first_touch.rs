//! `homenode run` on pretended nodes knows who touched a page first: a program that initialises as
//! it uses has nothing to gain, one that initialises in one thread has.

use std::path::Path;

use crate::run::number;
use crate::run_advice::a_cpu_of_each;
use crate::support::{fresh, homenode, outcome, plain};

/// Two arrays, 16 MiB each; a word of the command line says who initialises them. All that follows
/// uses them with a static schedule: what is still armed when the iterations end is touched by its
/// owner, too.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = 1 << 21 };
int main(int argc, char **argv) {
    double *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    if (argc > 1 && !strcmp(argv[1], "parallel")) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) a[i] = b[i] = i;
    } else
        for (int i = 0; i < N; i++) a[i] = b[i] = i;
    for (int it = 0; it < 60; it++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) a[i] += b[i];
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) b[i] += 1;
    }
    double s = 0;
#pragma omp parallel for schedule(static) reduction(+ : s)
    for (int i = 0; i < N; i++) s += a[i] + b[i];
    printf("%.17g\n", s);
    return 0;
}
"#;

/// Whole pages of both arrays.
const PAGES: u64 = 2 * ((2 << 20) * 8 / 4096 - 1);

/// Runs the program with two threads, each on its own pretended node; the report as JSON, or as
/// text.
fn report(dir: &Path, how: &str, places: &str, json: bool) -> String {
    let mut run = homenode(dir);
    run.args([
        "run",
        "--budget",
        "100%+60s",
        "--pretend-nodes",
        "2",
        "--threads",
        "2",
        "--summary",
        "report",
    ]);
    run.args(json.then_some("--json")).args(["--", "./program", how]);
    run.env("OMP_PLACES", places).env("OMP_PROC_BIND", "close");
    let (status, _, err) = outcome(&run.output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    std::fs::read_to_string(dir.join("report")).unwrap()
}

#[test]
fn pages_that_were_initialised_as_they_are_used_stay_and_others_move() {
    let dir = fresh("run-first-touch");
    let Some(_) = plain(&dir, "program", PROGRAM) else { return };
    let Some(places) = a_cpu_of_each() else { return println!("skipped: there is one CPU") };
    let read =
        |how| -> serde_json::Value { serde_json::from_str(&report(&dir, how, &places, true)).unwrap() };
    let serial = read("serial");
    let could_not = serial["processes"][0]["could_not"].to_string();
    if could_not.contains("userfaultfd") {
        return println!("skipped: first touches are not seen without userfaultfd: {could_not}");
    }
    // The half of the second thread.
    assert!(number(&serial, "pages_moved") > PAGES * 4 / 10, "{serial:#}");
    assert_ne!(serial["processes"][0]["worked"], "nothing-to-gain", "{serial:#}");
    assert!(serial["processes"][0]["advice"].to_string().contains("parallel loop"), "{serial:#}");

    let parallel = read("parallel");
    // At most what shares 64 KiB with the other thread's part, of two arrays.
    assert!(number(&parallel, "pages_moved") < PAGES / 100, "{parallel:#}");
    assert!(number(&parallel, "arms") > 0, "{parallel:#}");
    assert_eq!(parallel["processes"][0]["worked"], "nothing-to-gain", "{parallel:#}");
    assert_eq!(parallel["processes"][0]["advice"], serde_json::json!([]), "{parallel:#}");

    let text = report(&dir, "parallel", &places, false);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines.iter().all(|l| l.chars().count() <= 80), "{text}");
    assert!(lines[0].starts_with("homenode: nothing to gain: "), "{text}");
    let text = report(&dir, "serial", &places, false);
    assert!(text.lines().nth(2).is_some_and(|l| l.starts_with("homenode: next: initialise ")), "{text}");
}
