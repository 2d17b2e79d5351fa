//! `homenode record --on live`: programs as they are, sampled while they run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use homenode_dataset::Dataset;
use homenode_dataset::tables::{Access, Object, Residency};
use homenode_wire::live::{LiveReader, LiveRecord};

use crate::support::{fresh, homenode, outcome, plain, run};

/// Two threads, on the first and the last CPU, each owns a half of an array that the first one
/// initialises. Rounds, or for ever.
const HALVES: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { BYTES = 8 << 20 };
static char *array;
static double seconds;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static void pin(long me) {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    int cpus[2] = { -1, -1 };
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &all)) { if (cpus[0] < 0) cpus[0] = c; cpus[1] = c; }
    CPU_ZERO(&one);
    CPU_SET(cpus[me], &one);
    if (sched_setaffinity(0, sizeof one, &one)) exit(99);
}
static void *own(void *p) {
    long me = (long)p;
    pin(me);
    for (double begin = now(); now() - begin < seconds;)
        for (char *c = array + me * BYTES / 2; c < array + (me + 1) * BYTES / 2; c += 64) (*(volatile char *)c)++;
    return 0;
}
int main(int argc, char **argv) {
    seconds = atof(argv[1]);
    array = malloc(BYTES);
    memset(array, 1, BYTES);
    if (argc > 2) {
        pthread_t t[2];
        for (long i = 0; i < 2; i++) if (pthread_create(t + i, 0, own, (void *)i)) return 98;
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    } else {
        #pragma omp parallel for num_threads(2) schedule(static, 1)
        for (long i = 0; i < 2; i++) own((void *)i);
    }
    puts("done");
    return 7;
}
"#;

const BYTES: u64 = 8 << 20;

fn command(dir: &Path, words: &str) -> Command {
    let mut command = homenode(dir);
    // Reports lie beside the test's other files.
    command.args(words.split(' ')).env("TMPDIR", dir);
    command
}

/// Where the program lies; `None`: the test is skipped.
fn ready(name: &str) -> Option<PathBuf> {
    let dir = fresh(name);
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: there is one CPU");
        return None;
    }
    plain(&dir, "halves", HALVES)?;
    Some(dir)
}

/// Draws of the array by place and node.
fn draws(recording: &Path) -> BTreeMap<u64, [u64; 2]> {
    let set = Dataset::open(recording).unwrap();
    let array = set.rows::<Object>().find(|o| o.bytes.0 == BYTES).expect("the array is an object");
    let mut draws: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for row in set.rows::<Access>().filter(|a| a.object == Some(array.object)) {
        assert!(row.tally.count().is_none(), "presence has no count of accesses");
        // The middle of the page, for the array begins somewhere in one.
        let at = row.page * 4096 + 2048 - array.address % 4096;
        draws.entry(at).or_default()[row.node.index()] += row.tally.seen();
    }
    draws
}

/// The owner of a place in the array is the thread that has its half.
fn owners_agree(recording: &Path) {
    let draws = draws(recording);
    let right = draws.iter().filter(|(at, by)| (by[1] > by[0]) == (**at >= BYTES / 2)).count();
    assert!(draws.len() >= 40, "{draws:?}");
    assert!(right * 100 >= draws.len() * 95, "{right} of {}: {draws:?}", draws.len());
    let second = draws.range(BYTES / 2..).count();
    assert!((draws.len() / 4..=draws.len() * 3 / 4).contains(&second), "both halves are seen: {draws:?}");
}

#[test]
fn pages_are_seen_with_those_who_own_them() {
    let Some(dir) = ready("record-live") else { return };
    let words = "record --on live --source blocks --pretend-nodes 2 -o r -- ./halves 2";
    let (status, out, err) = outcome(&command(&dir, words).output().unwrap());
    assert_eq!((status, out.as_str()), (Some(7), "done\n"), "the program's own: {err}");
    assert!(err.contains("recorded (presence): r,") && err.contains("homenode show r"), "{err}");
    owners_agree(&dir.join("r"));
    let set = Dataset::open(&dir.join("r")).unwrap();
    assert_eq!((set.meta().basis.as_str(), set.missing().len()), ("presence", 0));
    let homes: u64 = set.rows::<Residency>().map(|r| r.pages).sum();
    assert!(homes >= BYTES / 4096 - 1, "{homes} pages have a home");
    assert!(!dir.join("r/streams").exists(), "all of it is in the tables");

    let (code, out, err) = run(&dir, &["show", "r", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(json["schema"].as_str().is_some() && out.contains("presence"), "{out}");
    let (code, out, _) = run(&dir, &["show", "r"]);
    assert!(code == Some(0) && out.contains("presence"), "{out}");
    let (code, out, err) = run(&dir, &["rec", "check", "r"]);
    assert!(code == Some(0) && out.contains("presence") && out.contains("whole"), "{out}{err}");
    for words in
        [&["compare", "r"][..], &["plan", "r", "-m", "epyc-nps4", "-o", "p"], &["show", "r", "-m", "sf15k"]]
    {
        let (code, _, err) = run(&dir, words);
        assert_eq!(code, Some(2), "{words:?}: {err}");
        assert!(err.contains("simulate"), "{words:?}: {err}");
    }
    damage_is_told(&dir);
}

/// Of the recording `r`: what is damaged is named, and what is whole is shown.
fn damage_is_told(dir: &Path) {
    let path = dir.join("r/tables/accesses.hntable");
    let whole = fs::read(&path).unwrap();
    for damaged in [whole[..whole.len() - 1].to_vec(), whole[..3].to_vec(), Vec::new()] {
        fs::write(&path, damaged).unwrap();
        for command in ["check", "show"] {
            let words: &[&str] = if command == "check" { &["rec", "check", "r"] } else { &["show", "r"] };
            let (code, out, err) = run(dir, words);
            assert!(code == Some(3) && (out + &err).contains("accesses.hntable"), "{command}: {code:?}");
        }
    }
    fs::write(&path, whole).unwrap();
    let (code, ..) = run(dir, &["rec", "check", "r"]);
    assert_eq!(code, Some(0));
}

#[test]
fn threads_without_regions_are_seen_and_so_is_what_a_shell_starts() {
    let Some(dir) = ready("record-live-threads") else { return };
    let mut command = command(&dir, "record --source blocks --pretend-nodes 2 --quiet -o r -- sh -c");
    let (status, out, err) = outcome(&command.arg("./halves 2 threads; exit 3").output().unwrap());
    assert_eq!((status, out.as_str(), err.as_str()), (Some(3), "done\n", ""));
    owners_agree(&dir.join("r"));
    let (code, out, err) = run(&dir, &["rec", "check", "r"]);
    assert_eq!(code, Some(0), "{out}{err}");
}

/// Whether a live process has streamed something that it saw.
fn streamed(dir: &Path) -> bool {
    fs::read_dir(dir.join("r/streams")).into_iter().flatten().flatten().any(|f| {
        fs::File::open(f.path())
            .is_ok_and(|file| LiveReader::new(file).flatten().any(|r| matches!(r, LiveRecord::Seen { .. })))
    })
}

#[test]
fn an_interrupted_run_leaves_what_was_seen() {
    let Some(dir) = ready("record-live-interrupted") else { return };
    let mut command =
        command(&dir, "record --on live --source blocks --pretend-nodes 2 -o r -- ./halves 1000");
    let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !streamed(&dir) && begin.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // As a terminal does it: to all of the group.
    let group = format!("-{}", child.id());
    let killed = Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
    assert!(killed.success());
    let (status, out, err) = outcome(&child.wait_with_output().unwrap());
    assert_eq!((status, out.as_str()), (Some(130), ""), "{err}");
    assert!(err.contains("recorded in part (presence)") && err.contains("incomplete"), "{err}");
    let draws = draws(&dir.join("r"));
    assert!(draws.iter().all(|(at, by)| (by[1] > by[0]) == (*at >= BYTES / 2)), "{draws:?}");
    let (code, out, err) = run(&dir, &["rec", "check", "r"]);
    assert!(code == Some(3) && out.contains("not whole"), "{out}{err}");
    assert!(out.contains("did not come to its end"), "{out}{err}");
    let (code, out, err) = run(&dir, &["show", "r"]);
    assert!(code == Some(3) && out.starts_with("not whole: process "), "{out}{err}");
    assert!(out.lines().next().is_some_and(|l| l.ends_with("did not come to its end")), "{out}{err}");
    // It can be replaced like any other.
    let words = "record --on live --source blocks --pretend-nodes 2 --force -o r -- ./halves 0";
    let (status, out, err) = outcome(&self::command(&dir, words).output().unwrap());
    assert_eq!((status, out.as_str()), (Some(7), "done\n"), "{err}");
    let (code, out, _) = run(&dir, &["rec", "check", "r"]);
    assert!(code == Some(3) && out.contains("empty: nothing was seen") || code == Some(0), "{out}");
    assert!(!dir.join("r/streams").exists(), "no stream stays behind");
}

#[test]
fn a_program_as_it_is_is_sampled_where_there_are_nodes() {
    let Some(dir) = ready("record-live-default") else { return };
    let (code, _, err) = run(&dir, &["record", "-o", "r", "--", "./halves", "0"]);
    // On one node there is nothing to tell apart.
    let refused =
        code == Some(125) && err.contains("built with homenode-cc") && err.contains("--pretend-nodes 2");
    let sampled =
        code == Some(7) && err.contains("it is sampled while it runs") && err.contains("--on emulator");
    assert!(refused || sampled, "{err}");
    assert_eq!(dir.join("r").exists(), sampled);
    for (words, why) in [
        ("record --on host --source blocks -- ./halves 0", "--on live"),
        ("record --on live --filter none -- ./halves 0", "--filter is for"),
        ("record --source regions -- ./halves 0", "tells nothing"),
        ("record --pretend-nodes 2 -- mpirun ./halves 0", "mpirun … homenode record"),
    ] {
        let (code, _, err) = outcome(&command(&dir, words).output().unwrap());
        assert!(code == Some(125) && err.contains(why), "{words}: {code:?} {err}");
    }
    let (code, _, err) = outcome(&command(&dir, "record --pretend-nodes 2 -- ./nothing").output().unwrap());
    assert_eq!(code, Some(127), "{err}");
    assert!(
        fs::read_dir(&dir).unwrap().flatten().all(|e| !e.file_name().to_string_lossy().ends_with(".hnrec"))
    );
}
