//! Commands that claim the same number of one program print the same number.

use serde_json::Value;

use crate::support::{fresh, instrumented, run};

/// One thread initialises, two threads use halves; the arrays of 2^21 numbers are larger than any
/// modelled cache.
const PROGRAM: &str = r#"
#include <stdlib.h>
int main(int argc, char **argv) {
    int N = argc > 1 ? atoi(argv[1]) : 1 << 21;
    double *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    if (!a || !b) return 1;
    for (int i = 0; i < N; i++) a[i] = b[i] = i;
    for (int round = 0; round < 5; round++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) b[i] = a[i] * 0.5 + b[i];
    }
    return b[N / 2] < 0;
}
"#;

fn json(dir: &std::path::Path, words: &[&str]) -> Value {
    let (status, out, err) = run(dir, words);
    assert_eq!(status, Some(0), "{words:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

/// Remote percent, accesses, and pages that moved, as `show` has them.
fn shown(dir: &std::path::Path, words: &[&str]) -> (f64, u64, u64) {
    let all = json(dir, words);
    let remote = &all["summary"]["remote"];
    assert_eq!(remote["basis"], "exact");
    let moved = all["moves"]["pages"].as_u64().unwrap_or(0);
    (remote["percent"].as_f64().unwrap(), remote["whole"].as_u64().unwrap(), moved)
}

#[test]
fn show_says_what_compare_says() {
    let dir = fresh("one-truth");
    if instrumented(&dir, "app", PROGRAM).is_none() {
        return;
    }
    let (status, _, err) = run(&dir, &["record", "-q", "--threads", "2", "-o", "r", "--", "./app"]);
    assert_eq!(status, Some(0), "{err}");
    let policies = ["first-touch", "round-robin", "competitive"];
    let mut words = vec!["compare", "-q", "r", "-m", "sf15k", "--json", "--keep", "kept"];
    policies.iter().for_each(|p| words.extend(["-p", p]));
    let compared = json(&dir, &words);
    let mut seen = Vec::new();
    for policy in policies {
        let rows = compared["rows"].as_array().unwrap();
        let row = rows.iter().find(|r| r["scheme"] == policy).unwrap();
        let simulated = shown(&dir, &["show", "-q", "r", "-m", "sf15k", "-p", policy, "--json"]);
        let kept = shown(&dir, &["show", &format!("kept/sf15k-{policy}.hnrec"), "--json"]);
        assert_eq!(simulated, kept, "{policy}");
        assert!((row["remote"].as_f64().unwrap() - kept.0).abs() < 1e-9, "{policy}: {row} {kept:?}");
        assert_eq!(row["moved"].as_u64(), Some(kept.2), "{policy}");
        assert!(kept.1 > 100_000, "{policy}: {kept:?}");
        seen.push(kept);
    }
    assert!(seen[0].0 != seen[1].0 && seen[2].2 > 0, "the policies differ: {seen:?}");
}

/// The remote percent of a fact of `plan`, which it rounds to a tenth.
fn fact(all: &Value, name: &str) -> f64 {
    all["facts"][name].as_f64().unwrap_or_else(|| panic!("{name}: {all:#}"))
}

/// What `plan`, `compare` and `show` say of a recording on a machine: the remote percent of first
/// touch and of the plan. They must agree. Also what `plan` says.
fn agreed(dir: &std::path::Path, recording: &str, machine: &str) -> ([f64; 2], Value) {
    let planned = json(dir, &["plan", "-q", recording, "-m", machine, "-o", "p", "--json"]);
    let mut words = vec!["compare", "-q", recording, "-m", machine, "--json"];
    words.extend(["-p", "first-touch", "-p", "plan"]);
    let compared = json(dir, &words);
    let percent = [("remote_first_touch", "first-touch"), ("remote_plan", "plan")].map(|(name, policy)| {
        let says = fact(&planned, name);
        let rows = compared["rows"].as_array().unwrap();
        let row = rows.iter().find(|r| r["scheme"] == policy).unwrap();
        let simulated = shown(dir, &["show", "-q", recording, "-m", machine, "-p", policy, "--json"]);
        let what = format!("{recording} {machine} {policy}");
        assert!((row["remote"].as_f64().unwrap() - says).abs() < 1e-9, "{what}: {row} {planned:#}");
        assert!((simulated.0 - says).abs() < 1e-9, "{what}: {simulated:?} {planned:#}");
        says
    });
    let timed = compared["facts"]["timed"].as_str();
    assert_eq!(planned["facts"]["timed"].as_str(), timed, "{recording} {machine}: {planned:#}");
    (percent, planned)
}

#[test]
fn plan_says_what_show_and_compare_say() {
    let dir = fresh("one-truth-plan");
    if instrumented(&dir, "app", PROGRAM).is_none() {
        return;
    }
    // The monitor of the second machine counts references, hits too. The third does not cache
    // remote memory: each access to it counts and costs, and first touch makes other accesses
    // remote than the plan does.
    let smile = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/presets/smile.toml");
    let smile = std::fs::read_to_string(smile).unwrap();
    let uncached = smile.replace("remote_cacheable = { value = true", "remote_cacheable = { value = false");
    assert_ne!(uncached, smile);
    std::fs::write(dir.join("uncached.toml"), uncached).unwrap();
    for (recording, filter, numbers) in [("r", "repeats", "2097152"), ("all", "none", "262144")] {
        let words = ["record", "-q", "--threads", "2", "--filter", filter, "-o", recording, "--", "./app"];
        let (status, _, err) = run(&dir, &[&words[..], &[numbers]].concat());
        assert_eq!(status, Some(0), "{err}");
    }
    for (recording, machine) in [("r", "sf15k"), ("all", "smile"), ("all", "uncached.toml")] {
        let ([today, plan], planned) = agreed(&dir, recording, machine);
        let bound = fact(&planned, "remote_latency_bound");
        assert!(today > 20.0 && plan < today && bound <= plan + 5.0, "{machine}: {planned:#}");
        let timed = planned["facts"]["timed"].as_str();
        assert!(timed.is_some_and(|t| t.contains("iterations found")), "{timed:?}");
    }
}

/// The stand-ins of `tests/verdicts`, each for a pattern of programs from outside.
#[test]
fn the_commands_agree_on_programs_of_other_patterns() {
    let dir = fresh("one-truth-patterns");
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/verdicts");
    for name in ["frames", "one_line", "other_schedule", "pipelined", "random_table", "serial_stencil"] {
        let source = std::fs::read_to_string(sources.join(format!("{name}.c"))).unwrap();
        if instrumented(&dir, name, &source).is_none() {
            return;
        }
        let (program, recording) = (format!("./{name}"), format!("{name}.hnrec"));
        let (status, _, err) =
            run(&dir, &["record", "-q", "--threads", "2", "-o", &recording, "--", &program, "4"]);
        assert_eq!(status, Some(0), "{name}: {err}");
        let ([today, plan], _) = agreed(&dir, &recording, "2s-xeon");
        println!("{name}: {today} % remote, {plan} % with the plan");
    }
}
