//! `record --on emulator`, as somebody at a terminal meets it. Where there is no QEMU it is
//! skipped.

use std::path::Path;
use std::process::Command;

use homenode_log::recording::Recording;
use homenode_log::{Mark, RecordKind, file::LogReader};

use crate::support::{built, compilers, fresh, homenode, instrumented, outcome, plain, run};

/// Two threads write and read their halves of an allocation, three times; a lock, `memset` and a
/// line of output.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <omp.h>
enum { N = 1 << 18 };
static double table[1 << 14];
int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a) return 1;
    memset(a, 0, N * sizeof *a);
    double sum = 0;
    for (int round = 0; round < 3; round++) {
        #pragma omp parallel num_threads(2)
        {
            double mine = 0;
            #pragma omp for
            for (int i = 0; i < N; i++) { a[i] += 1; table[i & 16383] = i; }
            #pragma omp for
            for (int i = 0; i < N; i++) mine += a[N - 1 - i];
            #pragma omp critical
            sum += mine;
        }
    }
    printf("%.0f\n", sum);
    free(a);
    return 7;
}
"#;

/// Whether programs can be emulated here; says why a test is skipped.
fn there() -> bool {
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        eprintln!("skipped: there is no qemu-x86_64 (qemu-user)");
        return false;
    }
    if !compilers() {
        return false;
    }
    built(&["libhomenode_guest.so", "libhomenode_monitor.so"]);
    true
}

/// What a recording holds: accesses, lines of the one allocation by thread (in the order of the
/// logs), marks by name.
struct Content {
    accesses: u64,
    lines: Vec<usize>,
    marks: std::collections::BTreeMap<&'static str, u64>,
}

fn content(path: &Path) -> Content {
    let recording = Recording::open(path).unwrap();
    let mut object = None;
    recording
        .for_marks(|mark| {
            if let Mark::Alloc { address, bytes: 2_097_152, .. } = mark {
                object = Some((address >> 6)..((address + (2 << 20)) >> 6));
            }
        })
        .unwrap();
    let object = object.expect("the allocation is an object");
    let mut content = Content { accesses: 0, lines: Vec::new(), marks: Default::default() };
    for log in recording.logs().unwrap() {
        let mut lines = std::collections::BTreeSet::new();
        let mut log = LogReader::open(&log).unwrap();
        while let Some(record) = log.next_record().unwrap() {
            match record.what {
                RecordKind::Access { line, .. } if object.contains(&line.0) => drop(lines.insert(line.0)),
                RecordKind::Access { .. } => {}
                RecordKind::Mark(mark) => {
                    *content.marks.entry(mark.name()).or_default() += 1;
                    if let Mark::Totals { accesses, .. } = mark {
                        content.accesses += accesses;
                    }
                }
            }
        }
        content.lines.push(lines.len());
    }
    content
}

#[test]
fn a_program_as_it_is_gives_the_trace_of_the_instrumented_one() {
    if !there() {
        return;
    }
    let dir = fresh("emulator-agreement");
    let (Some(own), Some(app)) = (instrumented(&dir, "own", PROGRAM), plain(&dir, "app", PROGRAM)) else {
        return;
    };
    let (code, out, err) = run(&dir, &["record", "-o", "own.hnrec", "--", own.to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (Some(7), "1572864\n"), "{err}");
    let (code, out, err) =
        run(&dir, &["record", "--on", "emulator", "-o", "app.hnrec", "--", app.to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (Some(7), "1572864\n"), "{err}");
    assert!(err.contains("emulated") && err.contains("2 threads"), "{err}");
    let (code, _, err) = run(&dir, &["rec", "check", "app.hnrec"]);
    assert_eq!(code, Some(0), "{err}");

    let (own, app) = (content(&dir.join("own.hnrec")), content(&dir.join("app.hnrec")));
    for name in ["RegionFork", "TaskBegin", "Barrier", "Acquire", "Release", "Alloc", "Free"] {
        assert_eq!(own.marks.get(name), app.marks.get(name), "{name}");
    }
    // The first thread clears and frees the array; the other one touches both halves.
    assert_eq!(own.lines, app.lines);
    assert_eq!(app.lines[1], 2 << 20 >> 6, "every line");
    let (a, b) = (own.accesses as f64, app.accesses as f64);
    assert!((a - b).abs() < 0.1 * a, "{a} and {b} accesses");

    let (code, out, err) = run(&dir, &["show", "app.hnrec"]);
    assert_eq!(code, Some(0), "{err}");
    // Without debugging information an allocation is known by its place in the program's file.
    assert!(out.contains("emulated") && out.contains("app+0x"), "{out}");
}

#[test]
fn a_crash_leaves_a_recording_and_its_status() {
    if !there() {
        return;
    }
    let dir = fresh("emulator-crash");
    let source = "#include <stdlib.h>\nint main(void) { abort(); }";
    let Some(app) = plain(&dir, "app", source) else { return };
    let (code, _, err) = run(&dir, &["record", "--on", "emulator", "-o", "r", "--", app.to_str().unwrap()]);
    assert_eq!(code, Some(128 + 6), "{err}");
    assert!(Recording::open(&dir.join("r")).is_ok() && err.contains("recorded"), "{err}");
}

#[test]
fn a_child_is_not_recorded_and_disturbs_nothing() {
    if !there() {
        return;
    }
    let dir = fresh("emulator-fork");
    let source = r#"
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            int status;
            if (fork() == 0) { execlp("echo", "echo", "child", (char *)0); _exit(9); }
            wait(&status);
            printf("parent %d\n", WEXITSTATUS(status));
            return 0;
        }"#;
    let Some(app) = plain(&dir, "app", source) else { return };
    let (code, out, err) = run(&dir, &["record", "--on", "emulator", "-o", "r", "--", app.to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (Some(0), "child\nparent 0\n"), "{err}");
    assert_eq!(run(&dir, &["rec", "check", "r"]).0, Some(0));
}

#[test]
fn what_cannot_be_emulated_is_refused_with_the_remedy() {
    if !there() {
        return;
    }
    let dir = fresh("emulator-refused");
    let (code, _, err) = run(&dir, &["record", "--on", "emulator", "--", "./missing"]);
    assert!(code == Some(127) && err.contains("missing"), "{err}");
    let Some(app) = plain(&dir, "app", "int main(void) { return 0; }") else { return };
    let mut command = homenode(&dir);
    command.env("PATH", "/nowhere").args(["record", "--on", "emulator", "--"]).arg(&app);
    let (code, _, err) = outcome(&command.output().unwrap());
    assert!(code == Some(125) && err.contains("qemu-user"), "{err}");
    if let Some(own) = instrumented(&dir, "own", "int main(void) { return 0; }") {
        let (code, _, err) = run(&dir, &["record", "--on", "emulator", "--", own.to_str().unwrap()]);
        assert!(code == Some(126) && err.contains("without --on emulator"), "{err}");
    }
}
