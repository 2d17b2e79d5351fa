//! `homenode record`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homenode_log::recording::Recording;

use crate::support::{fresh, homenode, instrumented, instrumented_by, outcome, plain, run};

/// A parallel loop over a static and an allocated array; ends with its argument.
const LOOP: &str = r#"
#include <stdio.h>
#include <stdlib.h>
double field[8192];
int main(int argc, char **argv) {
    double *a = malloc(1 << 20);
#pragma omp parallel for
    for (int i = 0; i < 1 << 17; i++) { a[i] = i; field[i % 8192] = i; }
    printf("%g\n", a[1000]);
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;

/// Allocates by a function of its own.
const OWN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static void *get(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) exit(1);
    return memory;
}
int main(void) {
    double *first = get(1 << 20);
    double *second = get(1 << 20);
#pragma omp parallel for
    for (int i = 0; i < 1 << 17; i++) first[i] = second[i] = i;
    printf("%g\n", first[9] + second[9]);
    return 0;
}
"#;

/// Writes at random, then is killed, or waits to be.
const VICTIM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char a[1 << 22];
    unsigned x = 1;
    for (int i = 0; i < 1 << 20; i++) { x = x * 1664525 + 1013904223; a[x >> 10]++; }
    puts("ready"); fflush(stdout);
    if (argc > 1) raise(atoi(argv[1]));
    for (;;) pause();
}
"#;

/// Threads that nobody waits for begin and end while the program ends.
const LATE: &str = r#"
#include <pthread.h>
#include <stdio.h>
static long cells[64];
static void *count(void *cell) {
    for (int i = 0; i < 100; i++) ++*(long *)cell;
    return NULL;
}
int main(void) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 64; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, count, &cells[i])) return 1;
    }
    puts("ended");
    return 0;
}
"#;

fn read(dir: &Path, name: &str) -> Recording {
    Recording::open(&dir.join(name)).unwrap()
}

#[test]
fn a_program_runs_as_ever_and_leaves_a_recording() {
    let dir = fresh("record-loop");
    let Some(_) = instrumented(&dir, "loop", LOOP) else { return };
    let (status, out, err) = run(&dir, &["record", "--threads", "3", "--", "./loop", "5"]);
    assert_eq!((status, out.as_str()), (Some(5), "1000\n"), "{err}");
    for part in ["recorded: loop-1.hnrec", "3 threads", "passed", "next: homenode explain loop-1.hnrec"] {
        assert!(err.contains(part), "{part} in {err}");
    }
    let recording = read(&dir, "loop-1.hnrec");
    let meta = &recording.meta;
    assert_eq!(meta.command, ["./loop", "5"]);
    assert_eq!(meta.ended.as_ref().unwrap().status, Some(5));
    assert_eq!(meta.environment["OMP_NUM_THREADS"], "3");
    assert_eq!(meta.environment["OMP_WAIT_POLICY"], "passive");
    let symbols = recording.symbols().unwrap();
    assert!(symbols.statics.iter().any(|s| s.name == "field" && s.bytes == 65536), "{symbols:?}");
    let places: Vec<String> = symbols.places.values().map(ToString::to_string).collect();
    assert!(places.contains(&"loop.c:6".into()), "the malloc: {places:?}");
    assert!(
        symbols.places.values().any(|p| p.function.as_deref().is_some_and(|f| f.starts_with("main._omp_fn")))
    );

    let (status, out, _) = run(&dir, &["rec", "check", "loop-1.hnrec", "--json"]);
    assert_eq!(status, Some(0), "{out}");
    assert!(out.contains("\"homenode/rec-check/1\"") && out.contains("loop-1.hnrec: whole"), "{out}");
}

#[test]
fn an_array_has_the_line_that_asks_for_it() {
    let dir = fresh("record-own");
    let Some(_) = instrumented(&dir, "own", OWN) else { return };
    assert_eq!(run(&dir, &["record", "-o", "r", "--", "./own"]).0, Some(0));
    let (_, json, err) = run(&dir, &["show", "r", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {err}"));
    for (name, line) in [("first", 10), ("second", 11)] {
        let all = json["objects"].as_array().unwrap();
        let object = all.iter().find(|o| o["name"] == name).unwrap_or_else(|| panic!("{name}: {json:#}"));
        assert_eq!(object["line"], line, "{object:#}");
    }
}

/// A recorder that waits for no thread's log cuts off half of these runs.
#[test]
fn threads_that_outlive_main_have_whole_logs() {
    let dir = fresh("record-late");
    let Some(_) = instrumented(&dir, "late", LATE) else { return };
    for n in 1..=12 {
        let (status, out, err) = run(&dir, &["record", "--", "./late"]);
        assert_eq!((status, out.as_str()), (Some(0), "ended\n"), "{err}");
        let (status, out, err) = run(&dir, &["rec", "check", &format!("late-{n}.hnrec")]);
        assert_eq!(status, Some(0), "{out}{err}");
    }
}

/// libomp's threads learn of a region's end when the next one begins.
#[test]
fn the_last_region_of_libomp_has_an_end() {
    let dir = fresh("record-libomp");
    if Command::new("clang").arg("--version").output().is_err() {
        return println!("skipped: there is no clang");
    }
    let Some(_) = instrumented_by("clang", &dir, "loop", LOOP) else { return };
    let (status, out, err) = run(&dir, &["record", "--threads", "2", "-o", "r", "--", "./loop"]);
    assert_eq!((status, out.as_str()), (Some(0), "1000\n"), "{err}");
    for reader in [&["show", "r"][..], &["compare", "r", "-m", "2s-xeon", "-p", "first-touch"]] {
        let (status, out, err) = run(&dir, reader);
        assert_eq!(status, Some(0), "{out}{err}");
        assert!(!(out.clone() + &err).contains("cut off"), "{out}{err}");
    }
}

#[test]
fn names_are_counted_up_and_replaced_when_asked() {
    let dir = fresh("record-names");
    let Some(_) = instrumented(&dir, "loop", LOOP) else { return };
    for n in 1..=2 {
        assert_eq!(run(&dir, &["record", "--quiet", "--", "./loop"]).0, Some(0));
        assert!(dir.join(format!("loop-{n}.hnrec")).is_dir());
    }
    let words = ["record", "-o", "loop-1.hnrec", "--", "./loop"];
    let (status, out, err) = run(&dir, &words);
    assert_eq!((status, out.as_str()), (Some(125), ""), "the program did not run");
    assert!(err.contains("File exists") && err.contains("--force"), "{err}");
    assert_eq!(run(&dir, &["record", "-o", "loop-1.hnrec", "--force", "--", "./loop"]).0, Some(0));
    let (_, _, err) = run(&dir, &["record", "--summary", "s.txt", "--", "./loop"]);
    assert_eq!(err, "");
    assert!(fs::read_to_string(dir.join("s.txt")).unwrap().contains("recorded: loop-3.hnrec"));
}

#[test]
fn the_filter_is_what_was_asked_for() {
    let dir = fresh("record-filter");
    let Some(_) = instrumented(&dir, "loop", LOOP) else { return };
    for (n, (filter, lines)) in [("repeats", 4096), ("none", 0), ("256", 256)].into_iter().enumerate() {
        assert_eq!(run(&dir, &["record", "--filter", filter, "--", "./loop"]).0, Some(0));
        let recording = read(&dir, &format!("loop-{}.hnrec", n + 1));
        assert_eq!(recording.meta.filter_lines, lines);
        for log in recording.logs().unwrap() {
            let header = homenode_log::file::LogReader::open(&log).unwrap().header();
            assert_eq!(header.filter_lines, lines);
        }
    }
    let (status, _, err) = run(&dir, &["record", "--filter", "100", "--", "./loop"]);
    assert_eq!(status, Some(125));
    assert!(err.contains("power of two"), "{err}");
}

#[test]
fn a_killed_program_leaves_what_it_did() {
    let dir = fresh("record-killed");
    let Some(_) = instrumented(&dir, "victim", VICTIM) else { return };
    let (status, out, err) = run(&dir, &["record", "-o", "r", "--filter", "none", "--", "./victim", "9"]);
    assert_eq!((status, out.as_str()), (Some(137), "ready\n"));
    assert!(err.contains("recorded in part: r") && err.contains("signal 9 ended the program"), "{err}");
    assert_eq!(read(&dir, "r").meta.ended.unwrap().signal, Some(9));
    assert!(read(&dir, "r").symbols().unwrap().statics.iter().any(|s| s.bytes == 1 << 22));
    let (status, out, _) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(status, Some(3), "{out}");
    assert!(out.contains("r: readable and cut off (1 of 1 threads have no end): signal 9"), "{out}");
    let (_, json, _) = run(&dir, &["rec", "check", "r", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["rows"][0]["accesses"].as_u64().unwrap() > 100_000, "{json}");
}

/// Starts recording the victim and returns when it is ready.
fn recording_of_victim(dir: &Path) -> std::process::Child {
    let words = ["record", "-o", "r", "--filter", "none", "--", "./victim"];
    let mut child = homenode(dir).args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_request_to_end_reaches_the_program_and_the_recording_is_finished() {
    let dir = fresh("record-term");
    let Some(_) = instrumented(&dir, "victim", VICTIM) else { return };
    let child = recording_of_victim(&dir);
    kill("-INT", child.id());
    std::thread::sleep(Duration::from_millis(100));
    kill("-TERM", child.id());
    let (status, _, err) = outcome(&child.wait_with_output().unwrap());
    assert_eq!(status, Some(143), "an interrupt is the terminal's to send: {err}");
    assert!(err.contains("signal 15 ended the program"), "{err}");
    assert!(read(&dir, "r").meta.ended.is_some());
}

#[test]
fn a_killed_homenode_leaves_a_recording_too() {
    let dir = fresh("record-homenode-killed");
    let Some(_) = instrumented(&dir, "victim", VICTIM) else { return };
    let mut child = recording_of_victim(&dir);
    let victim = child_of(child.id());
    kill("-KILL", child.id());
    child.wait().unwrap();
    let (status, out, _) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(status, Some(3));
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("still running, or the machine went down"), "{out}");
    kill("-KILL", victim);
}

fn child_of(pid: u32) -> u32 {
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let parent =
                stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            if parent == Some(pid) {
                return entry.file_name().to_str().unwrap().parse().unwrap();
            }
        }
    }
    panic!("{pid} has no child");
}

#[test]
fn a_full_disk_stops_the_recording_and_not_the_program() {
    let dir = fresh("record-full");
    let Some(_) = instrumented(&dir, "victim", VICTIM) else { return };
    // As many bytes as a file may have stand in for a full disk. 16 blocks are 8 or 16 KiB.
    let line = format!(
        "trap '' XFSZ; ulimit -f 16; exec {} record -o r --filter none -- ./victim 15",
        env!("CARGO_BIN_EXE_homenode")
    );
    let shell = Command::new("sh").args(["-c", &line]).current_dir(&dir).output().unwrap();
    let (status, out, err) = outcome(&shell);
    assert_eq!((status, out.as_str()), (Some(143), "ready\n"), "{err}");
    assert!(
        err.contains("! incomplete: stopped: cannot append to the log of thread 0: File too large"),
        "{err}"
    );
    let (status, out, _) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(status, Some(3));
    assert!(out.contains("readable up to where recording stopped: stopped: cannot append"), "{out}");
}

#[test]
fn what_cannot_be_recorded_is_refused_before_it_runs() {
    let dir = fresh("record-plain");
    let source = r#"#include <stdio.h>
int main(void) { fclose(fopen("was-here", "w")); return 0; }"#;
    let Some(_) = plain(&dir, "plain", source) else { return };
    let (status, _, err) = run(&dir, &["record", "--on", "host", "--", "./plain"]);
    assert_eq!(status, Some(125));
    assert!(err.contains("plain cannot be recorded: it was not built with homenode-cc"), "{err}");
    assert!(err.contains("libhomenode_trace.so") && err.contains("CC=homenode-cc"), "{err}");
    assert!(!dir.join("was-here").exists() && !dir.join("plain-1.hnrec").exists());
}

#[test]
fn what_is_not_there_or_cannot_run_is_127_or_126() {
    let dir = fresh("record-missing");
    fs::write(dir.join("text"), "no program").unwrap();
    fs::write(dir.join("script"), "#!/no/such/interpreter\n").unwrap();
    Command::new("chmod").args(["+x", "script"]).current_dir(&dir).status().unwrap();
    for (program, code) in
        [("./nothing", 127), ("nothing-of-that-name", 127), ("./text", 126), ("./script", 126)]
    {
        let (status, _, err) = run(&dir, &["record", "--", program]);
        assert_eq!(status, Some(code), "{program}: {err}");
        assert!(err.contains("\n  tried: "), "{err}");
    }
    let left: Vec<_> = fs::read_dir(&dir).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "nothing half-made is left: {left:?}");
}

#[test]
fn a_script_runs_and_an_empty_recording_is_told() {
    let dir = fresh("record-script");
    fs::write(dir.join("script"), "#!/bin/sh\necho hi\nexit 4\n").unwrap();
    Command::new("chmod").args(["+x", "script"]).current_dir(&dir).status().unwrap();
    let (status, out, err) = run(&dir, &["record", "--", "./script"]);
    assert_eq!((status, out.as_str()), (Some(4), "hi\n"));
    assert!(err.contains("script-1.hnrec: nothing was recorded") && err.contains("homenode-cc"), "{err}");
    assert_eq!(run(&dir, &["rec", "check", "script-1.hnrec"]).0, Some(3));
}

#[test]
fn of_two_programs_the_first_is_recorded() {
    let dir = fresh("record-two");
    let Some(_) = instrumented(&dir, "loop", LOOP) else { return };
    fs::write(dir.join("script"), "#!/bin/sh\n./loop\n./loop 7\n").unwrap();
    Command::new("chmod").args(["+x", "script"]).current_dir(&dir).status().unwrap();
    let (status, out, err) = run(&dir, &["record", "-o", "r", "--", "./script"]);
    assert_eq!((status, out.as_str()), (Some(7), "1000\n1000\n"));
    assert!(err.contains("another process is in this recording already"), "{err}");
    assert_eq!(run(&dir, &["rec", "check", "r"]).0, Some(0));
}

#[test]
fn a_program_whose_library_is_instrumented_is_recorded() {
    let dir = fresh("record-library");
    let source = "void work(double *a) { for (int i = 0; i < 8192; i++) a[i] = i; }";
    fs::write(dir.join("work.c"), source).unwrap();
    let main = "void work(double *); static double a[8192]; int main(void) { work(a); return 0; }";
    fs::write(dir.join("main.c"), main).unwrap();
    let Some(_) = instrumented(&dir, "unused", LOOP) else { return };
    let cc = Path::new(env!("CARGO_BIN_EXE_homenode")).with_file_name("homenode-cc");
    let sh = |command: &mut Command| assert!(command.current_dir(&dir).status().unwrap().success());
    sh(Command::new(cc).args(["-fPIC", "-shared", "-o", "libwork.so", "work.c"]));
    sh(Command::new("gcc").args(["-o", "main", "main.c", "-L.", "-lwork", "-Wl,-rpath,$ORIGIN"]));
    let (status, _, err) = run(&dir, &["record", "-o", "r", "--", "./main"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("recorded: r"), "{err}");
}
