//! A large array when the iteration is known: it is brought once more only if the first region has
//! put it elsewhere than the iterations use it.

use crate::run::number;
use crate::support::{fresh, homenode, outcome, plain};

/// The first region touches the array by halves, from the front (1) or from the end (0); all others
/// from the front. 8192 pages.
const HALVES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { N = 1 << 22, HALF = N / 2 };
static void half(double *a, int h) {
    for (int i = h * HALF; i < (h + 1) * HALF; i++) a[i] += 1;
}
int main(int argc, char **argv) {
    double *a = malloc(N * sizeof *a), s = 0;
    for (int i = 0; i < N; i++) a[i] = i % 7;
    int front = atoi(argv[argc - 1]);
#pragma omp parallel for schedule(static, 1)
    for (int h = 0; h < 2; h++) half(a, front ? h : 1 - h);
    for (int it = 0; it < 12; it++) {
#pragma omp parallel for schedule(static, 1)
        for (int h = 0; h < 2; h++) half(a, h);
    }
    for (int i = 0; i < N; i++) s += a[i];
    printf("%.0f\n", s);
    free(a);
    return 0;
}
"#;

#[test]
fn a_large_array_is_brought_again_only_if_the_first_region_put_it_elsewhere() {
    const PAGES: u64 = 8192;
    let dir = fresh("run-probes");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return println!("skipped: there is one CPU");
    }
    let Some(program) = plain(&dir, "halves", HALVES) else { return };
    let alone = outcome(&std::process::Command::new(program).arg("1").output().unwrap());
    // Copied and moved, from the first node.
    let with = |front: &str| {
        let mut run = homenode(&dir);
        run.args([
            "run",
            "--pretend-nodes",
            "2",
            "--threads",
            "2",
            "--bind",
            "--force",
            "--budget",
            "100%+60s",
        ]);
        run.args(["--json", "--summary", "report.json", "--", "./halves", front]);
        let (status, out, err) = outcome(&run.output().unwrap());
        assert_eq!((status, &out), (alone.0, &alone.1), "{err}");
        let text = std::fs::read_to_string(dir.join("report.json")).unwrap();
        let report = serde_json::from_str(&text).unwrap();
        ["pages_copied", "pages_moved"].map(|key| number(&report, key))
    };
    let [copied, moved] = with("1");
    assert!((PAGES..PAGES * 5 / 4).contains(&copied), "{copied} copied: once, and its probes");
    assert!((PAGES * 2 / 5..PAGES * 3 / 5).contains(&moved), "{moved} moved: the second half");
    let [copied, moved] = with("0");
    assert!(copied > PAGES * 19 / 10, "{copied} copied: twice");
    assert!(
        (PAGES * 7 / 5..PAGES * 8 / 5).contains(&moved),
        "{moved} moved: the first half to and fro, and the second"
    );
}
