//! `homenode plan`, and `homenode run --plan` on pretended nodes.

use std::path::Path;

use crate::run_matrix::libomp;
use crate::support::{fresh, homenode, instrumented, outcome, plain, run};

/// Initialised by one thread; afterwards each thread has its half, of an allocated array by way of
/// a function of the program's own, of another of the same size, and of a static one.
const HALVES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { N = 1 << 17 };
static double table[N];
static double *get(void) { return malloc(N * sizeof(double)); }
static double sweep(double *a) {
    double s = 0;
#pragma omp parallel for schedule(static) reduction(+:s)
    for (int i = 0; i < N; i++) { a[i] = a[i] * 0.5 + i; s += a[i]; }
    return s;
}
int main(void) {
    double *a = get();
    double *b = get();
    double s = 0;
    for (int i = 0; i < N; i++) a[i] = b[i] = table[i] = i;
    for (int it = 0; it < 4; it++) s += sweep(a) + sweep(b) + sweep(table);
    printf("%.17g\n", s);
    free(a);
    free(b);
    return 3;
}
"#;

fn planned(dir: &Path, extra: &[&str]) -> (Option<i32>, String, String, serde_json::Value) {
    let mut words = vec!["run", "--json", "--summary", "report.json", "--plan", "p"];
    words.extend(extra);
    let (status, out, err) = run(dir, &words);
    let json = std::fs::read_to_string(dir.join("report.json")).ok();
    (status, out, err, json.and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default())
}

#[test]
fn a_plan_from_a_recording_is_reproduced_by_another_build() {
    let dir = fresh("plan");
    let Some(_) = instrumented(&dir, "recorded", HALVES) else { return };
    // Another build of the same source: other addresses, no recorder.
    std::fs::copy(dir.join("recorded.c"), dir.join("halves.c")).unwrap();
    for (name, option) in [("with-lines", "-g"), ("without-lines", "-g0")] {
        let mut gcc = std::process::Command::new("gcc");
        // The source's name is part of the place.
        gcc.args(["-O2", option, "-fopenmp", "-o", name, "recorded.c"]);
        assert!(gcc.current_dir(&dir).status().unwrap().success());
    }
    let (status, _, err) = run(&dir, &["record", "-o", "r", "--threads", "2", "--", "./recorded"]);
    assert_eq!(status, Some(3), "{err}");
    let (status, out, err) = run(&dir, &["plan", "r", "-o", "p", "--pretend-nodes", "2", "--json"]);
    assert_eq!(status, Some(0), "{err}");
    let table: serde_json::Value = serde_json::from_str(&out).unwrap();
    // Two allocations of one place with the same homes are one object.
    assert_eq!(table["rows"].as_array().unwrap().len(), 2, "{out}");
    let plan: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("p")).unwrap()).unwrap();
    assert_eq!((&plan["schema"], plan["threads"].as_array().unwrap().len()), (&"homenode/plan/1".into(), 2));
    // Static schedule, so that the owner is known: each thread has one half of each array.
    for object in plan["objects"].as_array().unwrap() {
        let bytes = object["bytes"].as_u64().unwrap();
        let mut by_node = [0; 2];
        for home in object["homes"].as_array().unwrap() {
            let [offset, length, node] = [0, 1, 2].map(|i| home[i].as_u64().unwrap());
            by_node[node as usize] += length;
            let owner = (offset + length / 2) * 2 / bytes;
            assert_eq!(owner, node, "{object}");
        }
        assert!(by_node.iter().all(|b| b.abs_diff(bytes / 2) <= 8192), "{object}");
    }
    for (name, by_lines) in [("./with-lines", true), ("./without-lines", false)] {
        let (status, out, err, json) = planned(&dir, &["--pretend-nodes", "2", "--", name]);
        assert_eq!((status, out.lines().count()), (Some(3), 1), "{err}");
        let alone = outcome(
            &std::process::Command::new(dir.join(name)).env("OMP_NUM_THREADS", "2").output().unwrap(),
        )
        .1;
        assert_eq!(out, alone);
        let plan = &json["processes"][0]["plan"];
        let [met, pages, there] =
            ["objects_met", "pages", "pages_at_home"].map(|k| plan[k].as_u64().unwrap());
        assert_eq!(met, 3, "{json:#}");
        // Three arrays of 256 pages, whose first and last may be shared with others.
        assert!(pages >= 3 * 254 && there == pages, "{name}: {there} of {pages}: {json:#}");
        assert!(json["processes"][0]["pages_moved"].as_u64().unwrap() >= 3 * 126, "{json:#}");
        let told = json["could_not"].to_string().contains("by size and order");
        assert_eq!(told, !by_lines, "{json:#}");
    }
    let (status, _, err, json) =
        planned(&dir, &["--pretend-nodes", "2", "--threads", "4", "--", "./with-lines"]);
    assert_eq!(status, Some(3), "{err}");
    assert!(json["notes"].to_string().contains("scaled"), "{json:#}");
    let (status, out, err, _) =
        planned(&dir, &["--pretend-nodes", "2", "--threads", "3", "--", "./with-lines"]);
    assert_eq!((status, out.as_str()), (Some(125), ""), "{err}");
    assert!(err.contains("the plan is for 2 threads, and this run has 3: refused"), "{err}");
    let words = ["run", "--plan", "p", "--pretend-nodes", "2", "--", "./with-lines"];
    let in_a_job = homenode(&dir).env("OMPI_COMM_WORLD_SIZE", "4").args(words).output().unwrap();
    let (status, out, err) = outcome(&in_a_job);
    assert_eq!((status, out.as_str()), (Some(125), ""), "{err}");
    assert!(err.contains("1 processes, and this job has 4"), "{err}");
    // On one node it runs as it is.
    let (status, out, err) = run(&dir, &["run", "--plan", "p", "--", "./with-lines"]);
    assert!(status == Some(3) && !out.is_empty() || err.contains("node 1"), "{err}");
}

/// Sets its own number of threads, after a region of one.
const OWN: &str = r#"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 1 << 17 };
int main(int argc, char **argv) {
    double *a = malloc(N * sizeof(double)), s = 0;
    for (int i = 0; i < N; i++) a[i] = i;
#pragma omp parallel num_threads(1)
    a[0] = 0;
    omp_set_num_threads(atoi(argv[1]));
    for (int it = 0; it < 4; it++) {
#pragma omp parallel for
        for (int i = 0; i < N; i++) a[i] += omp_get_num_threads();
    }
    for (int i = 0; i < N; i++) s += a[i];
    printf("%.17g\n", s);
    return argc - 2;
}
"#;

#[test]
fn a_program_that_sets_its_own_number_of_threads_is_compared_with_the_plan() {
    let dir = fresh("plan-own-threads");
    let Some(_) = plain(&dir, "app", OWN) else { return };
    let plan = r#"{"schema":"homenode/plan/1","command":["./app"],"counts":"exact","machine":"m","nodes":[0,1],"pretended":true,
        "page":4096,"ranks":1,"threads":[0,1],"objects":[{"name":"a","bytes":1048576,
        "homes":[[0,524288,0],[524288,524288,1]]}]}"#;
    std::fs::write(dir.join("p"), plan).unwrap();
    let libomp = libomp(&dir);
    if libomp.is_none() {
        println!("skipped: there is no libomp");
    }
    for runtime in [None].into_iter().chain(libomp.as_ref().map(Some)) {
        for (threads, scaled, refused) in [("2", false, false), ("4", true, false), ("3", false, true)] {
            let mut app = homenode(&dir);
            app.args(["run", "--json", "--summary", "report.json", "--plan", "p", "--pretend-nodes", "2"]);
            app.args(["--", "./app", threads]).envs(runtime.map(|folder| ("LD_LIBRARY_PATH", folder)));
            let (status, out, err) = outcome(&app.output().unwrap());
            assert_eq!((status, out.lines().count()), (Some(0), 1), "{err}");
            let json: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(dir.join("report.json")).unwrap()).unwrap();
            let process = &json["processes"][0];
            let says = |of: &serde_json::Value, what: &str| {
                of.to_string().contains(&format!("the program's first team has {threads}: {what}"))
            };
            assert_eq!(says(&process["plan"]["scaled"], "scaled"), scaled, "{runtime:?}: {process:#}");
            assert_eq!(says(&process["could_not"], "refused"), refused, "{runtime:?}: {process:#}");
            // What moves does so at a region's begin, and the region of one thread is before the
            // refusal.
            let at_home = process["plan"]["pages_at_home"].as_u64().unwrap();
            assert!(refused || at_home >= 254, "{runtime:?}: {process:#}");
        }
    }
}

#[test]
fn what_is_no_plan_or_another_programs_is_told() {
    let dir = fresh("plan-hostile");
    let Some(_) = plain(&dir, "app", HALVES) else { return };
    std::fs::write(dir.join("p"), "hello").unwrap();
    let (status, out, err, _) = planned(&dir, &["--pretend-nodes", "2", "--", "./app"]);
    assert!(status == Some(125) && out.is_empty() && err.contains("p is not a plan of homenode"), "{err}");
    let foreign = r#"{"schema":"homenode/plan/1","command":["x"],"counts":"exact","machine":"m","nodes":[0,1],"pretended":true,
        "page":4096,"ranks":1,"threads":[0,1],"objects":[{"name":"a","static":"a","bytes":65536,"homes":[[0,65536,1]]}]}"#;
    std::fs::write(dir.join("p"), foreign).unwrap();
    let (status, _, err) = run(&dir, &["run", "-v", "--plan", "p", "--pretend-nodes", "2", "--", "./app"]);
    assert!(status == Some(3) && err.contains("was it made for another program"), "{err}");
    std::fs::write(dir.join("p"), foreign.replace("[0,65536,1]", "[0,65536,7]")).unwrap();
    let (status, _, err) = run(&dir, &["run", "--plan", "p", "--pretend-nodes", "2", "--", "./app"]);
    assert!(status == Some(125) && err.contains("is damaged") && err.contains("node 7"), "{err}");
    let (status, _, err) = run(&dir, &["run", "--plan", "none", "--", "./app"]);
    assert!(status == Some(125) && err.contains("No such file"), "{err}");
    let (status, _, err) = run(&dir, &["plan", "no-recording", "--pretend-nodes", "2"]);
    assert!(status != Some(0) && err.contains("no-recording"), "{err}");
}
