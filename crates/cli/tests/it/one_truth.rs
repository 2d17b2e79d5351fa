//! Commands that claim the same number of one program print the same number.

use serde_json::Value;

use crate::support::{fresh, instrumented, run};

/// One thread initialises, two threads use halves; the arrays are larger than any modelled cache.
const PROGRAM: &str = r#"
#include <stdlib.h>
enum { N = 1 << 21 };
int main(void) {
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
