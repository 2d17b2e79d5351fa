//! `homenode compare --on host`: what it does on one node, and that every scheme runs the program.

use crate::support::{fresh, homenode, instrumented, outcome, plain};

/// It fails on request, and takes longer than the first look at it.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    enum { N = 1 << 20 };
    double *a = malloc(N * sizeof *a), s = 0;
    for (int i = 0; i < N; i++) a[i] = i;
    for (int it = 0; it < 200; it++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) a[i] = a[i] * 0.5 + it;
    }
    for (int i = 0; i < N; i++) s += a[i];
    printf("sum %g\n", s);
    return argc > 1;
}
"#;

const ON_HOST: [&str; 7] = ["compare", "--on", "host", "-p", "first-touch", "-p", "next-touch"];

#[test]
fn every_scheme_runs_in_every_repetition_and_one_node_is_said() {
    let dir = fresh("compare-host");
    if plain(&dir, "program", PROGRAM).is_none() {
        return;
    }
    let mut pretended = homenode(&dir);
    pretended.args(ON_HOST).args(["--pretend-nodes", "2", "--repeat", "2", "--json", "--", "./program"]);
    let (status, out, err) = outcome(&pretended.output().unwrap());
    assert_eq!(status, Some(0), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["schema"], "homenode/compare-host/1");
    assert!(json["answer"][0].as_str().unwrap().contains("no gain"), "{out}");
    assert_eq!(json["facts"]["repetitions"], 2);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|r| r["scheme"].as_str().unwrap()).collect::<Vec<_>>(),
        ON_HOST[4..].iter().step_by(2).copied().collect::<Vec<_>>()
    );
    assert!(rows.iter().all(|r| r["time"].as_f64().unwrap() > 0.0), "{out}");
    // A ratio, but no interval: that takes more repetitions.
    assert!(rows[1]["to_first"].as_f64().unwrap() > 0.0 && rows[1]["low"].is_null(), "{out}");
    let notes = json["notes"].as_array().unwrap();
    let runs = notes.iter().find_map(|n| n.as_str().unwrap().strip_prefix("next-touch: runs took "));
    assert_eq!(runs.unwrap().split(' ').count(), 3, "two times and the unit: {out}");

    // What is simulated from a recording stands beside what was measured.
    if instrumented(&dir, "recorded", &PROGRAM.replace("it < 200", "it < 3")).is_some() {
        let recorded =
            homenode(&dir).args(["record", "-q", "-o", "r", "--threads", "2", "--", "./recorded"]).output();
        assert!(recorded.unwrap().status.success());
        let mut predicted = homenode(&dir);
        predicted.args(ON_HOST).args(["--pretend-nodes", "2", "--repeat", "2", "--json", "--predict", "r"]);
        predicted.args(["-m", "2s-xeon", "--", "./program"]);
        let (status, out, err) = outcome(&predicted.output().unwrap());
        assert_eq!(status, Some(0), "{err}");
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert!(json["rows"][1]["predicted"].as_f64().unwrap() > 0.0, "{out}");
        assert!(json["notes"].to_string().contains("from r on 2s-xeon"), "{out}");
        for (words, part) in [
            (&["--predict", "nowhere", "-m", "2s-xeon"][..], "nowhere"),
            (&["-m", "2s-xeon"], "with --predict REC"),
            (&["--predict", "r", "-m", "sf51k"], "sf15k"),
        ] {
            let mut bad = homenode(&dir);
            bad.args(ON_HOST).args(["--pretend-nodes", "2"]).args(words).args(["--", "./program"]);
            let (status, _, err) = outcome(&bad.output().unwrap());
            assert_eq!(status, Some(2), "{err}");
            assert!(err.contains(part), "{part} in {err}");
        }
    }

    let mut failing = homenode(&dir);
    failing.args(ON_HOST).args(["--pretend-nodes", "2", "--repeat", "2", "--", "./program", "fail"]);
    let (status, _, err) = outcome(&failing.output().unwrap());
    assert_eq!(status, Some(125), "{err}");
    assert!(err.contains("exit status: 1") && err.contains("sum "), "{err}");

    let nodes = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    if nodes.filter(|n| n.file_name().to_string_lossy().starts_with("node")).count() > 1 {
        println!("skipped: that one node is refused; this machine has several");
        return;
    }
    let mut alone = homenode(&dir);
    alone.args(ON_HOST).args(["--", "./program"]);
    let (status, _, err) = outcome(&alone.output().unwrap());
    assert_eq!(status, Some(2), "{err}");
    assert!(
        err.contains("one node") && err.contains("9 times each, in turns: first-touch, next-touch"),
        "{err}"
    );
}
