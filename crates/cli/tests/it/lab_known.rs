//! Known homes on the lab's four nodes: a plan from a recording, and policies that deal huge pages.
//! One boot serves all.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::lab::{alone, lab, there};
use crate::lab_homes::{self, Array, BUDGET, PAGE};
use crate::support::{compilers, fresh, instrumented, outcome, run};

/// Initialised by one thread; afterwards each has its quarter: of memory that is fresh when it is
/// allocated, of memory that the allocator has used before, and of a static array.
const QUARTERS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { N = 1 << 17, AGAIN = N + (1 << 13), SMALL = 40 };
static double table[N];
static char *volatile seen[SMALL];
void homes_at(unsigned) __attribute__((weak));
static double sweep(double *a, int n) {
    double s = 0;
#pragma omp parallel for schedule(static) reduction(+:s)
    for (int i = 0; i < n; i++) { a[i] = a[i] * 0.5 + i; s += a[i]; }
    return s;
}
int main(void) {
    double *fresh = malloc(N * sizeof(double));
    /* From now on so much comes from the heap, and stays there when it is freed. */
    seen[0] = malloc(AGAIN * sizeof(double));
    free(seen[0]);
    /* What is as small is no object of a plan. */
    for (int i = 0; i < SMALL; i++) {
        seen[i] = malloc(32 << 10);
        for (int at = 0; at < 32 << 10; at += 1024) ((volatile char *)seen[i])[at] = 1;
    }
    for (int i = 0; i < SMALL; i++) free(seen[i]);
    double *again = malloc(AGAIN * sizeof(double));
    for (int i = 0; i < N; i++) fresh[i] = table[i] = i;
    for (int i = 0; i < AGAIN; i++) again[i] = i;
    if (homes_at) homes_at(0);
    double s = 0;
    for (int it = 0; it < 4; it++) s += sweep(fresh, N) + sweep(again, AGAIN) + sweep(table, N);
    printf("%.17g\n", s);
    free(again);
    free(fresh);
    return 0;
}
"#;
const FRESH: u64 = 8 << 17;
const AGAIN: u64 = FRESH + (8 << 13);

/// Policies that deal huge pages, with the node of each of the eight.
pub const DEALT: [(&str, &str); 3] = [
    ("block", "0 0 1 1 2 2 3 3"),
    ("cyclic:pages=512", "0 1 2 3 0 1 2 3"),
    // Of each, all nodes are to have as much. Where the kernel tells of huge pages (Linux 6.7) it
    // stays, else the last that is asked for has it.
    ("cyclic", ""),
];

/// Records the program here and plans its next run for four nodes.
fn plan(dir: &Path) {
    let (status, _, err) =
        run(dir, &["record", "-o", "r", "--threads", "4", "--filter", "64", "--", "./recorded"]);
    assert_eq!(status, Some(0), "{err}");
    let machine = lab_homes::root().join("tests/lab/l2-256k.toml");
    let (status, _, err) = run(dir, &["plan", "r", "-o", "p", "--machine", machine.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{err}");
}

/// Of an array's whole pages with a planned home: all, and those that are there.
fn as_planned(dir: &Path, array: &Array, bytes: u64) -> (u64, u64) {
    let text = fs::read_to_string(dir.join("p")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |v: &serde_json::Value, i: usize| v[i].as_u64().unwrap();
    // What was freed at once is nobody's.
    let dealt = |o: &&serde_json::Value| {
        o["bytes"] == bytes && o["static"].is_null() && o["homes"].as_array().unwrap().len() >= 4
    };
    let objects = plan["objects"].as_array().unwrap();
    let object = objects.iter().find(dealt).unwrap_or_else(|| panic!("{bytes} bytes: {plan:#}"));
    let (mut all, mut right) = (0, 0);
    for (i, home) in (0..).zip(&array.homes) {
        let middle = array.offset + i * PAGE + PAGE / 2;
        let stretch = object["homes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|h| (number(h, 0)..number(h, 0) + number(h, 1)).contains(&middle));
        if let Some(planned) = stretch {
            all += 1;
            right += u64::from(*home == Some(number(planned, 2) as usize));
        }
    }
    (all, right)
}

#[test]
fn plans_are_kept_from_the_first_touch_on_and_huge_pages_stay_whole() {
    let dir = fresh("lab-known").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() || !compilers() || instrumented(&dir, "recorded", QUARTERS).is_none() {
        return;
    }
    plan(&dir);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-g", "-fopenmp", "-o", "planned", "recorded.c"]);
    assert!(gcc.current_dir(&dir).status().unwrap().success());
    lab_homes::program(&dir, "quarters");
    lab_homes::library(&dir);
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    let run = format!("{} run --budget {BUDGET} --json --summary", homenode.display());
    let homes = "LD_PRELOAD=$PWD/homes.so HOMES_OF=planned HOMES_AT=0";
    let mut script = format!(
        "set -e\n./planned >alone.out\n\
         {homes} HOMES=homes {run} planned.json --plan p -- ./planned >planned.out\n"
    );
    for (i, (policy, _)) in DEALT.iter().enumerate() {
        script += &format!("{run} huge{i}.json --policy {policy} -- ./quarters 2048 8 0 >huge{i}.out\n");
    }
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let words = "--mem 192M --numa-balancing off --thp madvise --env OMP_NUM_THREADS=4 --env OMP_PROC_BIND=true \
                 --env OMP_PLACES=threads";
    let mut command = lab(&dir, words);
    command.arg("--with").arg(homenode).arg("--with").arg(homenode.with_file_name("libhomenode.so"));
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    judge_plan(&dir);
    for (i, (policy, nodes)) in DEALT.iter().enumerate() {
        judge_huge(&dir, i, policy, nodes);
    }
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn report(dir: &Path, name: &str) -> serde_json::Value {
    serde_json::from_str(&read(dir, name)).unwrap()
}

fn judge_plan(dir: &Path) {
    assert_eq!(read(dir, "planned.out"), read(dir, "alone.out"));
    let report = report(dir, "planned.json");
    let process = &report["processes"][0];
    let planned = |key: &str| process["plan"][key].as_u64().unwrap_or_else(|| panic!("{key}: {report:#}"));
    let homes = |when| lab_homes::read(&dir.join("homes"), when);
    let (touched, freed) = (homes("0"), homes("free"));
    // By policy alone: nothing had run in parallel yet.
    let (all, right) = as_planned(dir, &touched[&(FRESH, 0)], FRESH);
    assert!(all >= 255 && right * 100 >= all * 97, "first touch: {right} of {all}: {report:#}");
    // What had its pages before comes later.
    let (all, right) = as_planned(dir, &touched[&(AGAIN, 1)], AGAIN);
    assert!(right * 100 <= all * 30, "used memory was at home before it moved: {right} of {all}");
    for key in [(FRESH, 0), (AGAIN, 1)] {
        let (all, right) = as_planned(dir, &freed[&key], key.0);
        assert!(right * 100 >= all * 97, "{key:?}: {right} of {all} pages are as planned: {report:#}");
    }
    println!("{:#}", process["plan"]);
    // Its three arrays, but for pages at their ends.
    let (pages, there) = (planned("pages"), planned("pages_at_home"));
    assert!(planned("objects_met") >= 3 && pages >= 256 * 3 + 16 - 8, "{report:#}");
    assert!(there * 100 >= pages * 97, "{there} of {pages}: {report:#}");
    assert!(planned("stretches_with_policy") >= 3 * 3, "{report:#}");
    // Three quarters of the used memory, and nothing else.
    let moved = process["pages_moved"].as_u64().unwrap();
    assert!((190..=210).contains(&moved), "{moved} pages moved: {report:#}");
}

pub fn judge_huge(dir: &Path, i: usize, policy: &str, nodes: &str) {
    let out = read(dir, &format!("huge{i}.out"));
    let report = report(dir, &format!("huge{i}.json"));
    let (at, last) = (out.lines().next().unwrap(), out.lines().last().unwrap());
    println!("{policy}: {at}, {}", report["processes"][0]["pages_moved"]);
    assert!(nodes.is_empty() && !at.contains("-1") || at == nodes, "{policy}: {at}: {report:#}");
    // kB in huge pages before and after, wrong words.
    assert_eq!(last, "16384 16384 0", "{policy}: {report:#}");
    // Those that are where they were to go.
    let each = if nodes.is_empty() { 512 / 4 } else { 512 };
    let moved = at.split(' ').filter(|n| *n != "0").count() * each;
    assert_eq!(report["processes"][0]["pages_moved"], moved, "{policy}: {report:#}");
}
