//! Recorded programs whose threads wait for one another by plain flags and `flush`: they go on, and
//! their waiting is not recorded.

use std::fs;
use std::process::Command;

use homenode_log::Mark;
use homenode_log::file::LogReader;
use homenode_log::recording::Recording;

use crate::support::{fresh, homenode, instrumented_by, outcome};

/// Rows in a pipeline: each thread has a block of rows and takes a column when the one before it is
/// done with it. With `PROGRESS` each says how far it is; without, a flag is set by the one and
/// taken back by the other.
const PIPELINE: &str = r"
#include <omp.h>
#include <stdio.h>
enum { N = 96, M = 96, ROUNDS = 3 };
static double a[N][M];
static int flag[64][16];
static void wait_for(int who, int value, int at_least) {
    while (at_least ? flag[who][0] < value : flag[who][0] != value) {
#pragma omp flush
    }
}
static void say(int who, int value) {
#pragma omp flush
    flag[who][0] = value;
#pragma omp flush
}
int main(void) {
#pragma omp parallel num_threads(3)
    {
        int me = omp_get_thread_num(), all = omp_get_num_threads();
        int from = me * N / all, to = (me + 1) * N / all;
        for (int r = 0; r < ROUNDS; r++)
            for (int j = 1; j < M; j++) {
#ifdef PROGRESS
                if (me > 0) wait_for(me - 1, r * M + j, 1);
#else
                if (me > 0) { wait_for(me - 1, 1, 0); say(me - 1, 0); }
#endif
                for (int i = from; i < to; i++)
                    a[i][j] = a[i][j - 1] * 0.5 + (i ? a[i - 1][j] * 0.25 : 1);
#ifdef PROGRESS
                say(me, r * M + j);
#else
                if (me < all - 1) { wait_for(me, 0, 0); say(me, 1); }
#endif
            }
    }
    double s = 0;
    for (int i = 0; i < N; i++) s += a[i][M - 1];
    printf(all_of_it);
    return 0;
}
";

#[test]
fn pipelines_of_flags_go_on_and_their_waiting_is_not_recorded() {
    for (name, define, compiler) in [
        ("flags", "", "gcc"),
        ("progress", "#define PROGRESS\n", "gcc"),
        ("flags-clang", "", "clang"),
        ("progress-clang", "#define PROGRESS\n", "clang"),
    ] {
        let dir = fresh(&format!("record-waits-{name}"));
        let source = format!("{define}{}", PIPELINE.replace("all_of_it", "\"%.9f\\n\", s"));
        if compiler == "clang" && Command::new("clang").arg("--version").output().is_err() {
            println!("skipped: there is no clang");
            continue;
        }
        let Some(_) = instrumented_by(compiler, &dir, "pipeline", &source) else { return };
        let mut record = homenode(&dir);
        record.args(["record", "-o", "rec", "--", "./pipeline"]);
        let (status, out, err) = outcome(&record.output().unwrap());
        assert_eq!((status, out.as_str()), (Some(0), "4.000000000\n"), "{name}: {err}");
        let recording = Recording::open(&dir.join("rec")).unwrap();
        let mut fences = 0;
        for log in recording.logs().unwrap() {
            let mut reader = LogReader::open(&log).unwrap();
            while let Some(mark) = reader.next_mark().unwrap() {
                fences += u64::from(matches!(mark, Mark::Flush {}));
            }
        }
        // Each of three threads computes 3 times 95 columns. Whatever it waits for between two of
        // them has three fences that count.
        let most = 3 * 3 * 95 * 3 + 10;
        assert!((95..=most).contains(&fences), "{name}: {fences} of at most {most}");
        fs::remove_dir_all(dir.join("rec")).unwrap();
    }
}
